"""The plan for given input shapes.

What is known vanishes. Views of memory that does not move are taken once, when an instance of the
plan is made. Kernels that write where they are told write into one arena, over an operand that
dies where they can. Whatever the shapes do not decide runs as in the shape-generic program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldline.kernels.channels_last import RANK, is_channels_last, zeros
from foldline.kernels.half import HALF, SINGLE
from foldline.kernels.held import held_step
from foldline.kernels.registry import Array, Operand
from foldline.kernels.ufuncs import NATIVE_FLOATS, UFUNCS
from foldline.lowering.aliases import NO_ROOTS, Roots, alias_roots, note_roots, owners
from foldline.lowering.facts import Known, Shaped, is_dropped_early
from foldline.lowering.held_values import held_values
from foldline.lowering.kernel_errors import KernelErrors
from foldline.lowering.lives import Lives
from foldline.lowering.memory_order import (
    copying_call,
    operand_in_memory_order,
    reading,
    sees_memory,
)
from foldline.lowering.plan_buffers import Buffer, place
from foldline.lowering.planned_call import Place, PlannedCall
from foldline.lowering.reshapes import plain_reshape
from foldline.lowering.small_constants import gather_small
from foldline.lowering.steps import BoundCall, Frame, Run, is_array, results_of
from foldline.lowering.trace import Trace


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

    def returned(self, frame: Frame) -> tuple[Any, ...]:
        """The outputs as they are, which may share the memory of inputs and of constants."""
        return tuple([frame[slot] for slot in self.outputs])


def specialise(trace: Trace, alone: bool) -> Plan:
    """The plan for the input shapes that a trace was seen on.

    `alone`: outputs must be the caller's alone, so some will be copied; else they leave as they
    are, and none is in the arena. Raises KernelFailed where a maker does not make its step.
    """
    facts = trace.facts
    owned, kept = _leaving(trace, alone)
    planner = _Planner(trace, kept)
    with KernelErrors(trace.calls, trace.runs, trace.frame) as runs:
        for call, origin, run in zip(trace.calls, trace.origins, runs, strict=True):
            planner.decide(call, run, origin)
    Lives(planner.planned, planner.fixed, planner.roots, trace.outputs).allocate(planner.buffers)
    start: Frame = [None] * planner.size
    for slot in trace.constants:
        start[slot] = trace.frame[slot]
    for slot, array in planner.fixed.items():
        if isinstance(facts[slot], Known):
            start[slot] = array
    gather_small(start)
    moving = [
        slot
        for planned in planner.planned
        for slot in planned.call.results
        if slot not in planner.fixed
    ]
    inputs = trace.inputs
    return Plan(
        tuple(planner.planned),
        start,
        place(planner.buffers),
        sum(buffer.size for buffer in planner.buffers),
        slice(inputs.start, inputs.stop),
        trace.outputs,
        owned,
        (*inputs, *moving),
    )


def _leaving(trace: Trace, alone: bool) -> tuple[tuple[bool, ...], set[int]]:
    """Which outputs leave without a copy, and the results whose memory leaves."""
    if not alone:
        roots = alias_roots(trace.calls, trace.inputs)
        shared = (roots.get(slot, NO_ROOTS) for slot in trace.outputs)
        return (True,) * len(trace.outputs), set(NO_ROOTS.union(*shared))
    owning = owners(trace.calls, trace.inputs, trace.outputs)
    owned = tuple(o is not None and not isinstance(trace.facts[o], Known) for o in owning)
    return owned, {o for o, is_own in zip(owning, owned, strict=True) if is_own and o is not None}


class _Planner:
    def __init__(self, trace: Trace, kept: set[int]):
        self.facts = trace.facts
        self.kept = kept
        """Results that leave without a copy, so they must not be in the arena."""
        self.planned: list[PlannedCall] = []
        self.buffers: list[Buffer] = []
        self.fixed: dict[int, Any] = {}
        """What is at one place for the life of an instance; stand-ins for what is in the arena,
            which tell strides and aliases; zeros that are never written take no memory."""
        self.size = len(trace.frame)
        """Slots of the program, then of the copies that the plan makes."""
        self._copies: dict[int, int] = {}
        self._held = held_values(trace)
        """Values of float16 that are float32 in memory."""
        self.roots: Roots = {slot: frozenset((slot,)) for slot in trace.inputs}
        for slot in trace.constants:
            fact = self.facts[slot]
            assert isinstance(fact, Known), "constants are known"
            self.fixed[slot] = fact.value

    def decide(self, call: BoundCall, generic: Run, origin: BoundCall) -> None:
        """Choose how a call runs; calls come in order."""
        known = [self.facts[slot] for slot in call.results]
        if all(isinstance(fact, Known) for fact in known):
            for slot, fact in zip(call.results, known, strict=True):
                self.fixed[slot] = fact.value if isinstance(fact, Known) else None
                self.roots[slot] = NO_ROOTS
            return
        note_roots(call, self.roots)
        readable = self._readable(call)
        note_roots(readable, self.roots)
        step = generic if readable is call else readable.step()[0]
        planned = self._planned(readable, step, origin)
        planned.origin = origin
        self.planned.append(planned)

    def _readable(self, call: BoundCall) -> BoundCall:
        """The call, or one that reads copies in C order of what it cannot read as it is."""
        if call.kernel.any_order:
            return call
        read = {*call.inputs, *call.captures}
        last = [slot for slot in read if _is_last(self.fixed.get(slot))]
        if not last or self._sees_memory(call):
            return call
        return reading(call, {slot: self._copy(slot) for slot in sorted(last)})

    def _sees_memory(self, call: BoundCall) -> bool:
        facts = [self.facts[slot] for slot in call.results]
        if len(facts) != 1 or not isinstance(facts[0], Shaped) or call.bodies or call.kernel.view:
            return False
        if not all(slot in self.fixed for slot in call.inputs if slot):
            return False
        inputs = [self.fixed[slot] if slot else None for slot in call.inputs]
        return self._can_place(call, facts[0]) and sees_memory(call, inputs, facts[0].shape)

    def _copy(self, slot: int) -> int:
        """The slot of a copy of a value in C order."""
        if slot not in self._copies:
            copy = self._copies[slot] = self.size
            self.size += 1
            call = copying_call(slot, copy)
            dtype = HALF if slot in self._held else self.fixed[slot].dtype
            self.fixed[copy] = zeros(self.fixed[slot].shape, dtype, False)
            self.roots[copy] = frozenset((copy,))
            self.facts.note_copy(slot, copy)
            self.planned.append(PlannedCall(call, "out", call.function))
        return self._copies[slot]

    def _planned(self, call: BoundCall, generic: Run, origin: BoundCall) -> PlannedCall:
        operands = self._operands(call)
        results = [self.facts[slot] for slot in call.results]
        shaped = [fact for fact in results if isinstance(fact, Shaped)]
        moving = [slot for slot in call.frees if slot not in self.fixed]
        frees = tuple(slot for slot in moving if is_dropped_early(self.facts[slot]))
        if operands is None or len(shaped) < len(results) or call.bodies:
            return PlannedCall(call, "generic", generic, frees=frees)
        run: Callable[..., Any] = call.function
        bind = None
        scratch = 0
        by_memory = not call.kernel.any_order and self._sees_memory(call)
        is_last = by_memory or any(x is not None and x.channels_last for x in operands)
        first = shaped[0]
        can_place = self._can_place(call, first)
        to_hold = can_place and call.results[0] in self._held
        is_held = to_hold or not self._held.isdisjoint(call.inputs)
        if call.kernel.is_maker or is_held:
            if by_memory:
                operands = [x and operand_in_memory_order(x) for x in operands]
            made = origin.made_steps.take(operands) if call.kernel.is_maker else None
            if is_held:
                made = held_step(call.kernel, operands, call.keywords)
            made = made or call.made(operands)
            run, bind, scratch = made.run, made.bind, made.scratch_bytes
            is_last = by_memory or made.channels_last
        planned = PlannedCall(call, "fresh", run, frees=frees, bind=bind, sees_memory=by_memory)
        if scratch:
            memory = self._buffer(scratch)
            planned.scratch = Place(memory, (scratch,), np.dtype(np.uint8))
        elif "scratch" in call.kernel.reserved and not is_held:
            planned.scratch = self._array_like(first, is_last)
        if call.kernel.view and self._decide_view(planned):
            return planned
        if call.kernel.view and len(shaped) == 1 and "random" not in call.facts:
            planned.run = plain_reshape(run, operands, first.shape) or run
        if can_place:
            planned.kind = "out"
            self.roots[call.results[0]] = frozenset((call.results[0],))
            planned.channels_last = is_last and len(first.shape) == RANK
            dtype = SINGLE if to_hold else first.dtype
            self.fixed[call.results[0]] = zeros(first.shape, dtype, planned.channels_last)
        elif first.shape and HALF not in {first.dtype, *(x.dtype for x in operands if x)}:
            # What it allocates is an array: so called, it takes two thirds of the time.
            planned.run = UFUNCS.get(run, planned.run)
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
                    is_last = _is_last(self.fixed.get(slot))
                    operands.append(Operand(shape, dtype, None, is_last))
                case _:
                    return None
        return operands

    def _can_place(self, call: BoundCall, first: Shaped) -> bool:
        leaves = not self.kept.isdisjoint(self.roots[call.results[0]])
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
            stand_ins[0] = zeros(original.shape, original.dtype, False)
            views = self._views(planned, stand_ins)
            if views is None:
                return False
            planned.place = Place(self._buffer(original.nbytes), original.shape, original.dtype)
            for slot in call.results:
                self.roots[slot] = frozenset((call.results[0],))
        planned.kind = "copy" if planned.place else "view"
        self.fixed.update(zip(call.results, views, strict=False))
        return True

    def _views(self, planned: PlannedCall, inputs: list[Any]) -> list[Array] | None:
        """The results, if each shares the memory of the first input."""
        results = results_of(planned.run(*inputs))[: len(planned.call.results)]
        # A fresh array never lies within the bounds of another one.
        shares = all(np.may_share_memory(result, inputs[0]) for result in results)
        return list(results) if shares and inputs[0].size else None

    def _array_like(self, result: Shaped, channels_last: bool) -> Place | None:
        """Memory for an array like a result; None for what is computed in another dtype."""
        if result.dtype not in NATIVE_FLOATS:
            return None
        size = math.prod(result.shape) * result.dtype.itemsize
        return Place(self._buffer(size), result.shape, result.dtype, channels_last)

    def _buffer(self, size: int) -> Buffer:
        """Memory for the call that is being decided; its life is set by `Lives`."""
        now = len(self.planned)
        self.buffers.append(Buffer(now, now, size))
        return self.buffers[-1]


def _is_last(value: Any) -> bool:
    return is_array(value) and is_channels_last(value)
