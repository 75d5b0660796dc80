"""slices-to-space-to-depth: move blocks of pixels into channels by one operator.

    Concat<1>(x[:, :, 0::2, 0::2], x[:, :, 0::2, 1::2],
              x[:, :, 1::2, 0::2], x[:, :, 1::2, 1::2])   ->   SpaceToDepth<2>(x)
    the same parts in another order                       ->   Gather<1>(SpaceToDepth<2>(x), order)

Requires every part of a block once, from one value of four axes whose height and width are known
multiples of the block; each part cut by one Slice or by two, one an axis; no other reader of the
slices; and floats, as there are runtimes without kernels for others. Elements are only moved, so
bits are preserved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects import OPERATORS
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.indexing import GatherOp, SliceOp
from foldline.dialects.onnx.op import NodeOp, opset_versions
from foldline.dialects.onnx.shape import ConcatOp
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.types import element_of, element_type
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.inlining import accepts
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import is_parametric, label_of, names_of, replace
from foldline.stages.symbols.facts import Known
from foldline.stages.symbols.reading import axes_of, axis_of
from foldline.support.passes import PASSES

SpaceToDepthOp = OPERATORS["", "SpaceToDepth"]
RANK, CHANNELS, HEIGHT, WIDTH = 4, 1, 2, 3


@dataclass(frozen=True)
class SlicesToSpaceToDepth(NodePass):
    """Turn slices of every b-th row and column into SpaceToDepth."""

    name = "slices-to-space-to-depth"
    INFO: ClassVar = PASSES["slices-to-space-to-depth"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


@dataclass(frozen=True)
class _Comb:
    """Every `step`-th place of an axis from `start` on, to its end."""

    step: int
    start: int


@dataclass(frozen=True)
class _Part:
    """What slices take of a value."""

    source: SSAValue
    rows: _Comb
    columns: _Comb
    slices: tuple[SliceOp, ...]


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Rewrite a Concat of which every input is made by a Slice with steps."""
        if not isinstance(op, ConcatOp) or len(op.operands) < 4 or is_parametric(op):
            return
        if not all(_has_steps(value.owner) for value in op.operands):
            return
        reason = self._rewrite(op)
        if reason is not None:
            self.declined(op, reason)

    def _rewrite(self, op: ConcatOp) -> str | None:
        """Rewrite, or say why not."""
        parts: list[_Part] = []
        for value in op.operands:
            part = _part(value, self.context.knowledge)
            if isinstance(part, str):
                return part
            parts.append(part)
        source, block = parts[0].source, parts[0].rows.step
        if any(part.source is not source for part in parts):
            return "its parts are of different values"
        steps = {comb.step for part in parts for comb in (part.rows, part.columns)}
        places = [part.rows.start * block + part.columns.start for part in parts]
        if steps != {block} or sorted(places) != list(range(block**2)):
            return f"its parts are not those of blocks of {block} by {block}, each once"
        if axis_of(op, RANK, default=1) != CHANNELS:
            return "it does not join channels"
        slices = {cut for part in parts for cut in part.slices}
        if any(cut.parent is not op.parent for cut in slices):
            return "the slices stand outside of the body"
        readers = {use.operation for cut in slices for use in cut.results[0].uses}
        if not readers <= {op, *slices}:
            return "the slices have other readers"
        if not _is_moved(source, opset_versions(op)):
            return f"SpaceToDepth may not take {source.type} here"
        return self._replace(op, source, block, places)

    def _replace(
        self, op: ConcatOp, source: SSAValue, block: int, places: Sequence[int]
    ) -> str | None:
        """Put the operators in the place of the Concat; why not, if not."""
        builder, parameters = Builder.at(op), {"blocksize": block}
        types, names = (op.results[0].type,), names_of(op)
        if list(places) == sorted(places):
            made = builder.operator(SpaceToDepthOp, [source], parameters, types, names)
        else:
            order = self._order(source, places)
            if order is None:
                return "the number of channels to put in order is not known"
            made = builder.operator(SpaceToDepthOp, [source], parameters, names=label_of(op))
            made += builder.constant(order)
            moved, index = (part.results[0] for part in made)
            made += builder.operator(GatherOp, [moved, index], {"axis": CHANNELS}, types, names)
        self.applied(op, f"is SpaceToDepth by {block}, parts in the order {list(places)}")
        return replace(self.rewriter, op, made)

    def _order(self, source: SSAValue, places: Sequence[int]) -> Array | None:
        """Where each channel stands after SpaceToDepth; None if they cannot be counted."""
        sizes = self.context.knowledge.dims(source)
        channels = None if sizes is None else sizes[CHANNELS].value
        if channels is None:
            return None
        firsts = np.array(places, np.int64) * channels
        return np.add.outer(firsts, np.arange(channels, dtype=np.int64)).reshape(-1)


def _is_moved(value: SSAValue, versions: Mapping[str, int]) -> bool:
    """Whether SpaceToDepth takes a value: of floats, as runtimes lack kernels of it for others."""
    element = element_type(value.type)
    row = None if element is None else element_of(element)
    return (
        row is not None and row.numpy.kind == "f" and accepts("SpaceToDepth", versions, value.type)
    )


def _has_steps(op: object) -> bool:
    """Whether it is a Slice of constant bounds that leaves places out between others."""
    ranges = op.ranges() if isinstance(op, SliceOp) else None
    return ranges is not None and any(step > 1 for step in ranges.steps)


def _part(value: SSAValue, known: Known) -> _Part | str:
    """What slices, up to one an axis, take of the value before them; why it is no part, if so."""
    combs: dict[int, _Comb] = {}
    slices: list[SliceOp] = []
    while not {HEIGHT, WIDTH} <= combs.keys():
        if not isinstance(value.owner, SliceOp):
            return "a part is not cut along height and width"
        found = _combs(value.owner, known)
        if isinstance(found, str):
            return found
        if combs.keys() & found.keys():
            return "a part is cut twice along one axis"
        combs.update(found)
        slices.append(value.owner)
        value = value.owner.data
    if len(combs) > 2:
        return "a part is cut along other axes too"
    return _Part(value, combs[HEIGHT], combs[WIDTH], tuple(slices))


def _combs(op: SliceOp, known: Known) -> dict[int, _Comb] | str:
    """What a Slice takes of the axes that it does not take whole; why it is no comb, if so."""
    ranges, sizes, left = op.ranges(), known.dims(op.data), known.dims(op.results[0])
    if ranges is None:
        return "bounds are not constant"
    if sizes is None or left is None or len(sizes) != RANK:
        return f"the value is not known to have {RANK} axes"
    axes = axes_of(ranges.axes, RANK)
    if axes is None:
        return f"axes {list(ranges.axes)} are not different axes"
    found: dict[int, _Comb] = {}
    for axis, start, step in zip(axes, ranges.starts, ranges.steps, strict=True):
        if step == 1 and left[axis] is sizes[axis]:
            continue
        size = sizes[axis].value
        if size is None:
            return f"the size of axis {axis} is not known"
        if step < 1 or size % step:
            return f"the size of axis {axis}, {size}, is no multiple of {step}"
        first = max(start + size, 0) if start < 0 else start
        if first >= step or left[axis].value != size // step:
            return f"a part does not go to the end of axis {axis}"
        found[axis] = _Comb(step, first)
    return found
