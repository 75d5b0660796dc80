"""Bodies of control flow: routines that know what they take from outside, and their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.lowering.instances import Pool
from foldline.lowering.moving_steps import PlanBroken
from foldline.lowering.plans import Key, Plans, key_of
from foldline.lowering.routine import Routine
from foldline.lowering.steps import Frame

PLAN_AFTER = 3
"""So often a body must see shapes before a plan is made, which takes as long as some ten runs."""


class BodyProgram:
    """A body before it is given what it takes from outside. Immutable but for its plans."""

    __slots__ = ("plans", "routine")

    def __init__(self, routine: Routine):
        self.routine = routine
        self.plans = Plans(routine, PLAN_AFTER, alone=False)

    def __call__(self, captured: Sequence[Any]) -> BoundBody:
        """The body for one run."""
        return BoundBody(self, captured)


class BoundBody:
    """A body with what it takes from outside: what kernels call. Serves one run, one thread."""

    __slots__ = ("_captured", "_frame", "_is_planned", "_key", "_program", "_turns")

    def __init__(self, program: BodyProgram, captured: Sequence[Any]):
        self._program = program
        self._captured = captured
        self._frame: Frame | None = None
        self._turns = 0
        self._key: Key | None = None
        """The shapes of the turn that was looked at last."""
        self._is_planned = False
        """Whether the last turn ran by a plan."""

    @property
    def parameters(self) -> Sequence[Any]:
        """Types of the body's own inputs."""
        return self._program.routine.parameters

    @property
    def results(self) -> Sequence[Any]:
        """Types of the body's outputs."""
        return self._program.routine.results

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the body once. Raises KernelFailed, ValueError for a wrong number of inputs."""
        expected = len(self._program.routine.parameters)
        if len(inputs) != expected:
            raise ValueError(f"the body takes {expected} inputs, got {len(inputs)}")
        self._turns = turns = self._turns + 1
        # Where shapes grow from turn to turn, looking at all of them is a tenth of the time.
        if self._is_planned or not turns & (turns - 1):
            return self._run((*self._captured, *inputs))
        return self._run_generic(inputs)

    def _run(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        plans = self._program.plans
        key = key_of(given)
        is_steady = self._key in (None, key)
        self._key = key
        found = plans.find(key) if key is not None and is_steady else "generic"
        self._is_planned = isinstance(found, Pool)
        if key is not None and isinstance(found, Pool):
            try:
                return found.run(given, found.plan.returned)
            except PlanBroken:
                plans.give_up(key)
        if key is not None and found == "learn":
            routine = self._program.routine
            frame = routine.frame()
            frame[routine.given.start : routine.given.stop] = given
            plan = plans.learn(key, frame)
            return plan.returned(frame)
        return self._run_generic(given[len(self._captured) :])

    def _run_generic(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        routine = self._program.routine
        frame = self._frame
        if frame is None:
            # Made at the first call, so that a branch not taken costs nothing.
            frame = self._frame = routine.frame()
            frame[routine.layout.captures] = self._captured
        frame[routine.layout.inputs] = inputs
        routine.run(frame)
        return tuple([frame[slot] for slot in routine.layout.outputs])
