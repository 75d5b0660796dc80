"""Constant folding as GE's own tests describe it, rows 1 to 30 of the specification.

`Foo` is Neg, `Sum` is ONNX's Sum; engines stand for GE's registered kernels. Rows about control
edges, Switch nodes and FrameworkOps (4, 9, 10, 25) have no counterpart: data flow is all there is.
Rows that the design overrules stand in docs/decisions/spec-deviations.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import FullyKnown, get_fact, keep, set_no_need
from foldline.dialects.onnx.constant import ConstantOp, is_constant
from foldline.dialects.onnx.op import NodeOp, result_names
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.folding.engine import Declined, Engines, HostEngine
from foldline.stages.folding.known import mark_of
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.replace_with_empty_const import ReplaceWithEmptyConst
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.errors import KernelFailed
from tests.stages.check import Array, from_onnx, named, op_types, parse, type_text
from tests.stages.marking import ShapeMarks


class Engine:
    """Folds one operator as it is told; the host folds the rest."""

    name = "told"

    def __init__(self, op_type: str, outcome: Any):
        self.op_type, self.outcome = op_type, outcome

    def fold(self, op: NodeOp, inputs: Sequence[Array | None]) -> Any:
        if op.op_type != self.op_type:
            return HostEngine().fold(op, inputs)
        return self.outcome


def run(
    text: str, engine: Engine | None = None, *marks: ShapeMarks
) -> tuple[ModuleOp, PassContext]:
    """Infer, mark and fold in one traversal."""
    module = from_onnx(text)
    context = PassContext(module)
    if engine is not None:
        context.engines = Engines([engine])
    passes = (InferShapes(), *marks, ConstantFolding())
    Traversal(context, [given.visitor(context) for given in passes]).run()
    return module, context


def constants(module: ModuleOp) -> dict[str, Array]:
    """Constant nodes and initializers by the name of their value."""
    found: dict[str, Array] = {}
    for op in module.walk():
        if is_constant(op):
            tensor = op.tensor() if isinstance(op, ConstantOp) else op.properties["value"]
            found[result_names(op)[0]] = tensor.array  # pyright: ignore[reportAttributeAccessIssue]
    return found


SUM = """g (float[2] x) => (float[2] y) <float[2] c = {1, 2}, float[2] d = {10, 20}> {
    [sum] s = Sum(c, d) [foo] f = Neg(s) y = Add(f, x)
}"""


def test_row_1_a_node_of_constants_becomes_one_of_the_kernels_type_and_value() -> None:
    told = np.float32([7, 8])
    module, _ = run(SUM.replace("Neg(s)", "Mul(s, x)"), Engine("Sum", (told,)))
    assert op_types(module) == ["Mul", "Add"]
    assert {name: array.tolist() for name, array in constants(module).items()} == {"s": [7, 8]}
    assert type_text(named(module, "foo").operands[0]) == "tensor<2xf32>"


def test_row_2_the_old_weights_are_not_kept() -> None:
    module, _ = run(SUM)
    assert not [op for op in module.walk() if op.name == "onnx.initializer"]


def test_row_3_a_constant_that_others_read_stays() -> None:
    module, _ = run("""g (float[2] x) => (float[2] y, float[2] z)
    <float[2] c = {1, 2}, float[2] d = {3, 4}> { s = Sum(c, d) y = Mul(s, x) z = Mul(d, x) }""")
    assert constants(module).keys() == {"s", "d"}


def test_row_5_a_chain_folds_in_one_run() -> None:
    module, _ = run("""g (float[2] x) => (float[2, 2] y)
    <float[2] c = {1, 2}, float[2] d = {3, 4}, float[2, 1] e = {10, 20}> {
        s = Sum(c, d) t = Add(s, e) y = Mul(t, x)
    }""")
    assert {n: a.tolist() for n, a in constants(module).items()} == {"t": [[14, 16], [24, 26]]}


def test_row_6_each_output_becomes_a_constant() -> None:
    module, _ = run("""g (float[2] x, float[1] u) => (float[2] y, float[1] z)
    <float[3] c = {1, 2, 3}, int64[2] n = {2, 1}> {
        a, b = Split(c, n) y = Mul(a, x) z = Mul(b, u) }""")
    assert {n: a.tolist() for n, a in constants(module).items()} == {"a": [1, 2], "b": [3]}


def test_row_7_a_node_that_no_engine_computes_stays() -> None:
    module, context = run(SUM, Engine("Sum", Declined("no kernel computes Sum")))
    assert op_types(module) == ["Sum", "Neg", "Add"]
    assert [r.message for r in context.remarks] == ["no kernel computes Sum"]


@pytest.mark.parametrize("inputs", ["c, x", "x, c", "x, x"])
def test_row_8_a_node_with_another_input_stays(inputs: str) -> None:
    module, context = run(f"""g (float[2] x) => (float[2] y) <float[2] c = {{1, 2}}> {{
        s = Sum({inputs}) y = Neg(s) }}""")
    assert op_types(module) == ["Sum", "Neg"]
    assert not [r for r in context.remarks if r.kind == "declined"]


@pytest.mark.parametrize(
    ("row", "outcome"),
    [(11, (None,)), (12, ())],
    ids=["row_11_no_array", "row_12_no_result"],
)
def test_rows_11_and_12_an_engine_that_gives_no_result_is_an_error(row: int, outcome: Any) -> None:
    with pytest.raises(KernelFailed, match=r"folding onnx.Sum \(node 'sum'\) gave None"):
        run(SUM, Engine("Sum", outcome))


def test_row_13_an_engine_that_gives_one_of_two_results_is_an_error() -> None:
    text = """g (float[1] x) => (float[1] y, float[1] z) <float[2] c = {1, 2}> {
        [split] a, b = Split<num_outputs = 2>(c) y = Mul(a, x) z = Mul(b, x) }"""
    with pytest.raises(KernelFailed, match="gave None for result 1"):
        run(text, Engine("Split", (np.float32([1]),)))


def test_row_13_but_of_a_result_that_nobody_reads_none_is_needed() -> None:
    module, _ = run(
        """g (float[1] x) => (float[1] y) <float[2] c = {1, 2}> {
        a, b = Split<num_outputs = 2>(c) y = Mul(a, x) }""",
        Engine("Split", (np.float32([1]),)),
    )
    assert constants(module).keys() == {"a"}


def test_row_14_dangling_nodes_do_no_harm() -> None:
    module, _ = run(SUM.replace("y = Add", "dead = Abs(s) y = Add"))
    assert op_types(module) == ["Add"]


def test_row_15_an_engine_that_declines_leaves_the_node() -> None:
    module, _ = run(SUM, Engine("Sum", Declined("not today")))
    assert op_types(module) == ["Sum", "Neg", "Add"]


def flagged(flag: Any, text: str, name: str, *marks: ShapeMarks) -> tuple[ModuleOp, PassContext]:
    module = from_onnx(text)
    flag(named(module, name))
    context = PassContext(module)
    passes = (InferShapes(), *marks, ConstantFolding())
    Traversal(context, [given.visitor(context) for given in passes]).run()
    return module, context


def test_row_16_what_a_pass_keeps_stays() -> None:
    module, _ = flagged(lambda op: set_no_need(op, "test"), SUM, "sum")
    assert op_types(module) == ["Sum", "Neg", "Add"]


ADD = """g (float[2, 3] x, int64[2] z) => (int64[2] y) {
    [shape] s = Shape(x) [add] a = Add(s, s) y = Mul(a, z)
}"""


def test_row_17_a_node_fed_by_potential_constants_becomes_one() -> None:
    module, _ = run(ADD, None, ShapeMarks())
    assert op_types(module) == ["Shape", "Add", "Mul"]
    fact = get_fact(named(module, "add").results[0])
    assert isinstance(fact, FullyKnown)
    assert (fact.value.array.tolist(), fact.source) == ([4, 6], "constant-folding")


def test_row_18_a_mark_goes_when_the_value_cannot_be_computed_any_more() -> None:
    module, context = run(ADD, None, ShapeMarks())
    context.engines = Engines([Engine("Add", Declined("not any more"))])
    ConstantFolding().run(context)
    assert mark_of(named(module, "add")) is None
    assert mark_of(named(module, "shape")) is not None
    assert op_types(module) == ["Shape", "Add", "Mul"]


def test_row_19_the_shape_of_the_value_is_that_of_the_node_and_its_readers() -> None:
    """`NonZero` of a potential constant is of a shape that inference does not know."""
    module, _ = run(
        """g (float[2, 3] x, int64[1, 2] z) => (int64[?, ?] y) {
        [shape] s = Shape(x) [add] a = NonZero(s) [out] y = Mul(a, z) }""",
        None,
        ShapeMarks(),
    )
    assert mark_of(named(module, "add")) is not None
    assert type_text(named(module, "out").operands[0]) == "tensor<1x2xi64>"
    assert type_text(named(module, "out").results[0]) == "tensor<1x2xi64>"


def test_row_20_a_result_of_unknown_size_is_neither_folded_nor_marked() -> None:
    module = parse(
        """%c = onnx.Constant() {value_floats = array<f32: 1.0, 2.0>} : tensor<2xf32>
        %a = onnx.Neg(%c) : tensor<?xf32>
        %y = onnx.Add(%a, %x) : tensor<2x3xf32>
        return(%y)"""
    )
    ConstantFolding().run(PassContext(module))
    assert op_types(module) == ["Neg", "Add"]
    assert not any(mark_of(op) for op in module.walk())


def test_row_21_what_the_user_keeps_stays() -> None:
    module, context = flagged(keep, SUM, "sum")
    assert op_types(module) == ["Sum", "Neg", "Add"]
    assert [r.message for r in context.remarks] == ["fold.keep is set"]


def test_row_22_what_the_user_keeps_is_not_marked() -> None:
    module, _ = flagged(keep, ADD, "add", ShapeMarks())
    assert mark_of(named(module, "shape")) is not None
    assert mark_of(named(module, "add")) is None


def test_row_24_empty_results_fold_like_others_unless_they_are_replaced_before() -> None:
    text = """g (float[1] x) => (float[1] y) <float[0] c = {}> {
        a = Neg(c) b = ReduceSum(a) y = Mul(b, x) }"""
    module, _ = run(text)
    assert op_types(module) == ["Mul"]
    module = from_onnx(text)
    context = PassContext(module)
    context.engines = Engines([Engine("Neg", Declined("never asked"))])
    passes = (InferShapes(), ReplaceWithEmptyConst(), ConstantFolding())
    Traversal(context, [given.visitor(context) for given in passes]).run()
    assert op_types(module) == ["Mul"]


def test_row_25_a_node_fed_by_a_branch_stays() -> None:
    module, _ = run("""g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        a = If(c) <then_branch = t () => (float[2] u) { u = Neg(x) },
                   else_branch = e () => (float[2] v) { v = Abs(x) }>
        b = Add(a, w) y = Neg(b) }""")
    assert op_types(module) == ["If", "Add", "Neg"]


def test_row_26_an_input_of_the_model_is_no_constant() -> None:
    module, _ = run(
        "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { a = Add(x, c) y = Neg(a) }"
    )
    assert op_types(module) == ["Add", "Neg"]


def test_row_27_statistics_add_up() -> None:
    _, context = run("""g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> {
        a = Neg(c) b = Neg(a) y = Add(b, x) }""")
    (row,) = context.engines.rows
    assert (row.engine, row.op_type, row.computed, row.failed) == ("host", "Neg", 2, 0)
    assert row.seconds > 0


def test_row_28_the_name_of_the_pass() -> None:
    assert ConstantFolding().name == ConstantFolding.INFO.name == "constant-folding"


def test_row_29_without_an_engine_nothing_folds() -> None:
    module = from_onnx(SUM)
    context = PassContext(module)
    context.engines = Engines([])
    InferShapes().run(context)
    ConstantFolding().run(context)
    assert op_types(module) == ["Sum", "Neg", "Add"]
    assert [r.message for r in context.remarks] == ["there is no folding engine"]
