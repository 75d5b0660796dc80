"""recover-reshapes: vectors of sizes that are read from the earliest tensor."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import main_graph
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.recover_reshapes import RecoverReshapes
from tests.stages.check import from_onnx, nodes, op_types, run_pass, values

CHAIN = """g (float[N,S,8] x) => (y) {
    r = Relu(x) \n s = Shape(r) \n i = Constant<value_int=0>() \n j = Constant<value_int=1>()
    a = Gather(s, i) \n b = Gather(s, j) \n z = Constant<value_ints=[0]>()
    c = Unsqueeze(a, z) \n d = Unsqueeze(b, z) \n t = Concat<axis=0>(c, d)
    y = ConstantOfShape(t) }"""


def recovered(text: str, **keywords: int) -> tuple[ModuleOp, PassContext]:
    module = from_onnx(text, **keywords)
    InferShapes().run(PassContext(module))
    return module, run_pass(RecoverReshapes(), module)


def test_a_chain_dies_with_its_producer() -> None:
    module, context = recovered(CHAIN)
    assert op_types(module) == ["Shape", "ConstantOfShape"]
    shape = nodes(module)[0]
    assert shape.operands[0] is main_graph(module).body.block.args[0]
    assert shape.attribute_values()["end"] == 2
    assert [r.kind for r in context.remarks] == ["applied"]


def test_values() -> None:
    module, _ = recovered(CHAIN)
    feed = {"x": np.ones((3, 5, 8), np.float32)}
    assert values(module, feed)[0].shape == (3, 5)


def test_is_done_once() -> None:
    module, _ = recovered(CHAIN)
    before = op_types(module)
    run_pass(RecoverReshapes(), module)
    assert op_types(module) == before


def test_before_shapes_had_ranges() -> None:
    text = CHAIN.replace("z = Constant<value_ints=[0]>()", "").replace("(a, z)", "(a)")
    text = text.replace("(b, z)", "(b)").replace("Unsqueeze", "Unsqueeze<axes=[0]>")
    for old, new in (("value_int=0", 0), ("value_int=1", 1)):
        text = text.replace(f"Constant<{old}>()", f"Constant<value = int64 {{{new}}}>()")
    module, _ = recovered(text, opset=11)
    assert op_types(module) == ["Shape", "Gather", "ConstantOfShape"]


def test_vectors_share_their_nodes() -> None:
    module, _ = recovered("""g (float[N,S] x) => (y, z) {
        a = Relu(x) \n s = Shape<end=1>(a) \n k = Constant<value_ints=[3]>()
        t = Concat<axis=0>(s, k) \n y = ConstantOfShape(t)
        b = Abs(x) \n r = Shape<end=1>(b) \n u = Concat<axis=0>(r, k)
        z = ConstantOfShape(u) }""")
    assert sorted(op_types(module)) == [
        "Concat",
        "ConstantOfShape",
        "ConstantOfShape",
        "Shape",
    ]


def test_thirty_two_bits() -> None:
    module, _ = recovered(
        """g (float[N,S] x, float[1] v) => (y) {
        a = Relu(x) \n s = Shape(a) \n c = Cast<to=6>(s) \n z = Constant<value_ints=[0]>()
        o = Constant<value_ints=[1]>() \n d = Slice(c, z, o) \n y = Tile(v, l) \n l = Cast<to=7>(d)
        }""".replace("y = Tile(v, l) \n l = Cast<to=7>(d)", "l = Cast<to=7>(d) \n y = Tile(v, l)")
    )
    assert op_types(module) == ["Shape", "Tile"]


def test_sizes_that_no_tensor_has_are_left() -> None:
    module, context = recovered("""g (float[N,S] x) => (y) {
        s = Shape(x) \n t = ReduceProd<keepdims=1>(s) \n y = ConstantOfShape(t) }""")
    assert op_types(module) == ["Shape", "ReduceProd", "ConstantOfShape"]
    assert list(context.remarks) == []


def test_outputs_are_left() -> None:
    module, _ = recovered("g (float[N,S] x) => (s) { r = Relu(x) \n s = Shape(r) }")
    assert op_types(module) == ["Relu", "Shape"]


def test_nothing_is_done_unless_nodes_are_saved() -> None:
    module, _ = recovered("""g (float[N,S] x) => (y, r) {
        r = Relu(x) \n s = Shape(r) \n y = ConstantOfShape(s) }""")
    assert nodes(module)[1].operands[0] is nodes(module)[0].results[0]


def test_a_body_reads_outer_tensors() -> None:
    module, _ = recovered("""g (float[N,S] x, bool c) => (y) {
        y = If(c) <then_branch = a () => (p) { r = Relu(x) \n s = Shape(r)
                       p = ConstantOfShape(s) },
                   else_branch = b () => (q) { q = Neg(x) }>
    }""")
    kinds = sorted(op.op_type for op in module.walk() if isinstance(op, NodeOp))
    assert kinds == ["ConstantOfShape", "If", "Neg", "Shape"]
