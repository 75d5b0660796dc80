"""A block of the plan bound to its kernels: the shape-generic program.

Values live in a *frame*, a list with one slot a value. Slot 0 is None for absent inputs; then
come constants, what is computed once, what a body takes from outside, the block's own inputs,
and everything else:

    [None | constants | once | captures | inputs | locals]

A step is a closure that reads and writes a frame and the slots that die after it. Steps allocate
their results, so they serve any shapes. A frame starts as a copy of a template.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldline.kernels.control_flow import ValueType
from foldline.lowering.kernel_errors import KernelErrors
from foldline.lowering.steps import BoundCall, Frame, Step, is_array

Observer = Callable[[BoundCall, Frame], None]
"""Called after each call, before what dies there is dropped."""


@dataclass(frozen=True)
class Layout:
    """Which slots a routine's frame has."""

    inputs: slice
    captures: slice
    outputs: tuple[int, ...]
    size: int


class Routine:
    """A program or body: immutable but for what it computes once, which it keeps."""

    def __init__(
        self,
        layout: Layout,
        once: Sequence[BoundCall],
        calls: Sequence[BoundCall],
        constants: Sequence[Any],
        parameters: Sequence[ValueType],
        results: Sequence[ValueType],
    ):
        self.layout = layout
        self.calls = tuple(calls)
        self.parameters = tuple(parameters)
        self.results = tuple(results)
        self.steps: list[Step] = [call.step() for call in calls]
        self._once = tuple(once)
        self._start: Frame = [*constants, *[None] * (layout.size - len(constants))]
        self._ready: Frame | None = None
        self._lock = threading.Lock()

    @property
    def constant_slots(self) -> range:
        """Slots whose value is the same in every frame."""
        return range(self.layout.captures.start)

    @property
    def constants(self) -> list[Any]:
        """What is given with the model, before anything is computed from it."""
        return [value for value in self._start if value is not None]

    @property
    def given(self) -> range:
        """Slots of what a run is given: captures, then inputs."""
        return range(self.layout.captures.start, self.layout.inputs.stop)

    def frame(self) -> Frame:
        """A fresh frame with constants; the first one computes what is computed once.

        Raises KernelFailed.
        """
        if self._ready is None:
            with self._lock:
                if self._ready is None:
                    # A splat is one element seen under a shape; kernels get what a run computes.
                    ready = [_contiguous(value) for value in self._start]
                    execute([call.step() for call in self._once], self._once, ready)
                    self._ready = ready
        return self._ready.copy()

    def run(self, frame: Frame) -> None:
        """Run all steps on a frame whose inputs are in place. Raises KernelFailed."""
        execute(self.steps, self.calls, frame)

    def run_observed(self, frame: Frame, observe: Observer) -> None:
        """The same, showing every call's results to `observe`."""
        with KernelErrors(self.calls, self.steps, frame) as steps:
            for call, (run, frees) in zip(self.calls, steps, strict=True):
                run(frame)
                observe(call, frame)
                for slot in frees:
                    frame[slot] = None


def _contiguous(value: Any) -> Any:
    return np.asarray(value, order="C") if is_array(value) else value


def execute(steps: Sequence[Step], calls: Sequence[BoundCall], frame: Frame) -> None:
    """Run the steps of `calls` in order. Raises KernelFailed."""
    with KernelErrors(calls, steps, frame) as remaining:
        for run, frees in remaining:
            run(frame)
            for slot in frees:
                frame[slot] = None
