"""gather-unsqueeze: select by a list of one index instead of inserting the axis again.

    Unsqueeze(Gather<a>(x, 3), [a])           ->   Gather<a>(x, [3])
    Reshape(Gather<0>(x: [N], 3), [1])        ->   Gather<0>(x, [3])

Requires a constant index of rank 0, no other reader of the Gather, and a result whose shape is that
of `x` with size 1 on the axis; Unsqueeze and Reshape alike. Elements are only moved, so bits are
preserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.indexing import GatherOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ReshapeOp, UnsqueezeOp
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import is_parametric, names_of, only_reader, replace
from foldline.stages.symbols.expression import constant
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class GatherUnsqueeze(NodePass):
    """Gather with a list of one index."""

    name = "gather-unsqueeze"
    INFO: ClassVar = PASSES["gather-unsqueeze"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Replace what inserts the axis that a Gather took away."""
        if not isinstance(op, UnsqueezeOp | ReshapeOp):
            return
        gather = op.data.owner
        if not isinstance(gather, GatherOp) or is_parametric(gather):
            return
        index = constant_tensor(gather.indices)
        if index is None or index.array.ndim:
            return
        axis = self._axis(op, gather)
        if axis is None:
            self.declined(op, "it is not certain to insert the axis that the Gather before it took")
        elif only_reader(op.data) is not op:
            self.declined(op, "the Gather before it has other readers")
        else:
            indices = self.rewriter.constant_before(op, index.array.reshape(1), Names(None))
            ops = Builder.at(op).operator(
                GatherOp,
                [gather.data, indices.results[0]],
                {"axis": axis},
                (op.results[0].type,),
                names_of(op),
            )
            self.applied(op, f"selects along axis {axis} by a list of one index")
            replace(self.rewriter, op, ops)

    def _axis(self, op: UnsqueezeOp | ReshapeOp, gather: GatherOp) -> int | None:
        """The axis of the Gather, if the result is certain to have it again with size 1."""
        sizes = self.context.knowledge.dims(gather.data)
        result = self.context.knowledge.dims(op.results[0])
        axis = gather.int_of("axis") or 0
        if sizes is None or result is None or not -len(sizes) <= axis < len(sizes):
            return None
        axis %= len(sizes)
        expected = (*sizes[:axis], constant(1), *sizes[axis + 1 :])
        return axis if result == expected else None
