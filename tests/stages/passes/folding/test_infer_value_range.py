"""infer-value-range: where the bounds of integers meet, the value is known."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import FullyKnown, keep, set_fact
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import with_dims
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.folding.known import mark_of
from foldline.stages.passes.folding.infer_value_range import InferValueRange
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import (
    Array,
    check_pass,
    check_unchanged,
    check_values,
    from_onnx,
    named,
    nodes,
    op_types,
    parse,
    splat,
)

PASS = InferValueRange()
MARK = InferValueRange(mark_only=True)


def inferred(text: str) -> ModuleOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    return module


def test_bounds_that_meet_are_a_constant() -> None:
    text = """%one = {one}
        %m = onnx.Mod(%x, %one) : tensor<2x3xi64>
        %y = onnx.Add(%m, %x) : tensor<2x3xi64>
        return(%y)"""
    one = "onnx.Constant() {value_int = 1 : i64} : tensor<i64>"
    before = parse(text.replace("{one}", one), "%x: tensor<2x3xi64>")
    after = parse(
        f"""%m = {splat(0, (2, 3), np.int64)}
        %y = onnx.Add(%m, %x) : tensor<2x3xi64>
        return(%y)""",
        "%x: tensor<2x3xi64>",
    )
    check_pass(PASS, before, after)


FOLDED: list[tuple[str, Array]] = [
    (
        """g (float[n] x) => (bool y) <int64 z = {0}> { s = Size(x) r = Less(s, z) y = Not(r) }""",
        np.float32([1, 2, 3]),
    ),
    (
        """g (uint8[3] x) => (bool[3] y) <uint8 z = {0}> { r = GreaterOrEqual(x, z) y = Not(r) }""",
        np.uint8([0, 1, 255]),
    ),
    (
        """g (float[3, 1] x) => (int64[3] y) {
            r = ArgMax<axis = 1, keepdims = 0>(x) y = Neg(r) }""",
        np.float32([[np.nan], [-np.inf], [0]]),
    ),
    (
        """g (bool[2] x) => (int64[2] y) <int64 z = {5}> {
            i = Cast<to = 7>(x) r = Clip(i, z, z) y = Neg(r) }""",
        np.bool_([False, True]),
    ),
]


@pytest.mark.parametrize(("text", "x"), FOLDED)
def test_it_folds_and_keeps_the_bits(text: str, x: Array) -> None:
    module = inferred(text)
    check_values(PASS, module, {"x": x})
    assert nodes(module)[-2].op_type == "Constant"
    assert nodes(module)[-1].operands[0] is nodes(module)[-2].results[0]


WRONG_IF_MONOTONE = """g (int64[2] x) => (int64[2] y)
<int64 l = {{0}}, int64 h = {{3}}, int64 c = {{{c}}}> {{
    b = Clip(x, l, h) r = {op} y = Neg(r)
}}"""


@pytest.mark.parametrize("op", ["Sub(c, b)", "Mul(b, c)", "Sub(b, b)", "Mod(b, c)", "Div(c, b)"])
@pytest.mark.parametrize("c", ["-2", "2"])
def test_weak_spot_19_operators_that_fall_are_not_taken_for_growing(op: str, c: str) -> None:
    """Ends computed as if every operator grew: Sub(c, [0, 3]) would be [c, c - 3]."""
    module = inferred(WRONG_IF_MONOTONE.format(op=op, c=c))
    check_unchanged(PASS, module)


def test_what_may_wrap_around_is_left() -> None:
    module = inferred("""g (uint8[2] x) => (uint8[2] y) <uint8 l = {255}, uint8 o = {1}> {
        b = Clip(x, l, l) r = Add(b, x) y = Mul(r, o) }""")
    PASS.run(PassContext(module))
    assert op_types(module) == ["Add", "Mul"]


def test_mark_only_marks_and_takes_back() -> None:
    module = inferred("""g (float[4, 1] x) => (int64[4] y) {
        [arg] r = ArgMax<axis = 1, keepdims = 0>(x) [neg] s = Neg(r) y = Abs(s) }""")
    context = PassContext(module)
    passes = (InferShapes(), MARK)
    Traversal(context, [given.visitor(context) for given in passes]).run()
    mark = mark_of(named(module, "neg"))
    assert mark is not None
    assert mark.source == "infer-value-range"
    assert mark.tensors == (TensorAttr.of(np.zeros(4, np.int64)),)
    assert op_types(module) == ["ArgMax", "Neg", "Abs"]
    x = main_graph(module).body.block.args[0]
    context.rewriter.set_type(x, with_dims(x.type, (4, 2)))
    Traversal(context, [given.visitor(context) for given in passes]).run()
    assert not any(mark_of(op) for op in module.walk())


def test_other_bounds_of_an_input_reach_all_who_went_by_them() -> None:
    """In one traversal: an input of a chain turns out otherwise after the chain was visited."""
    module = inferred("""g (float[4, 1] x) => (int64[4] y) {
        [arg] r = ArgMax<axis = 1, keepdims = 0>(x) [id] i = Identity(r) [neg] s = Neg(i) y = Abs(s)
    }""")
    context = PassContext(module)
    visitor = MARK.visitor(context)
    traversal = Traversal(context, [visitor])
    traversal.run()
    assert mark_of(named(module, "neg")) is not None
    x = main_graph(module).body.block.args[0]
    context.rewriter.set_type(x, with_dims(x.type, (4, 2)))
    Traversal(context, [visitor]).run()
    assert not any(mark_of(op) for op in module.walk())


LEFT: dict[str, str] = {
    "floats": "g (float[2] x) => (float[2] y) <float z = {0}> { r = Mul(x, z) y = Neg(r) }",
    "an_operator_without_a_rule": "g (int64[2] x) => (int64[2] y) { r = Pow(x, x) y = Neg(r) }",
    "bounds_that_differ": "g (bool[2] x) => (int64[2] y) { r = Cast<to = 7>(x) y = Neg(r) }",
    "a_result_of_unknown_size": "g (int64[n] x) => (int64[n] y) <int64 one = {1}> { "
    "r = Mod(x, one) y = Add(r, x) }",
    "no_elements": "g (int64[0] x) => (int64[0] y) <int64 one = {1}> { r = Mod(x, one) "
    "y = Add(r, x) }",
    "division_by_what_may_be_zero": "g (int64[2] x) => (int64[2] y) <int64 z = {0}> { "
    "r = Div(z, x) y = Neg(r) }",
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT.keys())
def test_it_leaves_alone(text: str) -> None:
    context = check_unchanged(PASS, inferred(text))
    assert not len(context.remarks)


KEPT = (
    """g (int64[2] x) => (int64[2] y) <int64 one = {1}> { [mod] r = Mod(x, one) y = Add(r, x) }"""
)


def test_what_is_kept_stays_and_the_mark_of_another_pass_too() -> None:
    module = inferred(KEPT)
    keep(named(module, "mod"))
    check_unchanged(PASS, module, "fold.keep is set")
    module = inferred(KEPT)
    fact = FullyKnown(TensorAttr.of(np.int64([0, 0])), "other")
    set_fact(named(module, "mod").results[0], fact)
    check_unchanged(MARK, module)
    mark = mark_of(named(module, "mod"))
    assert mark is not None
    assert mark.source == "other"


def test_an_output_is_marked_only() -> None:
    module = inferred("g (int64[2] x) => (int64[2] y) <int64 one = {1}> { y = Mod(x, one) }")
    check_unchanged(PASS, module, "it names the output 'y' of the model")
    assert mark_of(nodes(module)[0]) is not None


def test_marked_inputs_have_bounds() -> None:
    module = inferred("""g (float[n] x, int64[1] z) => (int64[1] y) {
        [shape] s = Shape(x) [sign] r = Sign(s) y = Add(r, z) }""")
    check_unchanged(PASS, module)
    seven: Array = np.int64([7])
    set_fact(named(module, "shape").results[0], FullyKnown(TensorAttr.of(seven), "test"))
    MARK.run(PassContext(module))
    mark = mark_of(named(module, "sign"))
    assert mark is not None
    assert mark.tensors == (TensorAttr.of(np.int64([1])),)
