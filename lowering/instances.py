"""What a plan needs to run once at a time: an arena, arrays in it, and steps bound to them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from itertools import starmap
from operator import call as call_with
from typing import Any, TypeVar, cast

import numpy as np

from foldline.kernels.registry import Array, aligned_bytes
from foldline.kernels.ufunc_state import set_ufuncs
from foldline.kernels.ufuncs import bound_ufuncs
from foldline.lowering.chains import tiled
from foldline.lowering.kernel_errors import KernelErrors
from foldline.lowering.moving_steps import allocating, bound_to_a_copy, ufunc_of
from foldline.lowering.negation import negation_taken_over
from foldline.lowering.outputs import handing_out
from foldline.lowering.planned_call import Place, PlannedCall
from foldline.lowering.specialise import Plan
from foldline.lowering.steps import BoundCall, Frame, reader

MOST_IDLE = 8
"""So many idle instances a plan keeps; more exist only while more runs are in flight."""

BoundStep = Callable[[], Any]
_exhaust = deque[Any](maxlen=0).extend
"""Runs an iterator to its end. Over `starmap` no step costs a turn of the interpreter's loop, which
takes 12 ns of the 240 that a ufunc on 16 elements does."""
Outputs = TypeVar("Outputs")


Watch = Callable[[Sequence[BoundCall], Iterator[BoundStep], Frame], None]
"""Runs the steps itself; the calls tell what each step belongs to."""


class _Current(threading.local):
    """What holds for a thread; a default of the class is read in a sixth of getattr's time."""

    watch: Watch | None = None


_current = _Current()


@contextmanager
def watch_steps(watch: Watch) -> Generator[None]:
    """Let `watch` run the steps of all plans, of bodies too, that this thread runs in the block."""
    previous = _current.watch
    _current.watch = watch
    try:
        yield
    finally:
        _current.watch = previous


