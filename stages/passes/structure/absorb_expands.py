"""absorb-expands: leave out an Expand whose reader broadcasts by itself.

    Add(Expand(x: [1, S], [N, S]), y: [N, S])   ->   Add(x, y)

Readers are element-wise operators that broadcast, and MatMul for the axes before the last two.
Requires that the result is certain to have the shape it had, symbols included. Each element of the
result hangs on the same elements as before, so bits are preserved; of a MatMul, operands of two
axes are left alone, as stacks of matrices are multiplied in another way than one matrix is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.nn import MatMulOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ExpandOp
from foldline.dialects.onnx.traits import ElementWise
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import drop_unused
from foldline.stages.symbols.expression import Expr, broadcast, constant
from foldline.stages.symbols.facts import Dims
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class AbsorbExpands(NodePass):
    """Leave out Expands."""

    name = "absorb-expands"
    INFO: ClassVar = PASSES["absorb-expands"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Let an operator that broadcasts read what an Expand before it reads."""
        if len(op.operands) < 2 or not any(isinstance(v.owner, ExpandOp) for v in op.operands):
            return
        if isinstance(op, MatMulOp):
            matrix_axes = 2
        elif op.has_trait(ElementWise) and _broadcasts(op):
            matrix_axes = 0
        else:
            return
        operands = list(op.operands)
        for index, value in enumerate(op.operands):
            expand = value.owner
            if isinstance(expand, ExpandOp):
                operands[index] = expand.input
                reason = self._change(op, operands, index, matrix_axes)
                if reason is not None:
                    operands[index] = value
                    self.declined(op, f"input {index} is expanded: {reason}")
        if operands != list(op.operands):
            before = tuple(op.operands)
            self.applied(op, "broadcasts by itself")
            self.rewriter.set_operands(op, operands)
            drop_unused(self.rewriter, before)

    def _change(
        self, op: NodeOp, operands: Sequence[SSAValue], index: int, matrix_axes: int
    ) -> str | None:
        """What would be another way with these operands, of which one is new; None if nothing."""
        old, new = (self.context.knowledge.dims(v) for v in (op.operands[index], operands[index]))
        if old is None or new is None or len(new) < matrix_axes:
            return "its rank is not known"
        if matrix_axes and (old[-2:] != new[-2:] or len(old) != len(new) or len(new) == 2):
            return "the matrices would be others"
        stacks = [self._stack(value, matrix_axes) for value in operands]
        expected = self._stack(op.results[0], matrix_axes)
        if expected is None or _broadcast(stacks) != expected:
            return "the result would not be certain to have the shape it has"
        return None

    def _stack(self, value: SSAValue, matrix_axes: int) -> Dims:
        """The axes of a value that broadcast."""
        sizes = self.context.knowledge.dims(value)
        return None if sizes is None else sizes[: len(sizes) - matrix_axes]


def _broadcasts(op: NodeOp) -> bool:
    """Whether it broadcasts as NumPy does; below version 7, attributes say how."""
    return "axis" not in op.properties and "broadcast" not in op.properties


def _broadcast(shapes: Sequence[Dims]) -> Dims:
    """The shape that all shapes broadcast to; None where one is not known, or they do not."""
    result: tuple[Expr, ...] = ()
    for shape in shapes:
        if shape is None:
            return None
        rank = max(len(shape), len(result))
        sides = [(constant(1),) * (rank - len(side)) + side for side in (result, shape)]
        sizes = [broadcast(a, b) for a, b in zip(*sides, strict=True)]
        if None in sizes:
            return None
        result = tuple(size for size in sizes if size is not None)
    return result
