"""Operators that show elements in another way, or a part of them, and what is certain of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.indexing import SliceOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import (
    FlattenOp,
    IdentityOp,
    ReshapeOp,
    SplitOp,
    SqueezeOp,
    UnsqueezeOp,
)
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.passes.algebraic._common import element_count
from foldline.stages.replacing import is_parametric
from foldline.stages.symbols.expression import Expr
from foldline.stages.symbols.knowledge import Knowledge

CHANNELS = 1
"""The axis of the channels."""

ORDERED_VIEWS = (IdentityOp, FlattenOp, ReshapeOp, SqueezeOp, UnsqueezeOp)
"""Operators that may keep the elements of their first input, and their order."""

CHANNEL_VIEWS = (ReshapeOp, SqueezeOp, UnsqueezeOp)
"""Of these, the ones that may keep samples and channels apart as well."""

END = np.iinfo(np.int32).max
"""Ends of slices from here on take what there is."""


@dataclass(frozen=True)
class Part:
    """What an operator takes of an axis."""

    value: SSAValue
    start: int
    stop: int


def is_ordered_view(op: NodeOp, knowledge: Knowledge) -> bool:
    """Whether an operator of `ORDERED_VIEWS` certainly keeps the elements and their order."""
    if isinstance(op, IdentityOp):
        return True
    if not _is_plain(op):
        return False
    before, after = (element_count(knowledge.dims(v)) for v in (op.operands[0], op.results[0]))
    return before is not None and before == after


def is_channel_view(op: NodeOp, knowledge: Knowledge, channels: int) -> bool:
    """Whether an operator of `CHANNEL_VIEWS` certainly keeps samples and channels apart."""
    before, after = knowledge.dims(op.operands[0]), knowledge.dims(op.results[0])
    if before is None or after is None or min(len(before), len(after)) <= CHANNELS:
        return False
    same = before[0] is after[0] and before[CHANNELS].value == after[CHANNELS].value == channels
    return same and _is_plain(op)


def _is_plain(op: NodeOp) -> bool:
    """Whether the parameters are constant, and a Reshape asks for no size 0."""
    if is_parametric(op):
        return False
    if isinstance(op, ReshapeOp):
        target = op.target()
        return target is not None and not (target.allows_zero and 0 in target.dims)
    return not isinstance(op, SqueezeOp | UnsqueezeOp) or op.axes_known() is not None


def split_parts(op: SplitOp, dims: Sequence[Expr] | None) -> tuple[int, list[Part]] | str:
    """The axis of a Split and what each result is of it, or why that is not certain."""
    if is_parametric(op):
        return "its attributes are given by the callers of the function"
    axis = op.int_of("axis") or 0
    if dims is None or not -len(dims) <= axis < len(dims):
        return f"the rank of its input is not known, or has no axis {axis}"
    axis %= len(dims)
    size = dims[axis].value
    if size is None:
        return f"the size {dims[axis]} of axis {axis} is not a number"
    if any(isinstance(result.type, AbsentType) for result in op.results):
        return "a result is left out"
    sizes = op.sizes()
    if sizes is None:
        return f"its sizes are not constant, or {size} has no {len(op.results)} equal parts"
    if len(sizes) != len(op.results) or min(sizes) <= 0 or sum(sizes) != size:
        return f"parts of sizes {list(sizes)} are not {len(op.results)} that add up to {size}"
    bounds = pairwise(accumulate(sizes, initial=0))
    return axis, [Part(r, *pair) for r, pair in zip(op.results, bounds, strict=True)]


def channel_slice(op: SliceOp, dims: Sequence[Expr], channels: int) -> Part | str:
    """The channels that a Slice takes, and of them everything; or why it is no such slice."""
    ranges = op.ranges()
    if ranges is None:
        return "the bounds of a Slice are not constant"
    axes = [axis % len(dims) for axis in ranges.axes if -len(dims) <= axis < len(dims)]
    if len(set(axes)) < len(ranges.axes) or any(step != 1 for step in ranges.steps):
        return "a Slice has an axis twice, or a step other than 1"
    found: Part | None = None
    for axis, start, end in zip(axes, ranges.starts, ranges.ends, strict=True):
        if axis == CHANNELS:
            found = Part(op.results[0], place(start, channels), place(end, channels))
        elif not _takes_all(start, end, dims[axis].value):
            return f"a Slice cuts axis {axis} as well"
    if found is None or found.start >= found.stop:
        return "a Slice takes no channels, or names none"
    return found


def place(position: int, size: int) -> int:
    """A start or stop of a slice as a place from 0 to `size`."""
    return min(max(position + size if position < 0 else position, 0), size)


def _takes_all(start: int, end: int, size: int | None) -> bool:
    if size is None:
        return start == 0 and end >= END
    return place(start, size) == 0 and place(end, size) == size
