"""What a plan needs to run once at a time: an arena, arrays in it, and steps bound to them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from typing import Any, TypeVar

import numpy as np

from foldline.kernels.registry import Array, aligned_bytes
from foldline.kernels.ufuncs import bound_ufuncs
from foldline.lowering.chains import tiled
from foldline.lowering.kernel_errors import KernelErrors
from foldline.lowering.planned_call import Place, PlannedCall
from foldline.lowering.specialise import Plan
from foldline.lowering.steps import BoundCall, Frame, Run, reader
from foldline.support.errors import FoldlineError

MOST_IDLE = 8
"""So many idle instances a plan keeps; more exist only while more runs are in flight."""

BoundStep = Callable[[], Any]
Outputs = TypeVar("Outputs")


Watch = Callable[[Sequence[BoundCall], Iterator[BoundStep], Frame], None]
"""Runs the steps itself; the calls tell what each step belongs to."""

_current = threading.local()


@contextmanager
def watch_steps(watch: Watch) -> Generator[None]:
    """Let `watch` run the steps of all plans, of bodies too, that this thread runs in the block."""
    previous = getattr(_current, "watch", None)
    _current.watch = watch
    try:
        yield
    finally:
        _current.watch = previous


class PlanBroken(FoldlineError):
    """Never seen outside: a shape is not what the plan relies on, so the run must start again."""


class Instance:
    """One arena and its steps. Serves one run at a time."""

    def __init__(self, plan: Plan):
        self.arena = aligned_bytes(plan.arena_bytes)
        self._views: dict[tuple[int, tuple[int, ...], np.dtype[Any], bool], Array] = {}
        self._plan = plan
        self._frame: Frame = plan.start.copy()
        self._moving = frozenset(plan.moving)
        self._steps: list[BoundStep] = []
        self._calls: list[BoundCall] = []
        # Entering a context that is quiet takes a sixth of the time of np.errstate.
        self._quiet = Context()
        self._quiet.run(np.seterr, all="ignore")
        inputs = range(plan.inputs.start, plan.inputs.stop)
        for position, planned in enumerate(plan.calls):
            steps = self._bind(planned)
            if planned.span is not None:
                together = plan.calls[planned.span.first : position + 1]
                is_last = position == planned.span.last
                steps = [tiled(together, self._frame)] if is_last else []
            # What the caller gave is the caller's to drop.
            frees = [slot for slot in planned.frees if slot not in inputs]
            if frees:
                steps.append(partial(_clear, self._frame, frees))
            self._steps += steps
            self._calls += [planned.call] * len(steps)

    def run(self, inputs: Sequence[Any], take: Callable[[Frame], Outputs]) -> Outputs:
        """What `take` makes of the frame once it has run. Raises KernelFailed, PlanBroken."""
        return self._quiet.run(self._run, inputs, take)

    def _run(self, inputs: Sequence[Any], take: Callable[[Frame], Outputs]) -> Outputs:
        frame, plan = self._frame, self._plan
        frame[plan.inputs] = inputs
        try:
            iterator = iter(self._steps)
            with KernelErrors(self._calls, iterator, frame):
                watch: Watch | None = getattr(_current, "watch", None)
                if watch is not None:
                    watch(self._calls, iterator, frame)
                for step in iterator:
                    step()
            return take(frame)
        finally:
            _clear(frame, plan.moving)

    def _bind(self, planned: PlannedCall) -> list[BoundStep]:
        """The steps of a call; none for one that is done with here."""
        call, frame = planned.call, self._frame
        scratch = {"scratch": self._view(planned.scratch)} if planned.scratch is not None else {}
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
                return [partial(_allocating(planned, run), frame)]

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
            return [lambda: run(*read(frame), out=destination, **scratch)]
        check = _allocating(planned, partial(run, out=destination, **scratch))
        return [partial(check, frame)]


def _allocating(planned: PlannedCall, run: Callable[..., Any]) -> Run:
    """Run, store the results, and see that they have the shapes the plan was made for."""
    call, shapes = planned.call, planned.shapes
    read = reader(call.inputs)
    expected = tuple(zip(call.results, shapes, strict=True))
    first, shape = expected[0]

    def run_and_check_one(frame: Frame) -> None:
        value = run(*read(frame))
        if type(value) is np.ndarray and value.flags.c_contiguous:
            frame[first] = value
        else:
            call.store(frame, value)
        if frame[first].shape != shape:
            raise PlanBroken

    def run_and_check(frame: Frame) -> None:
        for (slot, shape), result in zip(expected, run(*read(frame)), strict=False):
            if type(result) is not np.ndarray or not result.flags.c_contiguous:
                result = call.settled(result, frame)
            frame[slot] = result
            if result.shape != shape:
                raise PlanBroken

    return run_and_check_one if len(expected) == 1 else run_and_check


def _clear(frame: Frame, slots: Sequence[int]) -> None:
    for slot in slots:
        frame[slot] = None


class Pool:
    """Instances of one plan, made when needed and kept for the next run."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.idle: list[Instance] = []

    def run(self, inputs: Sequence[Any], take: Callable[[Frame], Outputs]) -> Outputs:
        """Run on an idle or new instance. Raises KernelFailed, PlanBroken."""
        try:
            instance = self.idle.pop()
        except IndexError:
            instance = Instance(self.plan)
        try:
            return instance.run(inputs, take)
        finally:
            if len(self.idle) < MOST_IDLE:
                self.idle.append(instance)
