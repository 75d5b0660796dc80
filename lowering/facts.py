"""What the shapes of a program's inputs decide, learnt from one run.

For given input shapes every value is
    Known    its elements hang on constants and shapes only (a Shape, and what is made of it)
    Shaped   its shape and dtype are decided, its elements are not
    OPEN     not even its shape is decided, or it is no tensor
A run is watched call by call, and what holds for the results follows from what holds for the
inputs: this is a taint analysis that has the values at hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from foldline.kernels.registry import Array
from foldline.lowering.steps import BoundCall, Frame, is_array


@dataclass(frozen=True)
class Known:
    """A value that is the same in every run on these input shapes."""

    value: Any


@dataclass(frozen=True)
class Shaped:
    """A tensor whose shape and dtype are the same in every run on these input shapes."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


MOST_KEPT = 1 << 10
"""A value of so few elements stays until a run ends."""
OPEN: Literal["open"] = "open"
Fact: TypeAlias = Known | Shaped | Literal["open"]


class Facts:
    """The facts of one routine, collected while it runs."""

    def __init__(self, frame: Frame, constants: Iterable[int], inputs: Iterable[int]):
        """Start from a frame with constants and inputs in place."""
        self._facts: dict[int, Fact] = {slot: _shaped(frame[slot]) for slot in inputs}
        self.note_known(constants, frame)

    def __getitem__(self, slot: int) -> Fact:
        return self._facts[slot]

    def note_known(self, slots: Iterable[int], frame: Frame) -> None:
        """Note that slots of a frame hold what they hold in every run."""
        self._facts.update((slot, Known(frame[slot])) for slot in slots)

    def note_copy(self, source: int, copy: int) -> None:
        """Note that a slot will hold a copy of what another one holds."""
        self._facts[copy] = self._facts[source]

    def are_known(self, slots: tuple[int, ...]) -> bool:
        """Whether all these values are known."""
        return all(isinstance(self._facts[slot], Known) for slot in slots)

    def observe(self, call: BoundCall, frame: Frame) -> None:
        """Note what holds for the results of a call that has just run."""
        for slot in call.results:
            self._facts[slot] = self._fact(call, frame[slot])

    def _fact(self, call: BoundCall, value: Any) -> Fact:
        operands = (*call.inputs, *call.captures)
        if "random" not in call.facts:
            if self.are_known(operands):
                return _known(value)
            if "reads-shape" in call.facts and isinstance(self[call.inputs[0]], Shaped):
                return _known(value)
        is_open = (
            "open-shape" in call.facts
            or bool(call.bodies)
            or any(self[slot] == OPEN for slot in operands)
            or not self.are_known(call.shape_inputs)
        )
        return OPEN if is_open else _shaped(value)


def is_dropped_early(fact: Fact) -> bool:
    """Whether a value is dropped where it dies, by a step of 0.3 µs, or when a run ends."""
    return not isinstance(fact, Shaped) or math.prod(fact.shape) > MOST_KEPT


def _shaped(value: Any) -> Fact:
    return Shaped(value.shape, value.dtype) if is_array(value) else OPEN


def _known(value: Any) -> Known:
    """Known values live as long as the plan: nobody may write to them."""
    if is_array(value):
        array: Array = value.view()
        array.flags.writeable = False
        return Known(array)
    return Known(value)
