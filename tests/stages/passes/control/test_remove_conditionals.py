"""remove-conditionals: branches inlined, loops dropped and unrolled, names and bits kept."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.structure import InitializerOp, main_graph
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.pass_base import NodePass
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.control.remove_conditionals import RemoveConditionals
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.rewriting import count_nodes
from tests.stages.check import (
    Array,
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    named,
    nodes,
    op_types,
    parse,
    run_pass,
    values,
)

PASS = RemoveConditionals()
X = np.float32([np.nan, np.inf, -0.0, 2.5])
IF = """
    %c = {condition}
    %r = onnx.Relu(%x) : tensor<4xf32>
    %y = onnx.If(%c) ({{
        %e = onnx.Neg(%x) : tensor<4xf32>
        yield[](%e)
    }}, {{
        %w = onnx.initializer() {{value = #onnx.tensor<"float", [], "0000803f">}} : tensor<f32>
        %t = onnx.Add(%r, %w) : tensor<4xf32>
        yield[](%t)
    }}) : tensor<4xf32>
    %z = onnx.Abs(%y) : tensor<4xf32>
    return(%z)"""
INPUT = "%x: tensor<4xf32>"
"""Bodies stand in the order of the schema: else, then."""


def traverse(module: ModuleOp, *passes: NodePass) -> PassContext:
    """Run passes in one traversal."""
    context = PassContext(module)
    Traversal(context, [p.visitor(context) for p in passes]).run()
    assert context.rewriter.nodes == count_nodes(module)
    assert not context.bounds
    return context


def check_traversal(module: ModuleOp, *feeds: dict[str, Array]) -> PassContext:
    """Types, then the pass: all bits stay."""
    before = [values(module.clone(), feed) for feed in feeds]
    context = traverse(module, InferShapes(), PASS)
    onnx.checker.check_model(export_model(module), full_check=True)
    for feed, expected in zip(feeds, before, strict=True):
        for old, new in zip(expected, values(module, feed), strict=True):
            assert old.dtype == new.dtype
            assert old.shape == new.shape
            assert old.tobytes() == new.tobytes()
    return context


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_a_true_condition_of_any_rank(shape: tuple[int, ...]) -> None:
    before = parse(IF.format(condition=constant(np.ones(shape), np.bool_)), INPUT)
    expected = parse(
        f"""%c = {constant(np.ones(shape), np.bool_)}
        %r = onnx.Relu(%x) : tensor<4xf32>
        %w = onnx.initializer() {{value = #onnx.tensor<"float", [], "0000803f">}} : tensor<f32>
        %t = onnx.Add(%r, %w) : tensor<4xf32>
        %z = onnx.Abs(%t) : tensor<4xf32>
        return(%z)""",
        INPUT,
    )
    check_pass(PASS, before, expected)


def test_a_false_condition_takes_the_other_branch() -> None:
    before = parse(IF.format(condition=constant(False, np.bool_)), INPUT)
    expected = parse(
        f"""%c = {constant(False, np.bool_)}
        %r = onnx.Relu(%x) : tensor<4xf32>
        %e = onnx.Neg(%x) : tensor<4xf32>
        %z = onnx.Abs(%e) : tensor<4xf32>
        return(%z)""",
        INPUT,
    )
    check_pass(PASS, before, expected)


@pytest.mark.parametrize("holds", [0, 1])
def test_a_branch_gives_the_same_values(holds: int) -> None:
    module = from_onnx(
        f"""g (float[4] x) => (float[4] z) <bool[1] c = {{{holds}}}> {{
            r = Relu(x)
            y = If(c) <then_branch = t () => (float[4] p) <float w = {{1}}> {{ p = Add(r, w) }},
                else_branch = e () => (float[4] q) {{ q = Neg(x) }}>
            z = Sub(y, x)
        }}"""
    )
    check_values(PASS, module, {"x": X})


@pytest.mark.parametrize("count", [0, 2])
def test_a_condition_of_other_than_one_element_is_left(count: int) -> None:
    text = IF.format(condition=constant(np.ones(count), np.bool_))
    check_unchanged(PASS, parse(text, INPUT), f"has {count} elements, expected 1")


def test_a_condition_that_is_no_real_constant_is_left() -> None:
    text = IF.replace("%c = {condition}", "").format()
    context = check_unchanged(PASS, parse(text, "%x: tensor<4xf32>, %c: tensor<i1>"))
    assert not list(context.remarks)


def test_a_potential_constant_does_not_decide() -> None:
    fact = '{fold.known = #fold.known<[#onnx.tensor<"bool", [], "01">, "constant-folding"]>}'
    text = IF.format(condition=f"onnx.Not(%b) {fact} : tensor<i1>")
    check_unchanged(PASS, parse(text, "%x: tensor<4xf32>, %b: tensor<i1>"))


def test_the_default_of_an_input_does_not_decide() -> None:
    module = from_onnx(
        """g (float[4] x, bool c = {1}) => (float[4] y) {
            y = If(c) <then_branch = t () => (float[4] p) { p = Abs(x) },
                else_branch = e () => (float[4] q) { q = Neg(x) }>
        }"""
    )
    check_unchanged(PASS, module)


BRANCHES = """g (float[4] x) => ({outputs}) <bool c = {{{condition}}}> {{
    r = Relu(x)
    {outer} = If(c) <
        then_branch = t () => ({then_outputs}) {{ {then_body} }},
        else_branch = e () => (float[4] e1, float[4] e2) {{ e1 = Neg(x) e2 = Exp(x) }}>
    {rest}
}}"""


def branches(then_outputs: str, then_body: str, rest: str, outputs: str) -> ModuleOp:
    return from_onnx(
        BRANCHES.format(
            outputs=outputs,
            condition=1,
            outer="y1, y2",
            then_outputs=then_outputs,
            then_body=then_body,
            rest=rest,
        )
    )


def test_outputs_of_the_model_keep_their_names() -> None:
    module = branches(
        "float[4] t1, float[4] t2",
        "t1 = Abs(r) t2 = Sin(t1)",
        "",
        "float[4] y1, float[4] y2",
    )
    run_pass(PASS, module)
    assert [result_names(op) for op in nodes(module)] == [("r",), ("y1",), ("y2",)]
    assert [o.name for o in export_model(module).graph.output] == ["y1", "y2"]


def test_names_of_a_branch_are_kept_inside_the_model() -> None:
    module = branches(
        "float[4] t1, float[4] t2",
        "[sin] t1 = Sin(r) t2 = Cos(t1)",
        "z = Add(y1, y2)",
        "float[4] z",
    )
    run_pass(PASS, module)
    assert [result_names(op) for op in nodes(module)] == [("r",), ("t1",), ("t2",), ("z",)]
    assert node_name(named(module, "sin")) == "sin"


def test_one_value_for_two_outputs_and_outer_values_get_copies() -> None:
    module = from_onnx(
        """g (float[4] x) => (float[4] y1, float[4] y2, float[4] y3, float[4] r)
        <bool c = {1}> {
            r = Relu(x)
            y1, y2, y3 = If(c) <
                then_branch = t () => (float[4] t1, float[4] t2, float[4] t3) {
                    t1 = Abs(r) t2 = Identity(t1) t3 = Identity(r)
                },
                else_branch = e () => (float[4] e1, float[4] e2, float[4] e3) {
                    e1 = Abs(r) e2 = Abs(r) e3 = Abs(r)
                }>
        }"""
    )
    branch = next(op for op in nodes(module) if op.op_type == "If")
    body = branch.regions[0].block
    first, second, third = (op for op in body.ops if isinstance(op, NodeOp))
    second.results[0].replace_all_uses_with(first.results[0])
    third.results[0].replace_all_uses_with(third.operands[0])
    for op in (second, third):
        op.detach()
        op.erase()
    context = run_pass(PASS, module)
    assert op_types(module) == ["Relu", "Abs", "Identity", "Identity"]
    assert context.rewriter.nodes == 4
    expected = [np.abs(np.maximum(X, 0)), np.abs(np.maximum(X, 0)), np.maximum(X, 0)]
    for got, want in zip(values(module, {"x": X}), [*expected, np.maximum(X, 0)], strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("ir_version", [3, 8])
def test_an_initializer_moves_and_never_becomes_an_input(ir_version: int) -> None:
    then = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["t"])],
        "then",
        [helper.make_tensor_value_info("w", TensorProto.FLOAT, [4])] if ir_version < 4 else [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, [4])],
        [helper.make_tensor("w", TensorProto.FLOAT, [4], [1, 2, 3, 4])],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["e"])],
        "else",
        [],
        [helper.make_tensor_value_info("e", TensorProto.FLOAT, [4])],
    )
    c = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    listed = [helper.make_tensor_value_info("c", TensorProto.BOOL, [])] if ir_version < 4 else []
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    graph = helper.make_graph([node], "g", [x, *listed], [y], [c])
    imports = [helper.make_opsetid("", 8 if ir_version < 4 else 17)]
    module = import_model(
        helper.make_model(graph, opset_imports=imports, ir_version=ir_version), []
    )
    run_pass(PASS, module)
    moved = [op for op in main_graph(module).body.block.ops if isinstance(op, InitializerOp)]
    assert len(moved) == (1 if ir_version < 4 else 2)
    model = export_model(module)
    assert {i.name for i in model.graph.input} == {"x", *(i.name for i in listed)}
    np.testing.assert_array_equal(values(module, {"x": X})[0], X + np.float32([1, 2, 3, 4]))


def in_function(text: str) -> ModuleOp:
    function = onnx.parser.parse_function(
        f"""<domain: "local", opset_import: ["" : 17]> f (a) => (b) {{
            c = Constant <value = bool {{1}}> () n = Constant <value_int = 2> () {text}
        }}"""
    )
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[4] x) => (float[4] y) { h = local.f(x) y = Add(h, x) }"""
    )
    model.functions.append(function)
    return import_model(model, [])


@pytest.mark.parametrize("then", ["p = Add(a, w)", "p = Identity(w)", ""])
def test_in_a_function_an_initializer_becomes_a_constant(then: str) -> None:
    out = "p" if then else "w"
    module = in_function(
        f"""b = If(c) <then_branch = t () => (float[4] {out}) <float[4] w = {{1, 2, 3, 4}}> {{
            {then}
        }}, else_branch = e () => (float[4] q) {{ q = Neg(a) }}>"""
    )
    run_pass(PASS, module)
    body = module.body.block.first_op
    assert body is not None
    left = [op.name for op in body.walk()][1:-1]
    assert left[:3] == ["onnx.Constant"] * 3
    assert "onnx.If" not in left
    added = X if "Add" in then else np.float32(0)
    np.testing.assert_array_equal(
        values(module, {"x": X})[0], X + (np.float32([1, 2, 3, 4]) + added)
    )


def test_in_a_function_the_initializer_that_a_loop_returns() -> None:
    module = in_function(
        """b = Loop(n, c, a) <body = l (int64 i, bool ci, float[4] s) => (bool ci, float[4] w)
            <float[4] w = {1, 2, 3, 4}> { }>"""
    )
    run_pass(PASS, module)
    assert not any(op.name in ("onnx.Loop", "onnx.initializer") for op in module.walk())
    np.testing.assert_array_equal(values(module, {"x": X})[0], X + np.float32([1, 2, 3, 4]))


def test_the_output_of_a_body_that_stays_is_made_inside() -> None:
    module = from_onnx(
        """g (float[4] x, int64 n) => (float[4] y) <bool c = {1}> {
            r = Relu(x)
            y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4] a) => (bool co, float[4] s) {
                co = Identity(ci)
                s = If(c) <then_branch = t () => (float[4] t) { t = Identity(r) },
                    else_branch = e () => (float[4] e) { e = Neg(a) }>
            }>
        }"""
    )
    feeds = [{"x": X, "n": np.array(n)} for n in (0, 2)]
    before = [values(module.clone(), feed) for feed in feeds]
    traverse(module, InferShapes(), EliminateIdentity(), PASS)
    loop_op = next(op for op in nodes(module) if op.op_type == "Loop")
    assert [op.op_type for op in loop_op.walk() if isinstance(op, NodeOp)] == [
        "Loop",
        "Identity",
        "Identity",
    ]
    for feed, expected in zip(feeds, before, strict=True):
        np.testing.assert_array_equal(values(module, feed), expected)


def test_nested_ifs_are_inlined_all_the_way() -> None:
    depth = 12
    text = "r0 = Relu(x)"
    for level in range(depth):
        text = f"""r{level + 1} = If(c) <
            then_branch = t () => (float[4] t{level}) {{
                {text.replace("x)", "x)", 1)} t{level} = Abs(r{level})
            }}, else_branch = e () => (float[4] e{level}) {{ e{level} = Neg(x) }}>"""
    module = from_onnx(f"g (float[4] x) => (float[4] r{depth}) <bool c = {{1}}> {{ {text} }}")
    check_traversal(module, {"x": X})
    assert op_types(module) == ["Relu", *["Abs"] * depth]


def test_many_nodes_come_out_of_one_if_and_all_are_visited() -> None:
    chain = " ".join(f"t{i + 1} = Neg(t{i})" for i in range(300))
    module = from_onnx(
        f"""g (float[4] x) => (float[4] y) <bool c = {{1}}, float[4] k = {{1, 2, 3, 4}}> {{
            s = If(c) <then_branch = t () => (float[4] t300) {{ t0 = Identity(k) {chain} }},
                else_branch = e () => (float[4] e) {{ e = Neg(x) }}>
            y = Add(x, s)
        }}"""
    )
    traverse(module, InferShapes(), EliminateIdentity(), PASS, ConstantFolding())
    assert op_types(module) == ["Add"]
    np.testing.assert_array_equal(values(module, {"x": X})[0], X + np.float32([1, 2, 3, 4]))


def test_a_condition_that_folds_decides_in_the_same_traversal() -> None:
    module = from_onnx(
        """g (float[2, 1, 3] x) => (float[a, b] y) <int64 one = {1}, int64 two = {2}> {
            d = Sub(two, one) c = Equal(d, one)
            sq = If(c) <then_branch = t () => (float[] t0) <int64[1] ax = {1}> {
                t0 = Squeeze(x, ax)
            }, else_branch = e () => (float[] e0) { e0 = Identity(x) }>
            y = Relu(sq)
        }"""
    )
    traverse(module, InferShapes(), PASS, ConstantFolding())
    assert op_types(module) == ["Squeeze", "Relu"]
    x = np.float32([[[1, -2, np.nan]], [[np.inf, -np.inf, -0.0]]])
    np.testing.assert_array_equal(values(module, {"x": x})[0], np.maximum(x[:, 0], 0))


def test_names_that_meet_outside_are_told_apart() -> None:
    module = from_onnx(
        """g (float[4] x) => (float[4] z) <bool c = {1}, int64 n = {20}> {
            y = If(c) <then_branch = t () => (float[4] acc) { tmp = Abs(x) acc = Neg(tmp) },
                else_branch = e () => (float[4] e) { e = Neg(x) }>
            z = Loop(n, c, x) <body = b (int64 i, bool ci, float[4] acc) =>
                (bool co, float[4] acc2) {
                co = Identity(ci) tmp = Mul(acc, y) acc2 = Add(tmp, y)
            }>
        }"""
    )
    check_traversal(module, {"x": np.float32([1, -0.5, 0.25, 2])})
    assert op_types(module) == ["Abs", "Neg", "Loop"]


def test_outputs_of_bodies_that_meet_outer_names_are_told_apart() -> None:
    module = from_onnx(
        """g (float[4] x, bool p) => (float[4] z) <bool c = {1}> {
            y = If(c) <then_branch = t () => (float[4] q) { q = Neg(x) },
                else_branch = e () => (float[4] e) { e = Neg(x) }>
            z = If(p) <then_branch = t () => (float[4] q) { q = Abs(y) },
                else_branch = e () => (float[4] e) { e = Exp(y) }>
        }"""
    )
    check_traversal(module, {"x": X, "p": np.array(True)}, {"x": X, "p": np.array(False)})


LOOP = """g ({inputs}) => ({outputs}) <int64 n = {{{trips}}}, bool c = {{{condition}}}> {{
    {results} = Loop(n, {given}, x) <body = b (int64 i, bool ci, float[4] acc) =>
        (bool co, float[4] acc2{scanned}) {{
        {ends} = Identity(ci) {body}
    }}>
    {rest}
}}"""


def loop(
    trips: int = 2,
    condition: int = 1,
    given: str = "c",
    body: str = "acc2 = Mul(acc, acc)",
    scanned: str = "",
    results: str = "y",
    outputs: str = "float[4] y",
    ends: str = "co",
    rest: str = "",
    inputs: str = "float[4] x",
    opset: int = 21,
) -> ModuleOp:
    text = LOOP.format(**{k: v for k, v in locals().items() if k != "opset"})
    return from_onnx(text, opset=opset)


@pytest.mark.parametrize(("trips", "condition"), [(0, 1), (-3, 1), (5, 0)])
def test_a_loop_that_is_never_entered(trips: int, condition: int) -> None:
    module = loop(trips, condition, rest="z = Abs(y)", outputs="float[4] z")
    check_traversal(module, {"x": X})
    assert op_types(module) == ["Abs"]


def test_the_initial_value_that_is_an_output_gets_a_copy() -> None:
    module = loop(0)
    check_traversal(module, {"x": X})
    assert op_types(module) == ["Identity"]


def test_the_empty_output_of_a_loop_that_is_never_entered() -> None:
    module = loop(
        0,
        body="acc2 = Mul(acc, acc) row = Shape(acc) s = Exp(acc)",
        scanned=", int64[1] row, float[4] s",
        results="y, rows, s2",
        outputs="float[4] z, int64[k, 1] rows, float[m, 4] s2",
        rest="z = Abs(y)",
    )
    check_traversal(module, {"x": X})
    assert op_types(module) == ["Abs"]
    _, rows, s2 = values(module, {"x": X})
    assert (rows.shape, rows.dtype, s2.shape) == ((0, 1), np.int64, (0, 4))


def test_an_empty_output_of_unknown_shape_is_left() -> None:
    module = loop(
        0,
        body="acc2 = Mul(acc, acc) nz = NonZero(acc)",
        scanned=", int64[1, q] nz",
        results="y, s",
        outputs="float[4] y, int64[k, 1, q] s",
    )
    traverse(module, InferShapes())
    check_unchanged(PASS, module, "its empty output has the type")


@pytest.mark.parametrize("opset", [9, 11, 13, 16, 21])
@pytest.mark.parametrize("given", ["c", ""])
def test_a_short_loop_is_unrolled(opset: int, given: str) -> None:
    module = loop(
        3,
        given=given,
        body="f = Cast<to = 1>(i) m = Add(acc, f) acc2 = Mul(m, x) it = Identity(i) s = Neg(m)",
        scanned=", int64 it, float[4] s",
        results="y, its, rows",
        outputs="float[4] y, int64[k] its, float[k, 4] rows",
        opset=opset,
    )
    check_traversal(module, {"x": X})
    assert "Loop" not in op_types(module)
    assert op_types(module).count("Mul") == 3
    np.testing.assert_array_equal(values(module, {"x": X})[1], np.arange(3))


def test_turns_have_names_of_their_own_and_the_last_has_the_loops() -> None:
    module = loop(2, rest="z = Abs(y)", outputs="float[4] z")
    traverse(module, InferShapes(), PASS)
    muls = [result_names(op)[0] for op in nodes(module) if op.op_type == "Mul"]
    assert muls == ["y/0/acc2", "y"]


def test_one_turn_is_unrolled_whatever_its_size_and_effects() -> None:
    body = "acc2 = RandomNormalLike <seed = 7.0> (acc)"
    module = loop(1, body=body)
    traverse(module, InferShapes(), RemoveConditionals(max_nodes=0))
    assert op_types(module) == ["Identity", "RandomNormalLike"]


def test_one_scan_output_value_is_unsqueezed() -> None:
    module = loop(
        1, body="acc2 = Mul(acc, acc) s = Neg(acc)", scanned=", float[4] s", results="y, rows",
        outputs="float[4] y, float[k, 4] rows",
    )  # fmt: skip
    check_traversal(module, {"x": X})
    assert "Concat" not in op_types(module)


def test_a_loop_over_captured_values_that_carries_nothing() -> None:
    module = from_onnx(
        """g (float[4, 3] x) => (float[4, 3] y) <int64 n = {4}, bool c = {1}> {
            y = Loop(n, c) <body = b (int64 it, bool ci) => (bool co, float[3] sq) {
                row = Gather(x, it) sq = Mul(row, row) co = Identity(ci)
            }>
        }"""
    )
    check_traversal(module, {"x": np.resize(X, (4, 3))})
    assert op_types(module).count("Gather") == 4


def test_nested_loops_and_ifs_inside_turns() -> None:
    module = from_onnx(
        """g (float[4] x, bool p) => (float[4] y) <int64 n = {2}, bool c = {1}> {
            y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4] a) => (bool co, float[4] a2) {
                co = Identity(ci)
                h = Loop(n, ci, a) <body = d (int64 j, bool cj, float[4] u) =>
                    (bool cu, float[4] u2) { cu = Identity(cj) u2 = Add(u, x) }>
                a2 = If(p) <then_branch = t () => (float[4] t) { t = Mul(h, a) },
                    else_branch = e () => (float[4] e) { e = Neg(h) }>
            }>
        }"""
    )
    check_traversal(module, {"x": X, "p": np.array(True)}, {"x": X, "p": np.array(False)})
    assert [t for t in op_types(module) if t != "Identity"] == ["Add", "Add", "If"] * 2


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (loop(opset=8), "Constant takes no tensor<i64> here"),
        (loop(9), "it has 9 turns, more than max-trips = 8"),
        (loop(body="acc2 = RandomNormalLike(acc)"), "draws random numbers"),
        (loop(ends="c2", body="co = Not(ci) acc2 = Neg(acc)"), "may end it before its 2 turns"),
        (loop(ends="c2", body="co = Not(ci) acc2 = Neg(acc)", given=""), "may end it"),
        (
            loop(8, body="a = Exp(acc) b = Exp(a) d = Exp(b) e = Exp(d) f = Exp(e) g = Exp(f) "
                 "h = Exp(g) acc2 = Exp(h)"),
            "72 nodes would be more than max-nodes = 64",
        ),
    ],
)  # fmt: skip
def test_a_loop_that_is_left_says_why(module: ModuleOp, reason: str) -> None:
    check_unchanged(PASS, module, reason)


@pytest.mark.parametrize("opset", [9, 11, 16])
@pytest.mark.parametrize("length", [0, 1, 3])
@pytest.mark.parametrize("backward", [0, 1])
def test_a_short_scan(opset: int, length: int, backward: int) -> None:
    module = from_onnx(
        f"""g (float[4] x, float[4, {length}] xs) => (float[4] z, float[4, {length}] ys) {{
            y, ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                scan_input_directions = [{backward}], scan_output_directions = [1],
                body = b (float[4] s, float[4] e) => (float[4] s2, float[4] o) {{
                    s2 = Mul(s, e) o = Sub(s, e)
                }}> (x, xs)
            z = Abs(y)
        }}""",
        opset=opset,
    )
    xs = np.float32(np.arange(4 * length)).reshape(4, length) - 3
    if length:
        check_traversal(module, {"x": X, "xs": xs})
        assert op_types(module).count("Mul") == length
    else:
        traverse(module, InferShapes(), PASS)
        assert op_types(module) == ["Abs"]
        y, ys = values(module, {"x": X, "xs": xs})
        np.testing.assert_array_equal(y, np.abs(X))
        assert ys.shape == (4, 0)


def test_a_scan_over_batches_is_left() -> None:
    module = from_onnx(
        """g (float[1, 4] x, float[1, 2, 4] xs) => (float[1, 4] y) {
            y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] s2) {
                s2 = Add(s, e)
            }> ( , x, xs)
        }""",
        opset=8,
    )
    check_unchanged(PASS, module, "Scan of version 8 runs over batches")
