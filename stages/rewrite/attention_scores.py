"""How the scores of attention are made: a product, what scales it, and a mask.

Add(Mul(MatMul(q, k'), 0.125), mask)      the product, scaled by 0.125, under a mask that is added
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.math import AddOp, DivOp, MulOp, WhereOp
from foldline.dialects.onnx.nn import MatMulOp
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.rewrite.attention_source import (
    Lined,
    reshaped,
    scaled_operand,
    sole_producer,
)


@dataclass(frozen=True)
class Scores:
    """The product before Softmax, and what happens to it."""

    product: MatMulOp
    scale: float
    mask: SSAValue | None = None
    mask_value: float | None = None
    """What stands for a score that a boolean mask hides."""
    mask_keeps: bool = True


def scores_of(value: SSAValue, axes: int, lined: Lined | None) -> Scores | str:
    """How scores are made, or why they are none of attention."""
    op = sole_producer(value, value)
    reasons: list[str] = []
    for data, scores in _unmasked(op, value, axes):
        found = _product(data, axes, lined)
        if isinstance(found, tuple):
            return Scores(*found, *scores)
        reasons.append(found)
    return reasons[0]


def _unmasked(
    op: NodeOp | None, value: SSAValue, axes: int
) -> Iterator[tuple[SSAValue, tuple[SSAValue | None, float | None, bool]]]:
    """Values that may be the scores without a mask, and what the mask is then."""
    match op:
        case AddOp():
            left, right = op.operands
            yield left, (right, None, True)
            yield right, (left, None, True)
        case WhereOp():
            condition, *branches = op.operands
            for keeps, data, other in ((True, *branches), (False, *reversed(branches))):
                number = constant_tensor(other)
                if number is not None and number.array.size == 1 and number.array.ndim <= axes:
                    yield data, (condition, float(number.array.reshape(())), keeps)
        case _:
            pass
    yield value, (None, None, True)


def _product(value: SSAValue, axes: int, lined: Lined | None) -> tuple[MatMulOp, float] | str:
    """The product that a value is, up to a scale, and to its heads being lined up."""
    scale = 1.0
    op = sole_producer(value, value)
    while isinstance(op, MulOp | DivOp):
        scaled = scaled_operand(op, axes)
        if scaled is None:
            return f"the scale in {op.op_type} is not a constant of one element"
        value, scale = scaled[0], scale * scaled[1]
        op = sole_producer(value, value)
    if lined is not None:
        inner = reshaped(value, lined.apart, value)
        if inner is None:
            return "the scores are not taken apart as the shares are lined up"
        op = sole_producer(inner, value)
    if isinstance(op, MatMulOp):
        return op, scale
    if not value.has_one_use():
        return "the scores are read by others as well"
    return f"the scores are made by {'an input' if op is None else op.op_type}, not by MatMul"
