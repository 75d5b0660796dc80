"""slices-to-split: turn sibling slices that tile an axis into one Split.

    %a = onnx.Slice(%x, 0, 4); %b = onnx.Slice(%x, 4, 9)   ->   %a, %b = onnx.Split(%x) sizes (4, 5)

Requires two slices or more of one value in one block, with step 1 along one axis of known size,
that cover it exactly and do not overlap; axes of which a slice takes everything do not count. The
names of the slices stay. Elements are only copied, so bits are preserved. Left alone: empty
slices, the same part taken twice, axes that are covered in part; all of them where
static-split-to-slice is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

from xdsl.ir import Block, Operation, SSAValue

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.indexing import SliceOp
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.stages.context import PassContext, PassOptions
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import drop_unused, insert
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class SlicesToSplit(NodePass):
    """Turn slices into Split."""

    name = "slices-to-split"
    INFO: ClassVar = PASSES["slices-to-split"]
    keep_slices: bool = False
    """Do nothing, as static-split-to-slice would undo it."""

    def configured(self, options: PassOptions) -> Self:
        """Slices stay where static-split-to-slice is on."""
        return replace(self, keep_slices=options.enabled("static-split-to-slice"))

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self, context)


@dataclass(frozen=True, order=True)
class _Part:
    """What a slice takes of the only axis that it cuts."""

    start: int
    stop: int


class _Visitor(NodeVisitor):
    def __init__(self, options: SlicesToSplit, context: PassContext):
        super().__init__(options.name, context)
        self._keeps_slices = options.keep_slices
        self._sources: dict[SSAValue, None] = {}
        """Values of which a slice was seen: each is looked at once a round, with all its slices."""

    def visit(self, op: NodeOp) -> None:
        """Note whose slice it is."""
        if isinstance(op, SliceOp) and not self._keeps_slices:
            self._sources[op.data] = None

    def finish(self) -> None:
        """Look at the slices of each value, now that bounds are as constant as they get."""
        sources, self._sources = self._sources, {}
        for source in sources:
            groups: dict[tuple[Block, int], list[tuple[_Part, SliceOp]]] = {}
            for use in tuple(source.uses):
                op = use.operation
                if isinstance(op, SliceOp) and use.index == 0 and op.parent is not None:
                    found = self._part(op)
                    if found is not None:
                        groups.setdefault((op.parent, found[0]), []).append((found[1], op))
            for (block, axis), slices in groups.items():
                if len(slices) > 1:
                    self._split(source, block, axis, sorted(slices, key=lambda pair: pair[0]))

    def _part(self, op: SliceOp) -> tuple[int, _Part] | None:
        """The only axis that a slice cuts, of known size, and what it takes of it."""
        ranges, sizes = op.ranges(), self.context.knowledge.dims(op.data)
        if ranges is None or sizes is None or len(set(ranges.axes)) < len(ranges.axes):
            return None
        found: list[tuple[int, _Part]] = []
        for start, stop, axis, step in zip(
            ranges.starts, ranges.ends, ranges.axes, ranges.steps, strict=True
        ):
            if step != 1 or not -len(sizes) <= axis < len(sizes):
                return None
            size = sizes[axis].value
            if size is None:
                return None
            part = _Part(_place(start, size), _place(stop, size))
            if part != _Part(0, size):
                found.append((axis % len(sizes), part))
        return found[0] if len(found) == 1 else None

    def _split(
        self, source: SSAValue, block: Block, axis: int, slices: Sequence[tuple[_Part, SliceOp]]
    ) -> None:
        parts, ops = [part for part, _ in slices], [op for _, op in slices]
        size = (self.context.knowledge.dims(source) or ())[axis].value
        ends = [0, *(part.stop for part in parts)]
        starts = [*(part.start for part in parts), size]
        if starts != ends or any(part.start >= part.stop for part in parts):
            texts = ", ".join(f"{part.start}:{part.stop}" for part in parts)
            for op in ops:
                self.declined(op, f"{texts} do not tile axis {axis} of size {size}")
            return
        names = Names(node_name(ops[0]), tuple(result_names(op)[0] for op in ops))
        types = [op.results[0].type for op in ops]
        sizes = [stop - start for start, stop in pairwise(ends)]
        bounds = [operand for op in ops for operand in op.operands[1:]]
        made = Builder.at(ops[0]).split(source, sizes, axis, types, names)
        results = insert(self.rewriter, made, _after(source, block))
        for op, result in zip(ops, results, strict=True):
            self.applied(op, f"is part of a Split of axis {axis} into {sizes}")
            reason = self.rewriter.replace_values(op, [result])
            assert reason is None, reason
        drop_unused(self.rewriter, bounds)


def _place(position: int, size: int) -> int:
    """A start or stop of a slice as a place from 0 to `size`."""
    return min(max(position + size if position < 0 else position, 0), size)


def _after(value: SSAValue, block: Block) -> Operation:
    """The first place in a block where a value may be read by a node."""
    owner = value.owner
    here = owner.next_op if isinstance(owner, Operation) and owner.parent is block else None
    here = here or block.first_op
    while here is not None and not isinstance(here, NodeOp):
        here = here.next_op
    assert here is not None
    return here
