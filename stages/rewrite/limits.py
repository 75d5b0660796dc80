"""Values limited to an interval, in their spellings: Clip, and Min of Relu."""

from __future__ import annotations

from foldline.dialects.onnx.math import ClipOp
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.rewrite.factors import Core
from foldline.stages.rewrite.slots import Predicate
from foldline.stages.rewrite.tracing import PatternOperators, Traced


def within(low: float, high: float) -> Predicate:
    """The predicate that a Clip has these constant limits."""

    def holds(op: NodeOp) -> bool:
        bounds = op.bounds() if isinstance(op, ClipOp) else None
        return bounds is not None and bounds.minimum == low and bounds.maximum == high

    return holds


def relu6_spellings() -> list[Core]:
    """Patterns of `x + 3` within 0 and 6."""

    def clip(op: PatternOperators, x: Traced) -> Traced:
        return op.Clip(x + 3.0, where=within(0, 6))

    def least(op: PatternOperators, x: Traced) -> Traced:
        return op.Min(op.Relu(x + 3.0), 6.0)

    return [clip, least]
