"""cancel-transposes: merge neighbouring transposes and remove those that move nothing.

    Transpose<q>(Transpose<p>(x))   ->   Transpose<p[q]>(x), or x where that moves nothing
    Transpose<p>(x)                 ->   x, where only axes of size 1 move among themselves
    Reshape(Transpose<p>(x), c)     ->   Reshape(x, c), where only axes of size 1 change places

The last one requires a constant target without 0, which would mean a size of the input. Elements
are only moved, so bits are preserved. Left alone: transposes of unknown rank, and those whose
input cannot take the name of an output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ReshapeOp, TransposeOp
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import bypass, drop_unused, is_parametric, names_of, replace
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class CancelTransposes(NodePass):
    """Merge and remove transposes."""

    name = "cancel-transposes"
    INFO: ClassVar = PASSES["cancel-transposes"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Look at a Transpose, or at a Reshape that reads one."""
        if isinstance(op, TransposeOp):
            self._transpose(op)
        elif isinstance(op, ReshapeOp) and isinstance(op.data.owner, TransposeOp):
            self._reshape(op, op.data.owner)

    def _transpose(self, op: TransposeOp) -> None:
        order = order_of(op)
        if order is None:
            self.declined(op, "its permutation is not known")
            return
        source, before = op.data, op.data.owner
        first = order_of(before) if isinstance(before, TransposeOp) else None
        if isinstance(before, TransposeOp) and first is not None and len(first) == len(order):
            source, order = before.data, tuple(first[axis] for axis in order)
        if self._moves_nothing(source, order):
            reason = bypass(self.rewriter, op, [source])
            if reason is None:
                self.applied(op, "moves nothing" if first is None else "undoes the one before it")
                return
            self.declined(op, reason)
        if first is not None:
            merged = Builder.at(op).transpose(source, order, op.results[0].type, names_of(op))
            self.applied(op, f"one permutation {list(order)} with the one before it")
            replace(self.rewriter, op, merged)

    def _reshape(self, op: ReshapeOp, before: TransposeOp) -> None:
        order, sizes = order_of(before), self.context.knowledge.dims(before.data)
        if order is None or sizes is None or len(order) != len(sizes):
            return
        kept = [axis for axis in order if sizes[axis].value != 1]
        if kept != sorted(kept):
            return
        target = None if is_parametric(op) else op.target()
        if target is None or (0 in target.dims and not target.allows_zero):
            self.declined(
                op, "its target is not constant, or copies a size of the transposed input"
            )
            return
        self.applied(op, "reads past a Transpose that only moves axes of size 1")
        self.rewriter.set_operands(op, [before.data, *op.operands[1:]])
        drop_unused(self.rewriter, before.results)

    def _moves_nothing(self, value: SSAValue, order: tuple[int, ...]) -> bool:
        moved = [axis for place, axis in enumerate(order) if place != axis]
        sizes = self.context.knowledge.dims(value) if moved else ()
        return sizes is not None and all(
            axis < len(sizes) and sizes[axis].value == 1 for axis in moved
        )


def order_of(op: TransposeOp) -> tuple[int, ...] | None:
    """The permutation of a Transpose; None where it is not known, or none."""
    order = None if is_parametric(op) else op.permutation()
    return order if order is not None and sorted(order) == list(range(len(order))) else None
