"""gather-slice-to-split-fusion: turn sibling slices and selections that tile an axis into a Split.

    %a = Slice(%x, 0, 2); %b = Gather(%x, 2)   ->   %a, %p = Split(%x) sizes (2, 1)
                                                    %b = Squeeze(%p)

Requires an axis of known size, two or more Slices of one step or Gathers of one index of it, in
one block, that take each place once. A Gather by a scalar becomes a Squeeze of its part, so there
may be more nodes than before. Elements are only copied, so bits are preserved. Left alone: slices
of several axes, axes of which a part is taken twice or not at all, and, where
static-split-to-slice runs as well, groups of Slices only, which would become Slices again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from xdsl.ir import Block, SSAValue

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.indexing import GatherOp, SliceOp
from foldline.dialects.onnx.op import node_name, result_names
from foldline.dialects.onnx.shape import SplitOp
from foldline.dialects.onnx.types import UNKNOWN
from foldline.stages.context import PassContext, PassOptions
from foldline.stages.inference.inference import Inference
from foldline.stages.pass_base import GraphPass
from foldline.stages.passes.algebraic._common import refusal_at, tidy
from foldline.stages.passes.algebraic._views import place
from foldline.stages.replacing import drop_unused, insert, is_parametric, names_of
from foldline.stages.replacing import replace as put
from foldline.stages.rewrite.optimize import inference_of
from foldline.stages.symbols.knowledge import Knowledge
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class GatherSliceToSplitFusion(GraphPass):
    """Turn Slice and Gather into Split."""

    name = "gather-slice-to-split-fusion"
    INFO: ClassVar = PASSES["gather-slice-to-split-fusion"]
    keep_slices: bool = False
    """Leave groups of Slices only as they are."""

    def configured(self, options: PassOptions) -> Self:
        """Groups of Slices stay where static-split-to-slice is on."""
        return replace(self, keep_slices=options.enabled("static-split-to-slice"))

    def run(self, context: PassContext) -> None:
        """Collect what is taken of each axis of each value, then look at each group once."""
        groups: dict[tuple[SSAValue, int, Block | None], list[_Taken]] = {}
        for op in context.module.walk():
            if isinstance(op, SliceOp | GatherOp):
                found = _taken(op, context.knowledge)
                if found is not None:
                    key = (op.operands[0], found.axis, op.parent)
                    groups.setdefault(key, []).append(found)
        inference, changes = inference_of(context), context.rewriter.changes
        for group in groups.values():
            if len(group) > 1 and not (self.keep_slices and _are_slices(group)):
                self._group(context, inference, group)
        tidy(context, changes)

    def _group(self, context: PassContext, inference: Inference, group: list[_Taken]) -> None:
        """Make a group a Split, which stands where the first of them does."""
        first = group[0].op
        parts = sorted(group, key=lambda part: (part.start, part.stop))
        reason = refusal_at(first, 13) or _gaps(parts)
        if reason is not None:
            context.remark("declined", self.name, first, reason)
            return
        source, axis = first.operands[0], group[0].axis
        names = [_name(part) for part in parts]
        sizes = [part.stop - part.start for part in parts]
        read = [operand for part in parts for operand in part.op.operands[1:]]
        types = [part.op.results[0].type if names[i] else UNKNOWN for i, part in enumerate(parts)]
        label = Names(node_name(first), tuple(names))
        made = Builder.at(first).split(source, sizes, axis, types, label)
        results = insert(context.rewriter, made, first)
        split = made[-1]
        assert isinstance(split, SplitOp)
        inference.results(split)
        for part, result in zip(parts, results, strict=True):
            message = f"is a part of a Split of axis {axis} into {sizes}"
            context.remark("applied", self.name, part.op, message)
            _put(context, part, result)
        drop_unused(context.rewriter, read)


@dataclass(frozen=True)
class _Taken:
    """What an operator takes of the only axis that it cuts."""

    op: SliceOp | GatherOp
    axis: int
    start: int
    stop: int
    size: int
    drops_axis: bool = False


def _taken(op: SliceOp | GatherOp, knowledge: Knowledge) -> _Taken | None:
    """What a Slice of one axis, or a Gather of one index, takes; None for any other."""
    dims = knowledge.dims(op.data)
    if dims is None or is_parametric(op):
        return None
    if isinstance(op, SliceOp):
        ranges = op.ranges()
        if ranges is None or len(ranges.axes) != 1 or ranges.steps != (1,):
            return None
        axis, start, stop = ranges.axes[0], ranges.starts[0], ranges.ends[0]
        drops_axis = False
    else:
        indices = constant_tensor(op.indices)
        if indices is None or indices.array.size != 1 or indices.array.ndim > 1:
            return None
        axis, start = op.int_of("axis") or 0, int(indices.array.flat[0])
        stop, drops_axis = start + 1, indices.array.ndim == 0
    size = dims[axis].value if -len(dims) <= axis < len(dims) else None
    if size is None:
        return None
    if isinstance(op, GatherOp):
        start, stop = (start + size, stop + size) if start < 0 else (start, stop)
        if not 0 <= start < size:
            return None
    start, stop = place(start, size), place(stop, size)
    return _Taken(op, axis % len(dims), start, stop, size, drops_axis) if start < stop else None


def _gaps(parts: Sequence[_Taken]) -> str | None:
    """Why sorted parts do not tile their axis."""
    ends = [0, *(part.stop for part in parts)]
    starts = [*(part.start for part in parts), parts[0].size]
    if starts == ends:
        return None
    texts = ", ".join(f"{part.start}:{part.stop}" for part in parts)
    return f"{texts} do not tile axis {parts[0].axis} of size {parts[0].size}"


def _are_slices(group: Sequence[_Taken]) -> bool:
    return all(isinstance(part.op, SliceOp) for part in group)


def _name(part: _Taken) -> str:
    """The name of a result of the Split: none where the axis is dropped behind it."""
    return "" if part.drops_axis else result_names(part.op)[0]


def _put(context: PassContext, part: _Taken, result: SSAValue) -> None:
    """Put a result of the Split in the place of what took it."""
    op = part.op
    if part.drops_axis:
        made = Builder.at(op).squeeze(result, [part.axis], op.results[0].type, names_of(op))
        reason = put(context.rewriter, op, made)
    else:
        reason = context.rewriter.replace_values(op, [result])
    assert reason is None, reason
