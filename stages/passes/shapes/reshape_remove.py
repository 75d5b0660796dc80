"""reshape-remove: remove Reshape, Squeeze, Unsqueeze and Flatten that do not change the shape.

    Reshape(x: [N, 4], …): [N, 4]            ->   x
    Squeeze(Unsqueeze(x, a), a)              ->   x, or whatever before it has the shape
    Reshape(Reshape(x, …), [-1, 4])          ->   Reshape(x, [-1, 4])

Shapes are compared size by size, symbols included. The last form requires a constant target that
copies no size, or copies one that is the same in `x`. Such operators keep the elements and their
order, so equal shapes are equal values, bit for bit. Left alone: nodes that name an output whose
name the input cannot bear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import FlattenOp, ReshapeOp, SqueezeOp, Target, UnsqueezeOp
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import bypass, drop_unused, is_parametric
from foldline.support.passes import PASSES

SHAPING = (ReshapeOp, SqueezeOp, UnsqueezeOp, FlattenOp)
"""Operators that keep the elements of their first input and their order."""

LONGEST_CHAIN = 8
"""So many producers are looked at for one of the same shape."""


@dataclass(frozen=True)
class ReshapeRemove(NodePass):
    """Remove operators that do not change the shape."""

    name = "reshape-remove"
    INFO: ClassVar = PASSES["reshape-remove"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Replace the result by an earlier value of its shape, or read an earlier value."""
        if not isinstance(op, SHAPING):
            return
        reason = None
        for value in _earlier(op):
            if self.context.knowledge.same_shape(value, op.results[0]):
                reason = bypass(self.rewriter, op, [value])
                if reason is None:
                    self.applied(op, "the shape is that of an earlier value")
                    return
        if isinstance(op, ReshapeOp) and isinstance(op.data.owner, SHAPING):
            reason = self._read_past(op, op.data.owner) or reason
        if reason is not None:
            self.declined(op, reason)

    def _read_past(self, op: ReshapeOp, before: NodeOp) -> str | None:
        """Let a Reshape read what the operator before it reads; why not, if not."""
        target = None if is_parametric(op) else op.target()
        if target is None:
            return "it follows another Reshape, and its target is not constant"
        if not self._copies_alike(target, op.data, before.operands[0]):
            return "it follows another Reshape, and its target copies a size that is not the same"
        self.applied(op, f"reads past {before.name}")
        self.rewriter.set_operands(op, [before.operands[0], *op.operands[1:]])
        drop_unused(self.rewriter, before.results)
        return None

    def _copies_alike(self, target: Target, value: SSAValue, earlier: SSAValue) -> bool:
        """Whether what zeros in a target mean is the same of both values."""
        copied = [] if target.allows_zero else [i for i, n in enumerate(target.dims) if n == 0]
        if not copied:
            return True
        sizes = self.context.knowledge.dims(value)
        others = self.context.knowledge.dims(earlier)
        if sizes is None or others is None:
            return False
        return all(i < min(len(sizes), len(others)) and sizes[i] is others[i] for i in copied)


def _earlier(op: NodeOp) -> Iterator[SSAValue]:
    """What the operators of a chain read, the last one first."""
    here: object = op
    for _ in range(LONGEST_CHAIN):
        if not isinstance(here, SHAPING):
            return
        value = here.operands[0]
        yield value
        here = value.owner
