"""merge-slices: cut several axes at once instead of one after the other.

    Slice(Slice(x, 0, 4, axis 1), 2, 6, axis 2)   ->   Slice(x, [0, 2], [4, 6], axes [1, 2])

Requires constant bounds, axes of which none stands twice, and an inner Slice that the outer one
alone reads. What is taken along an axis does not hang on the others, and elements are only copied,
so bits are preserved. It looks when the traversal has seen everything else, so that slices that
tile an axis have become a Split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.indexing import SliceOp
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import names_of, only_reader, replace
from foldline.stages.symbols.reading import axes_of
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class MergeSlices(NodePass):
    """Make slices of slices one."""

    name = "merge-slices"
    INFO: ClassVar = PASSES["merge-slices"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def __init__(self, name: str, context: PassContext):
        super().__init__(name, context)
        self._seen: dict[SliceOp, None] = {}

    def visit(self, op: NodeOp) -> None:
        """Note a slice of a slice."""
        if isinstance(op, SliceOp) and isinstance(op.data.owner, SliceOp):
            self._seen[op] = None

    def finish(self) -> None:
        """Merge what is still there, producers first."""
        seen, self._seen = self._seen, {}
        for op in seen:
            before = op.data.owner if op.parent is not None else None
            if isinstance(before, SliceOp):
                reason = self._merge(op, before)
                if reason is not None:
                    self.declined(op, reason)

    def _merge(self, op: SliceOp, before: SliceOp) -> str | None:
        """Cut at once what two slices cut; why not, if not."""
        if only_reader(op.data) is not op:
            return "the Slice before it has other readers"
        first, second = before.ranges(), op.ranges()
        if first is None or second is None:
            return "bounds are not constant"
        sizes = self.context.knowledge.dims(before.data)
        if sizes is None:
            return "the rank is not known"
        axes = axes_of((*first.axes, *second.axes), len(sizes))
        if axes is None:
            return f"an axis of {list(second.axes)} is one of {list(first.axes)}"
        steps = (*first.steps, *second.steps)
        made = Builder.at(op).slice(
            before.data,
            (*first.starts, *second.starts),
            (*first.ends, *second.ends),
            axes,
            steps if set(steps) != {1} else None,
            op.results[0].type,
            names_of(op),
        )
        self.applied(op, f"cuts axes {list(axes)} at once")
        return replace(self.rewriter, op, made)
