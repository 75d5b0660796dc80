"""potential-const-taken-effect: marks become constants, or go."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import FullyKnown, folded_nodes, get_fact, keep, set_fact
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import node_name, result_names
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.stages.context import PassContext
from foldline.stages.folding.known import mark_of
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.potential_const_taken_effect import PotentialConstTakenEffect
from foldline.support.report import MarkRow
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
)
from tests.stages.marking import TAKING, traverse

PASS = PotentialConstTakenEffect()
TEXT = """g (float[2, 3] x, float[2] z) => (float[2] y) {
    [shape] s = Shape(x) [cast] c = Cast<to = 1>(s) [root] r = Sqrt(c) [out] y = Mul(r, z)
}"""


def marked(text: str = TEXT) -> ModuleOp:
    module = from_onnx(text)
    traverse(PassContext(module))
    return module


def fact(values: object, dtype: str = "int64", source: str = "test") -> FullyKnown:
    return FullyKnown(TensorAttr.of(np.asarray(values, dtype)), source)


def constants(module: ModuleOp) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for op in nodes(module):
        if isinstance(op, ConstantOp) and (tensor := op.tensor()) is not None:
            found[result_names(op)[0]] = tensor.array
    return found


def test_all_marks_are_folded_in_one_sweep() -> None:
    module = marked()
    context = PassContext(module)
    PASS.run(context)
    assert op_types(module) == ["Mul"]
    assert constants(module).keys() == {"r"}
    np.testing.assert_array_equal(constants(module)["r"], np.sqrt(np.float32([2, 3])))
    folded = nodes(module)[0]
    assert (node_name(folded), folded_nodes(folded)) == ("root", ("root", "cast", "shape"))
    assert [str(r) for r in context.remarks] == [
        "potential-const-taken-effect: applied onnx.Shape 'shape': folded what shape-marks marked",
        "potential-const-taken-effect: applied onnx.Cast 'cast': "
        "folded what constant-folding marked",
        "potential-const-taken-effect: applied onnx.Sqrt 'root': "
        "folded what constant-folding marked",
    ]


def test_a_marked_node_becomes_its_constant() -> None:
    before = parse(
        "%s = onnx.Shape(%x) : tensor<2xi64> %y = onnx.Neg(%s) : tensor<2xi64> return(%y)"
    )
    set_fact(nodes(before)[0].results[0], fact([2, 3]))
    after = parse(f"%s = {constant([2, 3])} %y = onnx.Neg(%s) : tensor<2xi64> return(%y)")
    check_pass(PASS, before, after)


def test_values_are_the_same_bits() -> None:
    check_values(
        PASS, marked(), {"x": np.zeros((2, 3), np.float32), "z": np.float32([-0.0, np.nan])}
    )


def test_row_47_without_marks_nothing_happens() -> None:
    check_unchanged(PASS, from_onnx(TEXT))


def test_row_48_one_mark_is_folded_and_one_that_is_no_mark_is_not() -> None:
    module = marked("""g (float[2, 3] x, float[2] z) => (int64[2] y, int64[2] v) {
        [one] s = Shape(x) y = Neg(s) [two] t = Shape(x) v = Neg(t)
    }""")
    set_fact(named(module, "two").results[0], None)
    PASS.run(PassContext(module))
    assert op_types(module) == ["Neg", "Shape", "Neg"]


def test_row_49_a_mark_that_went_with_an_earlier_one_is_skipped() -> None:
    module = marked()
    set_fact(named(module, "shape").results[0], None)
    context = PassContext(module)
    PASS.run(context)
    assert op_types(module) == ["Shape", "Cast", "Sqrt", "Mul"]
    assert [(r.node, r.message) for r in context.remarks] == [
        ("cast", "dropped what constant-folding marked: operand 0 is not known any more")
    ]
    assert context.rewriter.marks["constant-folding"].dropped == 2


def test_row_50_an_empty_graph() -> None:
    check_unchanged(PASS, parse("return(%x)"))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (fact([2.0, 3.0], "float32"), "result 0 is tensor<2xi64>, the mark tensor<2xf32>"),
        (fact([2, 3, 4]), "result 0 is tensor<2xi64>, the mark tensor<3xi64>"),
        (fact([[2, 3]]), "result 0 is tensor<2xi64>, the mark tensor<1x2xi64>"),
        (fact([2, 3], source="constant-folding"), "operand 0 is not known any more"),
    ],
)
def test_row_51_a_mark_that_does_not_hold_is_dropped(wrong: FullyKnown, reason: str) -> None:
    module = parse(
        "%s = onnx.Shape(%x) : tensor<2xi64> %y = onnx.Neg(%s) : tensor<2xi64> return(%y)"
    )
    shape = nodes(module)[0]
    set_fact(shape.results[0], wrong)
    context = check_unchanged(PASS, module)
    assert mark_of(shape) is None
    (remark,) = context.remarks
    assert remark.message == f"dropped what {wrong.source} marked: {reason}"
    assert context.rewriter.marks == {wrong.source: MarkRow(wrong.source, dropped=1)}


def test_marks_are_not_trusted_after_a_bound_was_reached() -> None:
    module = marked()
    context = PassContext(module)
    context.reached("a graph was left")
    PASS.run(context)
    assert op_types(module) == ["Shape", "Cast", "Sqrt", "Mul"]
    assert not any(mark_of(op) for op in module.walk())


def test_what_names_an_output_or_is_kept_stays_marked_and_its_readers_fold() -> None:
    text = """g (float[2, 3] x, float[2] z) => (int64[2] s, float[2] y) {
        [shape] s = Shape(x) [cast] c = Cast<to = 1>(s) [root] r = Sqrt(c) y = Mul(r, z)
    }"""
    module = marked(text)
    context = PassContext(module)
    PASS.run(context)
    assert op_types(module) == ["Shape", "Mul"]
    assert get_fact(named(module, "shape").results[0]) == fact([2, 3], source="shape-marks")
    assert [r.message for r in context.remarks if r.kind == "declined"] == [
        "it names the output 's' of the model and fold.graphOutputs is false"
    ]
    module = marked(text)
    PotentialConstTakenEffect(graph_outputs=True).run(PassContext(module))
    assert op_types(module) == ["Mul"]
    module = marked(TEXT)
    keep(named(module, "shape"))
    check = PassContext(module)
    PASS.run(check)
    assert op_types(module) == ["Shape", "Mul"]
    assert [r.message for r in check.remarks if r.kind == "declined"] == ["fold.keep is set"]
    module = marked(TEXT)
    PotentialConstTakenEffect(skip=("op:Cast",)).run(PassContext(module))
    assert op_types(module) == ["Cast", "Mul"]


def test_the_limit_of_bytes_holds_here_too() -> None:
    module = marked()
    check_unchanged(
        PotentialConstTakenEffect(max_bytes=0, skip=("op:Cast", "op:Sqrt")),
        module,
        "its result of 16 bytes is larger than its inputs of 0 bytes and than fold.maxBytes = 0",
    )


def test_marks_in_bodies_and_functions_fold() -> None:
    module = marked("""g (bool c, float[2, 3] x, int64[2] z) => (int64[2] y) {
        y = If(c) <then_branch = t () => (int64[2] u) { s = Shape(x) u = Add(s, z) },
                   else_branch = e () => (int64[2] v) { v = Shape(x) }>
    }""")
    PASS.run(PassContext(module))
    assert sum(op.name == "onnx.Shape" for op in module.walk()) == 0
    module = marked("""g (float[2, 3] x, int64[2] z) => (int64[2] y) { y = local.f(x, z) }
    <opset_import: ["" : 21], domain: "local"> f (p, q) => (r) { s = Shape(p) r = Add(s, q) }""")
    PASS.run(PassContext(module))
    assert sum(op.name == "onnx.Shape" for op in module.walk()) == 0


def test_two_results_become_two_constants() -> None:
    module = marked("""g (float[4, 2] x, int64[1] z) => (int64[1] y, int64[1] v) {
        s = Shape(x) a, b = Split<num_outputs = 2>(s) y = Add(a, z) v = Sub(b, z)
    }""")
    PASS.run(PassContext(module))
    assert op_types(module) == ["Add", "Sub"]
    assert {n: v.tolist() for n, v in constants(module).items()} == {"a": [4], "b": [2]}


def test_as_a_callback_it_starts_another_round() -> None:
    """What could not be marked, a kernel's declining say, is folded once the inputs are real."""
    module = from_onnx(TEXT)
    context = traverse(PassContext(module), [*TAKING[:2], TAKING[3]])
    assert op_types(module) == ["Cast", "Sqrt", "Mul"]
    assert [r.op_type for r in context.remarks if r.kind == "applied"] == ["onnx.Shape"]
    module = from_onnx(TEXT)
    context = traverse(PassContext(module), TAKING)
    assert op_types(module) == ["Mul"]
    assert all(row.taken == {"": row.made} for row in context.rewriter.marks.values())


def test_without_it_marks_stay_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(self: PotentialConstTakenEffect, context: PassContext) -> None: ...

    module = marked()
    monkeypatch.setattr(PotentialConstTakenEffect, "run", nothing)
    check_unchanged(PASS, module)
    assert sum(mark_of(op) is not None for op in main_graph(module).body.block.ops) == 3
    ConstantFolding().run(PassContext(module))
    assert op_types(module) == ["Shape", "Cast", "Sqrt", "Mul"]
