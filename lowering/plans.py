"""The plans of one routine, made for shapes that it sees again.

The first runs on given shapes are shape-generic. Then one is watched, and a plan is made from
what it shows, which later runs use. Many threads may ask at once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from foldline.kernels.ufunc_state import quiet_ufuncs
from foldline.lowering.instances import Pool
from foldline.lowering.routine import Routine
from foldline.lowering.specialise import Plan, specialise
from foldline.lowering.steps import Frame
from foldline.lowering.trace import traced

MOST_PLANS = 8
"""So many shapes a routine keeps plans for; the least recently used goes first."""

Key: TypeAlias = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
_State: TypeAlias = Pool | int | Literal["busy", "generic"]
"""How often seen; `busy`: a plan is being made; `generic`: a plan did not hold."""


def key_of(inputs: Sequence[Any]) -> Key | None:
    """Shapes and dtypes; None where an input is no tensor, for such runs are never planned."""
    try:
        return tuple([(value.shape, value.dtype) for value in inputs])
    except AttributeError:
        return None


class Plans:
    """The plans of one routine by the shapes of its inputs."""

    def __init__(self, routine: Routine, after: int, alone: bool):
        """`after`: a plan is made once shapes were seen so often; `alone`: see `specialise`."""
        self._routine = routine
        self._after = after
        self._alone = alone
        self._states: OrderedDict[Key, _State] = OrderedDict()
        self._latest: tuple[Key, Pool] | None = None
        """The state that was asked for last, if that is a plan."""
        self._lock = threading.Lock()

    def all(self) -> list[Pool]:
        """The plans that exist now, least recently used first."""
        with self._lock:
            return [state for state in self._states.values() if isinstance(state, Pool)]

    def find(self, key: Key) -> Pool | Literal["generic", "learn"]:
        """How to run on these shapes, noting that they were seen.

        Who is told to learn has to call `learn`.
        """
        latest = self._latest
        if latest is not None and (latest[0] is key or latest[0] == key):
            return latest[1]
        with self._lock:
            state = self._states.get(key, 0)
            self._latest = (key, state) if isinstance(state, Pool) else None
            is_due = state == self._after
            if isinstance(state, int):
                self._states[key] = "busy" if is_due else state + 1
                if len(self._states) > MOST_PLANS:
                    self._states.popitem(last=False)
            self._states.move_to_end(key)
            if isinstance(state, Pool):
                return state
            return "learn" if is_due else "generic"

    def learn(self, key: Key, frame: Frame) -> Plan:
        """Run on a frame whose inputs are in place, and make the plan. Raises KernelFailed."""
        state: _State = self._after
        try:
            with quiet_ufuncs():
                plan = specialise(traced(self._routine, frame), self._alone)
            state = Pool(plan)
        finally:
            self._set(key, state)
        return plan

    def give_up(self, key: Key) -> None:
        """Make no plan for these shapes any more: one did not hold."""
        self._set(key, "generic")

    def _set(self, key: Key, state: _State) -> None:
        with self._lock:
            self._latest = None
            if key in self._states:
                self._states[key] = state
