"""What a plan needs to run once at a time: an arena, arrays in it, and steps bound to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels.registry import aligned_bytes
from foldline.kernels.ufuncs import UFUNCS
from foldline.lowering.chains import tiled
from foldline.lowering.kernel_errors import KernelErrors
from foldline.lowering.outputs import handed_out
from foldline.lowering.planned_call import PlannedCall
from foldline.lowering.specialise import Plan
from foldline.lowering.steps import BoundCall, Frame, Run, reader
from foldline.support.errors import FoldlineError

MOST_IDLE = 8
"""So many idle instances a plan keeps; more exist only while more runs are in flight."""

BoundStep = Callable[[], Any]


class PlanBroken(FoldlineError):
    """Never seen outside: a shape is not what the plan relies on, so the run must start again."""


class Instance:
    """One arena and its steps. Serves one run at a time."""

    def __init__(self, plan: Plan):
        self.arena = aligned_bytes(plan.arena_bytes)
        self._plan = plan
        self._frame: Frame = plan.start.copy()
        self._moving = frozenset(plan.moving)
        self._steps: list[BoundStep] = []
        self._calls: list[BoundCall] = []
        for position, planned in enumerate(plan.calls):
            step = self._bind(planned)
            if planned.span is not None:
                if position == planned.span.last:
                    together = plan.calls[planned.span.first : position + 1]
                    self._add(tiled(together, self._frame), planned.call)
            elif step is not None:
                self._add(step, planned.call)
            if planned.frees:
                self._add(partial(_clear, self._frame, planned.frees), planned.call)

    def run(self, inputs: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """The outputs at positions `wanted`. Raises KernelFailed, PlanBroken."""
        frame, plan = self._frame, self._plan
        frame[plan.inputs] = inputs
        try:
            iterator = iter(self._steps)
            with KernelErrors(self._calls, iterator, frame):
                for step in iterator:
                    step()
            return handed_out(frame, plan.outputs, plan.owned, wanted)
        finally:
            _clear(frame, plan.moving)

    def _add(self, step: BoundStep, call: BoundCall) -> None:
        self._steps.append(step)
        self._calls.append(call)

    def _bind(self, planned: PlannedCall) -> BoundStep | None:
        """The step of a call, or None for one that is done with here."""
        call, frame = planned.call, self._frame
        scratch = (
            {"scratch": planned.scratch.view(self.arena)} if planned.scratch is not None else {}
        )
        match planned.kind:
            case "generic":
                return partial(planned.run, frame)
            case "view":
                call.store(frame, planned.run(*[frame[slot] for slot in call.inputs]))
                return None
            case "copy":
                return self._copying(planned)
            case "out":
                return self._writing(planned, scratch)
            case "fresh":
                run = partial(planned.run, **scratch) if scratch else planned.run
                return partial(_allocating(planned, run), frame)

    def _copying(self, planned: PlannedCall) -> BoundStep:
        assert planned.place is not None, "a copy has a place"
        source, *others = [self._frame[slot] for slot in planned.call.inputs]
        copy = planned.place.view(self.arena)
        planned.call.store(self._frame, planned.run(copy, *others))
        return partial(np.copyto, copy, source)

    def _writing(self, planned: PlannedCall, scratch: dict[str, Any]) -> BoundStep:
        assert planned.place is not None, "what is written has a place"
        call, frame, run = planned.call, self._frame, planned.run
        destination = frame[call.results[0]] = planned.place.view(self.arena)
        if self._moving.isdisjoint((*call.inputs, *call.results)):
            arrays = [frame[slot] for slot in call.inputs]
            if run in UFUNCS:
                # Not through the kernel, and by position: half the time of a small call.
                return partial(UFUNCS[run], *arrays, destination)
            return partial(run, *arrays, out=destination, **scratch)
        read = reader(call.inputs)
        if len(call.results) == 1:
            return lambda: run(*read(frame), out=destination, **scratch)
        check = _allocating(planned, partial(run, out=destination, **scratch))
        return partial(check, frame)


def _allocating(planned: PlannedCall, run: Callable[..., Any]) -> Run:
    """Run, store the results, and see that they have the shapes the plan was made for."""
    call, shapes = planned.call, planned.shapes
    read = reader(call.inputs)
    expected = tuple(zip(call.results, shapes, strict=True))

    def run_and_check(frame: Frame) -> None:
        call.store(frame, run(*read(frame)))
        for slot, shape in expected:
            if frame[slot].shape != shape:
                raise PlanBroken

    return run_and_check


def _clear(frame: Frame, slots: Sequence[int]) -> None:
    for slot in slots:
        frame[slot] = None


class Pool:
    """Instances of one plan, made when needed and kept for the next run."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.idle: list[Instance] = []

    def run(self, inputs: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """Run on an idle or new instance. Raises KernelFailed, PlanBroken."""
        try:
            instance = self.idle.pop()
        except IndexError:
            instance = Instance(self.plan)
        try:
            return instance.run(inputs, wanted)
        finally:
            if len(self.idle) < MOST_IDLE:
                self.idle.append(instance)
