"""What is known of values: symbols, bodies, functions, and how it follows the IR."""

from __future__ import annotations

import numpy as np

from foldline.dialects.fold import FullyKnown
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.symbols.expression import constant as integer
from foldline.stages.symbols.expression import symbol
from foldline.stages.symbols.knowledge import Knowledge
from tests.stages.check import from_onnx, nodes, parse, run_pass, type_text
from tests.stages.symbols.check import dims_text, elements_text, knowledge_of, outputs


def test_names_bind_within_one_input_only() -> None:
    text = "g (float[N,N] x, float[N] m) => (y, z, w) { y = Relu(x) \n z = Relu(m) \n w = Abs(x) }"
    assert dims_text(text) == ["N, N", "N@m", "N, N"]


def test_names_are_trusted_on_demand() -> None:
    module = from_onnx("g (float[N] x, float[N] m) => (y) { y = Add(x, m) }")
    (value,) = outputs(module)
    assert Knowledge(trust_names=True).dims(value) == (symbol("N"),)
    distrusting = Knowledge().dims(value)
    assert distrusting is not None
    assert str(distrusting[0]) == "broadcast(N, N@m)"


def test_what_is_no_identifier_names_nothing() -> None:
    module = parse(
        "%y = onnx.Relu(%x) : !onnx.unknown return(%y)",
        '%x: tensor<?x?x?xf32, #onnx.dims<"?", "?", -1>>',
    )
    (value,) = outputs(module)
    dims = knowledge_of(module).dims(value)
    assert dims is not None
    assert len(set(dims)) == 3


def test_an_unknown_axis_has_one_symbol_for_life() -> None:
    module = from_onnx("g (float[N] x) => (y) { y = NonZero(x) }")
    context = PassContext(module)
    (value,) = outputs(module)
    before = context.knowledge.dims(value)
    InferShapes().run(context)
    InferShapes().run(context)
    assert context.knowledge.dims(value) == before


def test_names_of_generated_symbols_are_free() -> None:
    found = dims_text("g (float[d0] x) => (y, z) { y = Relu(x) \n z = NonZero(x) }")
    assert found[0] == "d0"
    assert found[1] not in ("1, d0",)


def test_unknown_rank() -> None:
    module = parse(
        "%y = onnx.Relu(%x) : !onnx.unknown %z = onnx.Shape(%y) : !onnx.unknown return(%y, %z)",
        "%x: tensor<*xf32>",
    )
    known = knowledge_of(module)
    y, z = outputs(module)
    assert known.dims(y) is None
    assert not known.same_shape(y, y)
    assert known.elements(z) is None


def test_same_shape() -> None:
    module = from_onnx(
        "g (float[N,S] x) => (y, z) { a = Transpose(x) \n y = Transpose(a) \n z = Relu(a) }"
    )
    known, (y, z) = knowledge_of(module), outputs(module)
    x = main_graph(module).body.block.args[0]
    assert known.same_shape(x, y)
    assert not known.same_shape(x, z)


def test_symbols_become_numbers_in_types() -> None:
    module = from_onnx("""g (float[N,4] x) => (y) {
        s = Shape(x) \n i = Constant<value_int=1>() \n g = Gather(s, i)
        k = Constant<value_int=2>() \n h = Div(g, k) \n a = Constant<value_ints=[0]>()
        u = Unsqueeze(h, a) \n m = Constant<value_ints=[-1]>() \n t = Concat<axis=0>(m, u)
        y = Reshape(x, t) }""")
    run_pass(InferShapes(), module)
    assert type_text(nodes(module)[-1].results[0]) == "tensor<?x2xf32>"


def test_names_reach_types() -> None:
    module = from_onnx("""g (float[N,S] x) => (y) {
        s = Shape(x) \n y = ConstantOfShape(s) }""")
    run_pass(InferShapes(), module)
    found = type_text(nodes(module)[-1].results[0])
    assert found == 'tensor<?x?xf32, #onnx.dims<"N", "S">>'


def test_branches_that_agree() -> None:
    text = """g (float[N,S] x, bool c) => (y, t) {
        y, t = If(c) <then_branch = a () => (p, q) { p = Relu(x) \n q = Shape(p) },
                      else_branch = b () => (r, s) { r = Neg(x) \n s = Shape(r) }>
    }"""
    assert dims_text(text) == ["N, S", "2"]
    assert elements_text(text)[1] == "N, S"


def test_branches_that_differ() -> None:
    text = """g (float[N,S] x, bool c) => (y) {
        y = If(c) <then_branch = a () => (p) { p = Relu(x) },
                   else_branch = b () => (r) { r = Concat<axis=0>(x, x) }>
    }"""
    (found,) = dims_text(text)
    assert found.endswith(", S")
    assert found != "N, S"


def test_carried_values_are_unknown_in_a_body() -> None:
    text = """g (int64 n, bool c, float[N] x) => (y) {
        y = Loop(n, c, x) <body = b (int64 i, bool k, float[M] v) => (l, w)
            { l = Identity(k) \n w = Concat<axis=0>(v, v) }>
    }"""
    (found,) = dims_text(text)
    assert "N" not in found


def test_potential_constants_count() -> None:
    module = from_onnx("g (float[N] x, int64[2] k) => (y) { t = Abs(k) \n y = Reshape(x, t) }")
    context = PassContext(module)
    target = nodes(module)[0]
    tensor = TensorAttr.of(np.array([2, 3]))
    context.rewriter.set_facts(target, [FullyKnown(tensor, "test")])
    assert context.knowledge.dims(outputs(module)[0]) == (integer(2), integer(3))


def test_deep_graphs_need_no_recursion() -> None:
    body = "\n".join(f"v{i + 1} = Relu(v{i})" for i in range(5000))
    module = from_onnx(f"g (float[N] v0) => (v5000) {{ {body} }}")
    assert Knowledge().dims(outputs(module)[0]) == (symbol("N"),)


def test_sums_stay_small() -> None:
    body = "\n".join(
        f"n{i} = NonZero(x) \n v{i + 1} = Concat<axis=1>(v{i}, n{i})" for i in range(300)
    )
    module = from_onnx(f"g (float[N] x, int64[1,M] v0) => (v300) {{ {body} }}")
    known = knowledge_of(module)
    for op in nodes(module):
        dims = known.dims(op.results[0])
        assert dims is not None
        assert all(not size.is_unwieldy for size in dims)


def test_more_is_known_after_a_rewrite() -> None:
    module = from_onnx("g (float[N] x, float[4] z) => (y) { a = Relu(x) \n y = Abs(a) }")
    context = run_pass(InferShapes(), module)
    block = main_graph(module).body.block
    first = next(op for op in block.ops if isinstance(op, NodeOp))
    context.rewriter.set_operands(first, [block.args[1]])
    InferShapes(trusted=True).run(context)
    dims = context.knowledge.dims(outputs(module)[0])
    assert dims is not None
    assert dims[0].value == 4
