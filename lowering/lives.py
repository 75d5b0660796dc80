"""How long what is in the arena lives, and which results take the place of an operand that dies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foldline.kernels.registry import Array
from foldline.lowering.aliases import NO_ROOTS, Roots
from foldline.lowering.chains import note_spans
from foldline.lowering.plan_buffers import Buffer
from foldline.lowering.planned_call import Place, PlannedCall
from foldline.lowering.steps import BoundCall


@dataclass(frozen=True)
class Lives:
    """The calls of a plan, in order, and the memory that they share."""

    planned: Sequence[PlannedCall]
    fixed: Mapping[int, Any]
    """What is at one place for the life of an instance: stand-ins for what is in the arena."""
    roots: Roots
    """Whose memory each value is a view of."""
    outputs: Sequence[int]

    def allocate(self, buffers: list[Buffer]) -> None:
        """Find how long what is in the arena lives, and reuse operands that die.

        Calls that run part by part are one step: what one of them needs, all of them hold. New
        buffers are appended to `buffers`.
        """
        ends = self._ends()
        note_spans(self.planned, self.fixed)
        held: dict[int, Buffer] = {}
        for index, planned in enumerate(self.planned):
            result = planned.call.results[0]
            if planned.span is not None and planned.scratch is not None:
                scratch = planned.scratch.buffer
                scratch.start, scratch.end = planned.span.first, planned.span.last
            if planned.kind == "copy" and planned.place is not None:
                held[result] = planned.place.buffer
            elif planned.kind == "out":
                stand_in: Array = self.fixed[result]
                buffer = self._reusable(planned.call, index, ends, held)
                if buffer is None:
                    first = index if planned.span is None else planned.span.first
                    buffer = Buffer(first, index, stand_in.nbytes)
                    buffers.append(buffer)
                held[result] = buffer
                planned.place = Place(buffer, stand_in.shape, stand_in.dtype, planned.channels_last)
            if result in held:
                last = self._end_of_step(ends.get(result, index))
                held[result].end = max(held[result].end, last)

    def _end_of_step(self, index: int) -> int:
        """The last call that runs together with the one at `index`."""
        span = self.planned[index].span if index < len(self.planned) else None
        return index if span is None else span.last

    def _ends(self) -> dict[int, int]:
        """The last call that reads the memory of each root; for outputs, one beyond the last."""
        ends: dict[int, int] = {}
        for index, planned in enumerate(self.planned):
            for slot in (*planned.call.inputs, *planned.call.captures):
                ends.update(dict.fromkeys(self.roots.get(slot, NO_ROOTS), index))
        for slot in self.outputs:
            ends.update(dict.fromkeys(self.roots.get(slot, NO_ROOTS), len(self.planned)))
        return ends

    def _reusable(
        self, call: BoundCall, index: int, ends: dict[int, int], held: dict[int, Buffer]
    ) -> Buffer | None:
        """The buffer of an input that the kernel may overwrite and nothing reads later."""
        result: Array = self.fixed[call.results[0]]
        for position in call.kernel.inplace:
            slot = call.inputs[position] if position < len(call.inputs) else 0
            roots = self.roots.get(slot, NO_ROOTS)
            if len(roots) != 1 or slot not in self.fixed:
                continue
            (root,) = roots
            old: Array = self.fixed[slot]
            fits = (
                root in held
                and ends[root] == index
                and old.shape == result.shape
                and old.dtype == result.dtype
                and old.strides == result.strides
                and old.nbytes == held[root].size
            )
            if fits and self._only_reader(call, slot, root) and not self._seen_askew(index, root):
                return held[root]
        return None

    def _seen_askew(self, index: int, root: int) -> bool:
        """Whether a call that runs part by part with this one reads a view of `root`.

        Of that it would read other elements than those of its own part.
        """
        span = self.planned[index].span
        before = () if span is None else self.planned[span.first : index]
        return any(
            slot != root and root in self.roots.get(slot, NO_ROOTS)
            for planned in before
            for slot in planned.call.inputs
        )

    def _only_reader(self, call: BoundCall, slot: int, root: int) -> bool:
        """Whether no input but `slot` is in its memory; `slot` itself where that may be."""
        return all(
            position in call.kernel.inplace
            if other == slot
            else root not in self.roots.get(other, NO_ROOTS)
            for position, other in enumerate(call.inputs)
        )
