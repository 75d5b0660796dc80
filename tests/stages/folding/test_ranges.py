"""Bounds of integers: every rule against the kernels, on all inputs that the bounds allow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from foldline.dialects import OPERATORS
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.kernels.registry import compute, find_kernel
from foldline.stages.context import PassContext
from foldline.stages.folding.ranges import (
    RULES,
    SIZES,
    Range,
    join,
    range_of_tensor,
    range_of_type,
)
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import constant, from_onnx, nodes, parse

FULL8 = Range(-128, 127)


def rule_of(op: OnnxOp, *ranges: Range | None) -> Range | None:
    given: dict[SSAValue, Range | None] = dict(zip(op.operands, ranges, strict=True))
    return RULES[type(op)](op, lambda value: given[value])


def node(text: str) -> OnnxOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    op = next(op for op in nodes(module) if op.op_type != "Constant")
    assert isinstance(op, OnnxOp)
    return op


BINARY = ("Add", "Sub", "Mul", "Div", "Mod")
COMPARED = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
ENDS = [Range(-7, -3), Range(-4, 3), Range(0, 2), Range(2, 5), Range(4, 4), Range(-1, -1)]


@pytest.mark.parametrize("op_type", [*BINARY, *COMPARED, "Max", "Min", "Mod<fmod = 1>"])
def test_the_bounds_hold_all_results_and_arithmetic_reaches_them(op_type: str) -> None:
    """GE computes the two ends only, which is wrong where an operator falls (weak spot 19)."""
    element = "bool" if op_type in COMPARED else "int64"
    op = node(f"g (int64 a, int64 b) => ({element} y) {{ y = {op_type}(a, b) }}")
    entry = find_kernel("", op.op_type, op.since)
    assert entry is not None
    for x, y in product(ENDS, ENDS):
        if op.op_type in ("Div", "Mod") and y.low <= 0 <= y.high:
            assert rule_of(op, x, y) is None
            continue
        found = rule_of(op, x, y)
        assert found is not None
        values = [
            int(call(entry, op, np.int64(a), np.int64(b)))
            for a, b in product(range(x.low, x.high + 1), range(y.low, y.high + 1))
        ]
        assert found.low <= min(values), (x, y)
        assert found.high >= max(values), (x, y)
        if op.op_type != "Mod":
            assert found == (min(values), max(values)), (x, y)


def call(entry: Any, op: OnnxOp, *inputs: Any) -> Any:
    return compute(entry, [np.asarray(x) for x in inputs], **op.attribute_values())


@pytest.mark.parametrize("op_type", ["Neg", "Abs", "Sign", "Relu"])
def test_unary_bounds_are_exact(op_type: str) -> None:
    op = node(f"g (int64 a) => (int64 y) {{ y = {op_type}(a) }}")
    entry = find_kernel("", op_type, op.since)
    for x in ENDS:
        values = [int(call(entry, op, np.int64(a))) for a in range(x.low, x.high + 1)]
        assert rule_of(op, x) == (min(values), max(values))


@pytest.mark.parametrize("op_type", ["And", "Or"])
def test_logic(op_type: str) -> None:
    op = node(f"g (bool a, bool b) => (bool y) {{ y = {op_type}(a, b) }}")
    for x, y in product([Range(0, 0), Range(0, 1), Range(1, 1)], repeat=2):
        function = min if op_type == "And" else max
        assert rule_of(op, x, y) == (function(x.low, y.low), function(x.high, y.high))
    op = node("g (bool a) => (bool y) { y = Not(a) }")
    assert rule_of(op, Range(1, 1)) == (0, 0)


CLIP = "g (int8 a, int8 l, int8 h) => (int8 y) { y = Clip(a, l, h) }"
WHERE = "g (bool c, int8 a, int8 b) => (int8 y) { y = Where(c, a, b) }"
SUM = "g (int32[2, 3] a) => (int32 y) { y = ReduceSum<keepdims = 0>(a) }"
ROWS: Sequence[tuple[str, Sequence[Range | None], Range | None]] = [
    (CLIP, [FULL8, Range(0, 2), Range(5, 6)], Range(0, 6)),
    (CLIP, [FULL8, Range(7, 7), Range(3, 3)], Range(3, 3)),
    (CLIP, [FULL8, Range(4, 4), Range(4, 4)], Range(4, 4)),
    ("g (int8 a, int8 h) => (int8 y) { y = Clip(a, , h) }", [FULL8, None, Range(1, 1)],
     Range(-128, 1)),
    (WHERE, [Range(0, 1), Range(1, 2), Range(8, 9)], Range(1, 9)),
    (WHERE, [Range(1, 1), Range(1, 2), Range(8, 9)], Range(1, 2)),
    (WHERE, [Range(0, 0), Range(1, 2), Range(8, 9)], Range(8, 9)),
    (WHERE, [Range(0, 1), Range(1, 2), None], None),
    ("g (int64 a) => (bool y) { y = Cast<to = 9>(a) }", [Range(-2, 2)], Range(0, 1)),
    ("g (int64 a) => (bool y) { y = Cast<to = 9>(a) }", [Range(-2, -1)], Range(1, 1)),
    ("g (int64 a) => (bool y) { y = Cast<to = 9>(a) }", [Range(0, 0)], Range(0, 0)),
    ("g (float a) => (bool y) { y = Cast<to = 9>(a) }", [None], None),
    ("g (int64 a) => (int8 y) { y = Cast<to = 3>(a) }", [Range(3, 4)], Range(3, 4)),
    ("g (int64[2] a, int64[1] b) => (int64[3] y) { y = Concat<axis = 0>(a, b) }",
     [Range(3, 4), Range(9, 9)], Range(3, 9)),
    (SUM, [Range(-2, 3)], Range(-12, 18)),
    ("g (int32[2, n] a) => (int32 y) { y = ReduceSum<keepdims = 0>(a) }", [Range(1, 1)], None),
    ("g (int32[0] a) => (int32 y) { y = ReduceSum<keepdims = 0>(a) }", [Range(1, 1)], Range(0, 0)),
    ("g (int8[2] a) => (int8 y) { y = ReduceMax<keepdims = 0>(a) }", [Range(1, 3)], Range(1, 3)),
    ("g (int8[0] a) => (int8 y) { y = ReduceMax<keepdims = 0>(a) }", [Range(1, 3)], None),
    ("g (int8[n] a) => (int8 y) { y = ReduceMin<keepdims = 0>(a) }", [Range(1, 3)], None),
    ("g (float[2, 7] a) => (int64[2] y) { y = Shape(a) }", [None], Range(2, 7)),
    ("g (float[2, n] a) => (int64[2] y) { y = Shape(a) }", [None], SIZES),
    ("g (float[2, 7] a) => (int64 y) { y = Size(a) }", [None], Range(14, 14)),
    ("g (float[n] a) => (int64 y) { y = Size(a) }", [None], SIZES),
    ("g (float[4, 1] a) => (int64[4] y) { y = ArgMax<axis = -1, keepdims = 0>(a) }", [None],
     Range(0, 0)),
    ("g (float[4, 3] a) => (int64[3] y) { y = ArgMin<keepdims = 0>(a) }", [None], Range(0, 3)),
    ("g (float[n] a) => (int64 y) { y = ArgMax<keepdims = 0>(a) }", [None], SIZES),
    ("g (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }",
     [Range(1, 2), Range(5, 8), Range(1, 3)], Range(1, 7)),
    ("g (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }",
     [Range(9, 9), Range(2, 5), Range(-2, -1)], Range(3, 9)),
    ("g (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }",
     [Range(9, 9), Range(2, 5), Range(-2, 1)], None),
    ("g (int64[n] a) => (int64[m] y) { y = ConstantOfShape<value = int64[1] {4}>(a) }", [SIZES],
     Range(4, 4)),
    ("g (int64[n] a) => (float[m] y) { y = ConstantOfShape(a) }", [SIZES], None),
    ("g (int64[3] a, int64 b, int64[2] c) => (int64[3, m] y) { y = OneHot(a, b, c) }",
     [SIZES, SIZES, Range(0, 5)], Range(0, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "expected"), ROWS)
def test_rules(text: str, given: Sequence[Range | None], expected: Range | None) -> None:
    assert rule_of(node(text), *given) == expected


def test_types_and_tensors_have_bounds() -> None:
    types = [("i1", Range(0, 1)), ("ui8", Range(0, 255)), ("i8", FULL8), ("f32", None)]
    for element, expected in types:
        module = parse(f"%y = onnx.Neg(%x) : tensor<2x{element}> return(%y)")
        assert range_of_type(nodes(module)[0].results[0].type) == expected
    module = parse(f"%y = {constant([3, -5, 4])} return(%y)", "")
    tensor = nodes(module)[0].properties["value"]
    assert isinstance(tensor, TensorAttr)
    assert range_of_tensor(tensor) == (-5, 4)
    assert range_of_tensor(TensorAttr.of(np.zeros(0, np.int64))) is None
    assert range_of_tensor(TensorAttr.of(np.zeros(5000, np.int64))) is None
    assert range_of_tensor(TensorAttr.of(np.broadcast_to(np.int64(3), (5000,)))) == (3, 3)
    assert range_of_tensor(TensorAttr.of(np.float32([1]))) is None
    assert range_of_tensor(TensorAttr.of(np.uint64([2**64 - 1]))) == (2**64 - 1, 2**64 - 1)
    assert range_of_tensor(TensorAttr.of(np.bool_([True, True]))) == (1, 1)


def test_a_join_knows_nothing_where_one_is_unknown() -> None:
    assert join(Range(1, 2), Range(-1, 0)) == (-1, 2)
    assert join(Range(1, 2), None) is None
    assert join() is None


def test_rules_are_of_operators_that_exist() -> None:
    assert all(OPERATORS[op.DOMAIN, op.OP_TYPE] is op for op in RULES)