class Instance:
    """One arena and its steps. Serves one run at a time."""

    def __init__(self, plan: Plan):
        self.arena = aligned_bytes(plan.arena_bytes)
        self._views: dict[tuple[int, tuple[int, ...], np.dtype[Any], bool], Array] = {}
        self._plan = plan
        self._frame: Frame = plan.start.copy()
        self._moving = frozenset(plan.moving)
        self._steps: list[tuple[Any, ...]] = []
        """Functions, each with its arguments."""
        self._calls: list[BoundCall] = []
        self._errors = KernelErrors(self._calls, self._steps, self._frame)
        # Entering a context that is quiet takes a sixth of the time of np.errstate.
        self.context = Context()
        self.context.run(set_ufuncs)
        inputs = range(plan.inputs.start, plan.inputs.stop)
        for position, planned in enumerate(plan.calls):
            steps = self._bind(planned)
            if planned.span is not None:
                together = plan.calls[planned.span.first : position + 1]
                is_last = position == planned.span.last
                steps = [tiled(together, self._frame, self._view)] if is_last else []
            # What the caller gave is the caller's to drop.
            frees = [slot for slot in planned.frees if slot not in inputs]
            if frees:
                steps.append(partial(_clear, self._frame, frees))
            self._add(plan.calls[position - 1] if position else None, planned, steps)

    def run(self, inputs: Sequence[Any], take: Callable[[Frame], Outputs]) -> Outputs:
        """What `take` makes of the frame once it has run; to be called in the instance's context.

        Raises KernelFailed, PlanBroken.
        """
        frame, plan = self._frame, self._plan
        frame[plan.inputs] = inputs
        try:
            with self._errors as steps:
                if _current.watch is not None:
                    _current.watch(self._calls, starmap(partial, steps), frame)
                _exhaust(starmap(call_with, steps))
            return take(frame)
        finally:
            for slot in plan.moving:
                frame[slot] = None

    def _add(
        self, before: PlannedCall | None, planned: PlannedCall, steps: Sequence[BoundStep]
    ) -> None:
        """Append the steps of a call, with which the call before may have changed its last."""
        apart = [_taken_apart(step) for step in steps]
        if before is not None and self._steps and _is_consumed(before, planned):
            constants = [self._plan.start[slot] for slot in before.call.inputs]
            merged = negation_taken_over(self._steps[-1], apart, constants)
            if merged is not None:
                self._steps[-1], *apart = merged
        self._steps += apart
        self._calls += [planned.call] * len(apart)

    def _bind(self, planned: PlannedCall) -> list[BoundStep]:
        """The steps of a call; none for one that is done with here."""
        call, frame = planned.call, self._frame
        scratch: dict[str, Any] = {}
        if planned.scratch is not None:
            scratch["scratch"] = planned.seen(self._view(planned.scratch))
        match planned.kind:
            case "generic":
                return [partial(planned.run, frame)]
            case "view":
                call.store(frame, planned.run(*[frame[slot] for slot in call.inputs]))
                return []
            case "copy":
                return [self._copying(planned)]
            case "out":
                return self._writing(planned, scratch)
            case "fresh":
                run = partial(planned.run, **scratch) if scratch else planned.run
                return [partial(allocating(planned, run), frame)]

    def _view(self, place: Place) -> Array:
        """The array of a place; the same one for equal places.

        A ufunc takes half the time where an input is the destination itself, and not another
        array in its memory, which it has to find out.
        """
        key = place.buffer.offset, place.shape, place.dtype, place.channels_last
        if key not in self._views:
            self._views[key] = place.view(self.arena)
        return self._views[key]

    def _copying(self, planned: PlannedCall) -> BoundStep:
        assert planned.place is not None, "a copy has a place"
        source, *others = [self._frame[slot] for slot in planned.call.inputs]
        copy = self._view(planned.place)
        planned.call.store(self._frame, planned.run(copy, *others))
        return partial(np.copyto, copy, source)

    def _writing(self, planned: PlannedCall, scratch: dict[str, Any]) -> list[BoundStep]:
        assert planned.place is not None, "what is written has a place"
        call, frame, run = planned.call, self._frame, planned.run
        destination = frame[call.results[0]] = self._view(planned.place)
        if self._moving.isdisjoint((*call.inputs, *call.results)):
            seen = planned.seen(destination)
            inputs = [frame[slot] for slot in call.inputs]
            arrays = [seen if x is destination else planned.seen(x) for x in inputs]
            if planned.bind is not None:
                return [planned.bind(*arrays, out=seen, **scratch)]
            ufuncs = None if scratch else bound_ufuncs(run, arrays, seen)
            return ufuncs or [partial(run, *arrays, out=seen, **scratch)]
        read = reader(call.inputs)
        if len(call.results) == 1:
            direct = None if scratch else ufunc_of(run, destination.dtype)
            if direct is not None:
                return [lambda: direct(*read(frame), out=destination)]
            if planned.bind is not None and self._moving.isdisjoint(call.inputs[1:]):
                bind = partial(planned.bind, out=destination, **scratch)
                plain = partial(run, out=destination, **scratch)
                return [partial(bound_to_a_copy, frame, call.inputs, bind, plain, [])]
            return [lambda: run(*read(frame), out=destination, **scratch)]
        if planned.bind is not None and self._moving.isdisjoint((*call.inputs, call.results[0])):
            bound = planned.bind(*read(frame), out=destination, **scratch)
            return [partial(allocating(planned, lambda *_: bound()), frame)]
        check = allocating(planned, partial(run, out=destination, **scratch))
        return [partial(check, frame)]


def _is_consumed(before: PlannedCall, planned: PlannedCall) -> bool:
    """Whether a call alone uses what the one before has written."""
    written = before.call.results
    is_placed = before.kind == planned.kind == "out"
    return is_placed and planned.call.inputs == written and set(written) <= {*planned.call.frees}


def _taken_apart(step: BoundStep) -> tuple[Any, ...]:
    if not isinstance(step, partial):
        return (step,)
    taken = cast("partial[Any]", step)
    return (taken,) if taken.keywords else (taken.func, *taken.args)


def _clear(frame: Frame, slots: Sequence[int]) -> None:
    for slot in slots:
        frame[slot] = None


class Pool:
    """Instances of one plan, made when needed and kept for the next run."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.hand_out = handing_out(plan.outputs, plan.owned)
        """Takes all outputs for the caller."""
        self.idle: list[Instance] = []

    def run(self, inputs: Sequence[Any], take: Callable[[Frame], Outputs]) -> Outputs:
        """Run on an idle or new instance. Raises KernelFailed, PlanBroken."""
        try:
            instance = self.idle.pop()
        except IndexError:
            instance = Instance(self.plan)
        try:
            return instance.context.run(instance.run, inputs, take)
        finally:
            if len(self.idle) < MOST_IDLE:
                self.idle.append(instance)
