"""Negations that the step before takes over, where what follows cannot tell the difference.

    x + c, negative, exp    ->   (-c) - x, exp
    x - y, negative, exp    ->   y - x, exp
    x * c, negative, exp    ->   x * (-c), exp

Rounding is the same on both sides of zero, so the bits are the same but for the sign of a zero or
NaN, which `exp` does not look at. A call is what small arrays cost: Sigmoid has three of them then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

BoundStep: TypeAlias = tuple[Any, ...]
"""A function and its arguments; of a ufunc, the inputs and then the destination."""

MOST_BYTES = 1 << 14
"""A constant that is larger is not copied to have its sign changed."""


def negation_taken_over(
    before: BoundStep, steps: Sequence[BoundStep], constants: Sequence[Any]
) -> list[BoundStep] | None:
    """What to run instead of the step `before` and of `steps`, which alone use what it writes.

    None where `steps` do not begin with a negation that can go.
    """
    if [step[0] for step in steps[:2]] != [np.negative, np.exp] or before[0] not in _NEGATED:
        return None
    (_, source, _), (_, _, result), *others = steps
    if before[-1] is not source:
        return None
    small = [id(array) for array in constants if array is not None and array.nbytes <= MOST_BYTES]
    negated = _NEGATED[before[0]](before, small)
    return None if negated is None else [negated, (np.exp, source, result), *others]


def _negated_sum(step: BoundStep, constants: Sequence[int]) -> BoundStep | None:
    _, a, b, out = step
    if id(b) in constants:
        return np.subtract, _negative(b), a, out
    return (np.subtract, _negative(a), b, out) if id(a) in constants else None


def _negated_difference(step: BoundStep, constants: Sequence[int]) -> BoundStep:
    _, a, b, out = step
    return np.subtract, b, a, out


def _negated_product(step: BoundStep, constants: Sequence[int]) -> BoundStep | None:
    ufunc, a, b, out = step
    if id(b) in constants:
        return ufunc, a, _negative(b), out
    return (ufunc, _negative(a), b, out) if id(a) in constants else None


def _negative(constant: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(np.negative(constant))


_NEGATED: dict[Any, Callable[[BoundStep, Sequence[int]], BoundStep | None]] = {
    np.add: _negated_sum,
    np.subtract: _negated_difference,
    np.multiply: _negated_product,
}
