"""The plan for given input shapes.

What is known vanishes. Views of memory that does not move are taken once, when an instance of the
plan is made. Kernels that write where they are told write into one arena, over an operand that
dies where they can. Whatever the shapes do not decide runs as in the shape-generic program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldline.kernels.registry import Array, Operand
from foldline.lowering.aliases import NO_ROOTS, Roots, note_roots
from foldline.lowering.chains import note_spans
from foldline.lowering.facts import Facts, Known, Shaped
from foldline.lowering.kernel_errors import KernelErrors
from foldline.lowering.plan_buffers import Buffer, place
from foldline.lowering.planned_call import Place, PlannedCall
from foldline.lowering.routine import Routine
from foldline.lowering.steps import BoundCall, Frame, Run, results_of


@dataclass(frozen=True)
class Plan:
    """Steps and offsets; immutable. What runs is an instance of it."""

    calls: tuple[PlannedCall, ...]
    start: Frame
    """A frame with what is known."""
    arena_bytes: int
    buffer_bytes: int
    """What the arena would take if no memory were used twice."""
    inputs: slice
    outputs: tuple[int, ...]
    owned: tuple[bool, ...]
    """Which outputs are fresh arrays that nothing else holds."""
    moving: tuple[int, ...]
    """Slots to clear when a run ends."""


def specialise(routine: Routine, facts: Facts, frame: Frame, owners: Sequence[int | None]) -> Plan:
    """The plan for the input shapes that `facts` were learnt from.

    `frame` supplies the constants, `owners` says which outputs need no copy.
    Raises KernelFailed where a maker does not make its step.
    """
    owned = tuple(o is not None and not isinstance(facts[o], Known) for o in owners)
    kept = {o for o, alone in zip(owners, owned, strict=True) if alone and o is not None}
    planner = _Planner(routine, facts, kept)
    steps = iter(routine.steps)
    with KernelErrors(routine.calls, steps, frame):
        for call, (run, _) in zip(routine.calls, steps, strict=True):
            planner.decide(call, run)
    planner.allocate()
    start: Frame = [None] * routine.layout.size
    for slot in routine.constant_slots:
        start[slot] = frame[slot]
    for slot, array in planner.fixed.items():
        if isinstance(facts[slot], Known):
            start[slot] = array
    moving = [
        slot
        for planned in planner.planned
        for slot in planned.call.results
        if slot not in planner.fixed
    ]
    inputs = routine.layout.inputs
    return Plan(
        tuple(planner.planned),
        start,
        place(planner.buffers),
        sum(buffer.size for buffer in planner.buffers),
        inputs,
        routine.layout.outputs,
        owned,
        (*range(inputs.start, inputs.stop), *moving),
    )


class _Planner:
    def __init__(self, routine: Routine, facts: Facts, kept: set[int]):
        self.facts = facts
        self.kept = kept
        """Results that leave without a copy, so they must not be in the arena."""
        self.planned: list[PlannedCall] = []
        self.buffers: list[Buffer] = []
        self.fixed: dict[int, Any] = {}
        """What is at one place for the life of an instance; stand-ins for what is in the arena,
            which tell strides and aliases; zeros that are never written take no memory."""
        self._outputs = routine.layout.outputs
        self._inputs = range(routine.layout.inputs.start, routine.layout.inputs.stop)
        self._roots: Roots = {slot: frozenset((slot,)) for slot in self._inputs}
        for slot in routine.constant_slots:
            fact = facts[slot]
            assert isinstance(fact, Known), "constants are known"
            self.fixed[slot] = fact.value

    def decide(self, call: BoundCall, generic: Run) -> None:
        """Choose how a call runs; calls come in order."""
        known = [self.facts[slot] for slot in call.results]
        if all(isinstance(fact, Known) for fact in known):
            for slot, fact in zip(call.results, known, strict=True):
                self.fixed[slot] = fact.value if isinstance(fact, Known) else None
                self._roots[slot] = NO_ROOTS
            return
        note_roots(call, self._roots)
        self.planned.append(self._planned(call, generic))

    def _planned(self, call: BoundCall, generic: Run) -> PlannedCall:
        operands = self._operands(call)
        results = [self.facts[slot] for slot in call.results]
        shaped = [fact for fact in results if isinstance(fact, Shaped)]
        frees = tuple(slot for slot in call.frees if slot not in self.fixed)
        if operands is None or len(shaped) < len(results) or call.bodies:
            return PlannedCall(call, "generic", generic, frees=frees)
        run: Callable[..., Any] = call.function
        scratch = 0
        if call.kernel.is_maker:
            made = call.made(operands)
            run, scratch = made.run, made.scratch_bytes
        planned = PlannedCall(call, "fresh", run, frees=frees)
        if scratch:
            memory = self._buffer(scratch)
            planned.scratch = Place(memory, (scratch,), np.dtype(np.uint8))
        if call.kernel.view and self._decide_view(planned):
            return planned
        first = shaped[0]
        if self._can_place(call, first):
            planned.kind = "out"
            self._roots[call.results[0]] = frozenset((call.results[0],))
            self.fixed[call.results[0]] = np.zeros(first.shape, first.dtype)
        planned.shapes = tuple(fact.shape for fact in shaped)
        return planned

    def _operands(self, call: BoundCall) -> list[Operand | None] | None:
        """What a maker may know; None where some input has no decided shape."""
        operands: list[Operand | None] = []
        for slot in call.inputs:
            match self.facts[slot]:
                case Known(value=None):
                    operands.append(None)
                case Known(value=np.ndarray() as value):
                    operands.append(Operand(value.shape, value.dtype, value))
                case Shaped(shape=shape, dtype=dtype):
                    operands.append(Operand(shape, dtype))
                case _:
                    return None
        return operands

    def _can_place(self, call: BoundCall, first: Shaped) -> bool:
        leaves = not self.kept.isdisjoint(self._roots[call.results[0]])
        return "out" in call.kernel.reserved and not leaves and not first.dtype.hasobject

    def _decide_view(self, planned: PlannedCall) -> bool:
        """Whether the result is a view of what does not move, if need be of a copy in C order."""
        call = planned.call
        source = call.inputs[0]
        if not all(slot in self.fixed for slot in call.inputs) or planned.scratch:
            return False
        if isinstance(self.facts[source], Known):
            return False
        stand_ins = [self.fixed[slot] for slot in call.inputs]
        views = self._views(planned, stand_ins)
        if views is None:
            original = stand_ins[0]
            stand_ins[0] = np.zeros(original.shape, original.dtype)
            views = self._views(planned, stand_ins)
            if views is None:
                return False
            planned.place = Place(self._buffer(original.nbytes), original.shape, original.dtype)
            for slot in call.results:
                self._roots[slot] = frozenset((call.results[0],))
        planned.kind = "copy" if planned.place else "view"
        self.fixed.update(zip(call.results, views, strict=False))
        return True

    def _views(self, planned: PlannedCall, inputs: list[Any]) -> list[Array] | None:
        """The results, if each shares the memory of the first input."""
        results = results_of(planned.run(*inputs))[: len(planned.call.results)]
        # A fresh array never lies within the bounds of another one.
        shares = all(np.may_share_memory(result, inputs[0]) for result in results)
        return list(results) if shares and inputs[0].size else None

    def _buffer(self, size: int) -> Buffer:
        """Memory for the call that is being decided; its life is set by `allocate`."""
        now = len(self.planned)
        self.buffers.append(Buffer(now, now, size))
        return self.buffers[-1]

    def allocate(self) -> None:
        """Find how long what is in the arena lives, and reuse operands that die.

        Calls that run part by part are one step: what one of them needs, all of them hold.
        """
        ends = self._ends()
        note_spans(self.planned, self.fixed)
        held: dict[int, Buffer] = {}
        for index, planned in enumerate(self.planned):
            result = planned.call.results[0]
            if planned.kind == "copy" and planned.place is not None:
                held[result] = planned.place.buffer
            elif planned.kind == "out":
                stand_in: Array = self.fixed[result]
                buffer = self._reusable(planned.call, index, ends, held)
                if buffer is None:
                    first = index if planned.span is None else planned.span.first
                    buffer = Buffer(first, index, stand_in.nbytes)
                    self.buffers.append(buffer)
                held[result] = buffer
                planned.place = Place(buffer, stand_in.shape, stand_in.dtype)
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
                ends.update(dict.fromkeys(self._roots.get(slot, NO_ROOTS), index))
        for slot in self._outputs:
            ends.update(dict.fromkeys(self._roots.get(slot, NO_ROOTS), len(self.planned)))
        return ends

    def _reusable(
        self, call: BoundCall, index: int, ends: dict[int, int], held: dict[int, Buffer]
    ) -> Buffer | None:
        """The buffer of an input that the kernel may overwrite and nothing reads later."""
        result: Array = self.fixed[call.results[0]]
        for position in call.kernel.inplace:
            slot = call.inputs[position] if position < len(call.inputs) else 0
            roots = self._roots.get(slot, NO_ROOTS)
            if len(roots) != 1 or slot not in self.fixed:
                continue
            (root,) = roots
            old: Array = self.fixed[slot]
            fits = (
                root in held
                and ends[root] == index
                and old.shape == result.shape
                and old.dtype == result.dtype
                and old.flags.c_contiguous
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
            slot != root and root in self._roots.get(slot, NO_ROOTS)
            for planned in before
            for slot in planned.call.inputs
        )

    def _only_reader(self, call: BoundCall, slot: int, root: int) -> bool:
        """Whether no input but `slot` is in its memory; `slot` itself where that may be."""
        return all(
            position in call.kernel.inplace
            if other == slot
            else root not in self._roots.get(other, NO_ROOTS)
            for position, other in enumerate(call.inputs)
        )
