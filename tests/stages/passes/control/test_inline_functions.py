"""inline-functions: bodies in the place of calls, whatever operator sets and attributes say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import parser
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import NodeOp, OnnxOp, node_name, result_names
from foldline.dialects.onnx.structure import CallOp, functions, main_graph
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.passes.control.inline_functions import InlineFunctions
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.errors import InvalidModel
from tests.stages.check import Array, check_pass, check_unchanged, nodes, op_types, run_pass, values

PASS = InlineFunctions()
X = np.float32([[np.nan, np.inf, -0.0], [2.5, -1, 1e-40]])
FEED: dict[str, Array] = {"x": X}


def model(
    graph: str, *bodies: str, opset: int = 17, own: int | None = None, imports: str = ""
) -> ModuleOp:
    """A module of a graph and functions of domain `local`."""
    head = f'<ir_version: 8, opset_import: ["" : {opset}, "local" : 1{imports}]>'
    proto = parser.parse_model(f"{head}\n{graph}")
    for body in bodies:
        function = f'<domain: "local", opset_import: ["" : {own or opset}, "local" : 1{imports}]>'
        proto.functions.append(parser.parse_function(f"{function}\n{body}"))
    return import_model(proto, [])


def check_inlined(module: ModuleOp, *feeds: dict[str, Array]) -> PassContext:
    """All calls and functions go, all bits stay, and the result is a valid model."""
    feeds = feeds or (FEED,)
    original = Session(lower(module.clone()))
    before = [original.run(None, feed) for feed in feeds]
    context = run_pass(PASS, module)
    assert not functions(module)
    assert not any(isinstance(op, CallOp) for op in module.walk())
    onnx.checker.check_model(export_model(module), full_check=True)
    for feed, expected in zip(feeds, before, strict=True):
        check_bits(Session(lower(module)).run(None, feed), expected)
        for old, new in zip(expected, values(module, feed), strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-6)
    return context


def check_bits(got: Sequence[Array], expected: Sequence[Array]) -> None:
    for old, new in zip(expected, got, strict=True):
        assert (new.dtype, new.shape) == (old.dtype, old.shape)
        assert new.tobytes() == old.tobytes()


GRAPH = """g (float[2, 3] x) => (float[2, 3] y) {
    [one] h = local.f(x) [two] y = local.f(h)
}"""
F = "f (a) => (b) { [neg] n = Neg(a) b = Add(n, a) }"


def test_calls_become_bodies() -> None:
    expected = model(
        "g (float[2, 3] x) => (float[2, 3] y) { n = Neg(x) h = Add(n, x) m = Neg(h) y = Add(m, h) }"
    )
    check_pass(PASS, model(GRAPH, F), expected)


def test_the_same_values() -> None:
    check_inlined(model(GRAPH, F))


def test_names_begin_with_the_call_and_results_keep_theirs() -> None:
    module = model(GRAPH, F)
    run_pass(PASS, module)
    assert [(node_name(op) or "", result_names(op)) for op in nodes(module)] == [
        ("one/neg", ("one/n",)),
        ("", ("h",)),
        ("two/neg", ("two/n",)),
        ("", ("y",)),
    ]


def test_calls_of_one_name_are_told_apart() -> None:
    module = model(GRAPH.replace("[two]", "[one]"), F)
    run_pass(PASS, module)
    assert [result_names(op)[0] for op in nodes(module)] == ["one/n", "h", "one_2/n", "y"]


def test_functions_that_call_functions() -> None:
    outer = "o (a) => (b) { h = local.f(a) b = local.f(h) }"
    graph = "g (float[2, 3] x) => (float[2, 3] y) { [call] y = local.o(x) }"
    module = model(graph, F, outer)
    check_inlined(module)
    assert [result_names(op)[0] for op in nodes(module)] == ["call/h/n", "call/h", "y/n", "y"]


def test_a_function_that_nothing_calls_is_removed() -> None:
    module = model("g (float[2, 3] x) => (float[2, 3] y) { y = Neg(x) }", F)
    check_inlined(module)


def test_attributes_given_by_default_and_left_out() -> None:
    body = """f <alpha, beta: float = 0.25, gamma> (a) => (b) {
        l = LeakyRelu <alpha: float = @alpha> (a)
        e = Elu <alpha: float = @beta> (l)
        b = ThresholdedRelu <alpha: float = @gamma> (e)
    }"""
    module = model(
        """g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {
            y = local.f <alpha = 0.5> (x) z = local.f <beta = 2.0, gamma = 0.125> (x)
        }""",
        body,
    )
    check_inlined(module)
    alphas = [op.attribute_values()["alpha"] for op in nodes(module)]
    assert alphas == [0.5, 0.25, 1.0, pytest.approx(0.01), 2.0, 0.125]
    assert not any("Reference" in str(op.properties) for op in nodes(module))


def test_attributes_handed_from_call_to_call() -> None:
    inner = "f <alpha: float = 0.75> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }"
    outer = "o <slope> (a) => (b) { b = local.f <alpha: float = @slope> (a) }"
    graph = """g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {
        y = local.o <slope = 0.5> (x) z = local.o(x)
    }"""
    module = model(graph, inner, outer)
    run_pass(PASS, module)
    assert [op.attribute_values()["alpha"] for op in nodes(module)] == [0.5, 0.75]


def test_an_attribute_that_is_a_tensor_of_the_caller() -> None:
    body = "f <value> (a) => (b) { c = Constant <value: tensor = @value> () b = Mul(a, c) }"
    graph = """g (float[2, 3] x) => (float[2, 3] y) {
        y = local.f <value: tensor = float[3] {1, -2, 3}> (x)
    }"""
    check_inlined(model(graph, body))


def test_inputs_and_outputs_that_are_missing() -> None:
    body = """f (a, lo, hi, unread) => (b, c) { b = Clip(a, lo, hi) c = Neg(b) }"""
    graph = """g (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) <float zero = {0}> {
        y = local.f(x, zero) z, u = local.f(x, , zero) w, v = local.f(x)
    }"""
    check_inlined(model(graph, body), {"x": np.clip(X, -2, 2)})  # its Clip makes inf a number


def test_a_required_input_that_is_missing_keeps_the_call() -> None:
    module = model(
        "g (float[2, 3] x) => (float[2, 3] y) { y = local.f(x) }",
        "f (a, c) => (b) { n = Neg(a) b = Add(n, c) }",
    )
    check_unchanged(PASS, module, "input 1 'B' is required, but absent")
    assert not any(use for use in list(nodes(module)[0].operands[0].uses)[1:])


def test_results_that_are_inputs_or_twice_the_same() -> None:
    body = "f (a) => (b, a, b2) { b = Neg(a) b2 = Identity(b) }"
    module = model(
        """g (float[2, 3] x) => (float[2, 3] y1, float[2, 3] y2, float[2, 3] y3) {
            y1, y2, y3 = local.f(x)
        }""",
        body,
    )
    copy = next(op for op in functions(module)[0].walk() if op.name == "onnx.Identity")
    copy.results[0].replace_all_uses_with(copy.operands[0])
    copy.detach()
    copy.erase()
    run_pass(PASS, module)
    assert op_types(module) == ["Neg", "Identity", "Identity"]
    for got, want in zip(values(module, FEED), [-X, X, -X], strict=True):
        np.testing.assert_array_equal(got, want)


def test_calls_in_bodies_and_bodies_in_functions() -> None:
    body = """f (a, p) => (b) {
        b = If(p) <then_branch = t () => (float[2, 3] tt) {
            k = Constant <value_floats = [1.0, 2.0, 3.0]> () tt = Add(a, k)
        }, else_branch = e () => (float[2, 3] ee) {
            k = Constant <value_floats = [4.0, 5.0, 6.0]> () ee = Mul(a, k)
        }>
    }"""
    module = model(
        """g (float[2, 3] x, bool p) => (float[2, 3] y) {
            h = local.f(x, p) np = Not(p)
            y = If(p) <then_branch = t () => (float[2, 3] tt) { tt = local.f(h, np) },
                else_branch = e () => (float[2, 3] ee) { n = Neg(h) ee = local.f(n, np) }>
        }""",
        body,
    )
    check_inlined(module, *[{**FEED, "p": np.array(p)} for p in (True, False)])


def test_names_of_bodies_that_meet_outer_names_are_told_apart() -> None:
    body = """f (a) => (b) {
        n = Constant <value_int = 2> () c = Constant <value = bool {1}> ()
        b = Loop(n, c, a) <body = l (int64 i, bool ci, float[2, 3] y) =>
            (bool co, float[2, 3] x) { co = Identity(ci) x = Mul(y, a) }>
    }"""
    graph = "g (float[2, 3] x) => (float[2, 3] z) { y = Neg(x) z = local.f(y) }"
    check_inlined(model(graph, body))


OPERATORS = [
    (13, 17, "b = Relu(a)"),
    (17, 13, "b = Relu(a)"),
    (11, 13, "s = Unsqueeze <axes = [0]> (a) b = Squeeze <axes = [0]> (s)"),
    (
        13, 11,
        "z = Constant <value_ints = [0]> () s = Unsqueeze(a, z) b = Squeeze(s, z)",
    ),
    (11, 13, "b = ReduceSum <axes = [1], keepdims = 1> (a)"),
    (17, 18, "b = ReduceMean <axes = [-1], keepdims = 1> (a)"),
    (18, 17, "m = Constant <value_ints = [1]> () b = ReduceMax(a, m)"),
    (17, 18, "b = ReduceL2(a)"),
    (9, 11, "b = Clip <max = 0.5> (a)"),
    (9, 13, "b = Slice <starts = [1], ends = [3], axes = [1]> (a)"),
    (9, 17, "b = Pad <pads = [0, 1, 0, 0], value = 7.0> (a)"),
    (9, 17, "i = Constant <value = int64[2] {3, -1}> () b = Reshape(a, i)"),
    (13, 18, "b, u, v = Split <axis = 1> (a)"),
    (11, 13, "b, u, v = Split <axis = 1, split = [1, 1, 1]> (a)"),
    (13, 17, "i = ArgMax <axis = 1> (a) b = Cast <to = 1> (i)"),
    (13, 17, "h = Cast <to = 10> (a) b = Cast <to = 1> (h)"),
    (17, 21, "i = Cast <to = 6> (a) b = Cast <to = 1> (i)"),
    (12, 11, "i = Constant <value_floats = [1.0, 2.0, 3.0]> () b = Mul(a, i)"),
    (11, 17, "b = Gemm(a, a, a)"),
    (7, 17, "b = Add(a, a)"),
    (17, 9, "b = Concat <axis = 0> (a, a)"),
]  # fmt: skip


@pytest.mark.parametrize(("own", "opset", "text"), OPERATORS)
def test_operators_in_the_form_of_another_operator_set(own: int, opset: int, text: str) -> None:
    """Functions of other operator sets than the model's: ONNX Runtime refuses most such models."""
    x = X[:, :2] if "Gemm" in text else X
    shape = f"{x.shape[0]}, {x.shape[1]}"
    text = text.replace("Gemm(a, a, a)", "Gemm <alpha = 0.5> (a, a, a)")
    graph = f"g (float[{shape}] x) => (float[p, q] y) {{ y = local.f(x) }}"
    module = model(graph, f"f (a) => (b) {{ {text} }}", opset=opset, own=own)
    InferShapes().run(PassContext(module))
    expected = Session(lower(module.clone())).run(None, {"x": x})
    run_pass(PASS, module)
    assert not functions(module)
    check_bits(Session(lower(module)).run(None, {"x": x}), expected)
    proto = export_model(module)
    onnx.checker.check_model(proto, full_check=True)
    if opset >= 9:
        np.testing.assert_allclose(values(module, {"x": x})[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("own", "opset", "text", "reason"),
    [
        (11, 13, "b = Softmax <axis = 1> (a)", "may mean something else"),
        (6, 7, "b = Add <broadcast = 1> (a, a)", "may mean something else"),
        (18, 13, "b = Mish(a)", "Mish is not in the operator set imported here"),
        (11, 10, "b = Concat <axis = -1> (a, a)", "axes cannot be counted from the end"),
        (14, 13, "i = Constant <value_ints = [2, 3]> () b = Reshape <allowzero = 1> (a, i)",
         "has no allowzero"),
        (18, 13, "b, u, v = Split <axis = 1, num_outputs = 3> (a)", "has no num_outputs"),
    ],
)  # fmt: skip
def test_a_call_stays_where_an_operator_has_no_such_form(
    own: int, opset: int, text: str, reason: str
) -> None:
    graph = "g (float[2, 3] x) => (float[2, 3] y) { y = local.f(x) }"
    module = model(graph, f"f (a) => (b) {{ n = Neg(a) {text} }}", opset=opset, own=own)
    check_unchanged(PASS, module, reason)


def test_what_is_said_otherwise_keeps_its_names() -> None:
    module = model(
        "g (float[2, 3] x) => (float[] y) { [c] y = local.f(x) }",
        "f (a) => (b) { [sum] s = ReduceSum <axes = [0]> (a) b = Neg(s) }",
        own=11,
    )
    run_pass(PASS, module)
    total = next(op for op in nodes(module) if op.op_type == "ReduceSum")
    assert (node_name(total), result_names(total)) == ("c/sum", ("c/s",))


def test_imports_that_the_graph_lacks_are_added() -> None:
    body = "f (a) => (b) { b = com.microsoft.Gelu(a) }"
    module = model("g (float[2, 3] x) => (float[2, 3] y) { y = local.f(x) }", body)
    function = functions(module)[0]
    imports = export_model(module).functions[0].opset_import
    imports.add(domain="com.microsoft", version=1)
    proto = export_model(module)
    proto.functions[0].opset_import.add(domain="com.microsoft", version=1)
    module = import_model(proto, [])
    assert function is not None
    run_pass(PASS, module)
    assert main_graph(module).opsets.data == (("", 17), ("local", 1), ("com.microsoft", 1))
    assert op_types(module) == ["Gelu"]
    assert all(isinstance(op, OnnxOp) for op in nodes(module))
    values(module, FEED)


def test_a_custom_operator_of_another_version_keeps_the_call() -> None:
    body = "f (a) => (b) { b = vendor.Op(a) }"
    module = model(
        "g (float[2, 3] x) => (float[2, 3] y) { h = vendor.Op(x) y = local.f(h) }",
        body,
        imports=', "vendor" : 1',
    )
    proto = export_model(module)
    proto.functions[0].opset_import[-1].version = 2
    check_unchanged(PASS, import_model(proto, []), "Op of version 2 of domain 'vendor'")


def test_a_custom_operator_of_the_same_version_is_inlined() -> None:
    module = model(
        "g (float[2, 3] x) => (float[2, 3] y) { y = local.f <p = 3> (x) }",
        "f <p, q> (a) => (b) { b = vendor.Op <p: int = @p, q: int = @q, r = 1> (a) }",
        imports=', "vendor" : 1',
    )
    run_pass(PASS, module)
    (op,) = nodes(module)
    assert {name: str(value) for name, value in op.onnx_attributes.items()} == {
        "p": "3 : i64",
        "r": "1 : i64",
    }


def test_a_call_that_stays_keeps_what_it_needs() -> None:
    inner = "f (a) => (b) { b = Softmax(a) }"
    outer = "o (a) => (b) { n = Neg(a) b = local.f(n) }"
    module = model("g (float[2, 3] x) => (float[2, 3] y) { y = local.o(x) }", inner, outer)
    proto = export_model(module)
    proto.functions[0].opset_import[0].version = 11
    module = import_model(proto, [])
    run_pass(PASS, module)
    assert [f.sym_name.data for f in functions(module)] == ["local::f"]
    assert [op.name for op in nodes(module)] == ["onnx.Neg", "onnx.call"]


def test_a_functions_own_calls_are_inlined_where_it_stays() -> None:
    inner = "f (a) => (b) { b = Neg(a) }"
    outer = "o (a) => (b) { n = local.f(a) b = Softmax(n) }"
    module = model("g (float[2, 3] x) => (float[2, 3] y) { y = local.o(x) }", inner, outer)
    proto = export_model(module)
    for function in proto.functions:
        function.opset_import[0].version = 11
    module = import_model(proto, [])
    run_pass(PASS, module)
    (function,) = functions(module)
    kept = [op.op_type for op in function.walk() if isinstance(op, NodeOp)]
    assert kept == ["Neg", "Softmax"]


def test_an_attribute_of_the_caller_that_may_be_absent_keeps_the_call_inside() -> None:
    inner = "f <alpha: float = 0.75> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }"
    outer = """o <slope> (a) => (b) {
        n = local.f <alpha: float = @slope> (a) b = Softmax(n)
    }"""
    module = model("g (float[2, 3] x) => (float[2, 3] y) { y = local.o(x) }", inner, outer)
    proto = export_model(module)
    for function in proto.functions:
        function.opset_import[0].version = 11
    check_unchanged(PASS, import_model(proto, []), "'alpha' is an attribute of the caller")


def test_a_bomb_of_calls_is_bounded() -> None:
    levels = 40
    bodies = ["f0 (a) => (b) { b = Neg(a) }"]
    for n in range(1, levels):
        bodies.append(f"f{n} (a) => (b) {{ h = local.f{n - 1}(a) b = local.f{n - 1}(h) }}")
    graph = f"g (float[2, 3] x) => (float[2, 3] y) {{ y = local.f{levels - 1}(x) }}"
    module = model(graph, *bodies)
    context = PassContext(module)
    InlineFunctions(max_nodes=500).run(context)
    assert context.bounds == ["functions were not inlined beyond 500 nodes"] * len(context.bounds)
    assert 0 < len(context.bounds) < 500
    assert context.rewriter.nodes <= 600


def test_a_function_that_calls_itself_is_refused() -> None:
    module = model(
        "g (float[2, 3] x) => (float[2, 3] y) { y = local.f(x) }",
        "f (a) => (b) { n = local.g(a) b = Neg(n) }",
        "g (a) => (b) { n = local.f(a) b = Neg(n) }",
    )
    with pytest.raises(InvalidModel, match="calls itself"):
        PASS.run(PassContext(module))


MIXED = """
<ir_version: 8, opset_import: ["" : 17, "local" : 1, "foldline" : 1]>
g (float[2,3] x) => (float[2,3] y) { [first] h = foldline.Linear(x) [second] y = local.f(h) }
<opset_import: ["" : 17, "foldline" : 1], domain: "local"> f (a) => (b) { b = foldline.Linear(a) }
<opset_import: ["" : 17], domain: "local"> unused (a) => (b) { b = Neg(a) }
<opset_import: ["" : 17], domain: "foldline"> Linear (a) => (b) { n = Neg(a) b = Exp(n) }"""


def test_functions_of_one_domain_only() -> None:
    proto = parser.parse_model(MIXED)
    proto.graph.node[0].metadata_props.add(key="owner", value="tests")
    module = import_model(proto, [])
    run_pass(InlineFunctions(domain="foldline"), module)
    assert op_types(module) == ["Neg", "Exp", "f"]
    assert [f.op_type.data for f in functions(module)] == ["f"], "what nothing calls goes"
    written = export_model(module)
    assert [n.op_type for n in written.functions[0].node] == ["Neg", "Exp"]
    assert [n.name for n in written.graph.node] == ["", "first", "second"]
    noted = [[p.value for p in n.metadata_props] for n in written.graph.node]
    assert noted == [["tests"], ["tests"], []], "said of the call is said of its parts"
    np.testing.assert_allclose(values(module, FEED)[0], np.exp(-np.exp(-X)), rtol=1e-6)
