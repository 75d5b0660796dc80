"""Arithmetic: Add … Pow, rounding and sign, and the variadic Max, Min, Sum and Mean.

Integers are computed as integers and wrap around, like the two's complement hardware does; no
kernel goes through float64 to compute something that is not float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foldline.kernels.arguments import copy_of
from foldline.kernels.precision import rounded, widened, widening
from foldline.kernels.registry import Array, computes_in_single, kernel
from foldline.kernels.ufuncs import (
    bounds,
    clip,
    is_native,
    register_binary,
    register_binary_before_7,
    register_unary,
)


def divide(a: Array, b: Array, *, out: Array | None = None) -> Array:
    """`a / b`; integers truncate toward zero, INT_MIN / -1 wraps to INT_MIN and x / 0 is 0."""
    if a.dtype.kind not in "iu":
        return np.asarray(np.divide(a, b, out=out))
    whole = a if a.dtype.kind == "u" else a - np.fmod(a, b)
    return np.asarray(np.floor_divide(whole, b, out=out))


def power(x: Array, y: Array, *, out: Array | None = None) -> Array:
    """`x ** y` in the dtype of `x`, whatever the dtype of `y`.

    Integers to integral powers are exact modulo 2^bits; a negative power of an integer is the
    reciprocal truncated toward zero (0 to a negative power, which is infinite, gives 0).
    """
    if x.dtype.kind in "iu":
        return rounded(_integer_power(x, y), x.dtype, out)
    if x.dtype.char in "fd" and y.size == 1 and y.ndim <= x.ndim:
        exponent = y.item()
        if exponent == 2:
            return np.asarray(np.square(x, out=out))
        if exponent == 3:
            return np.asarray(np.multiply(np.square(x), x, out=out))
    if x.dtype == y.dtype:
        return np.asarray(np.power(x, y, out=out))
    base = widened(x)
    exponent = y.astype(base.dtype) if y.dtype.kind in "iu" else widened(y)
    return rounded(np.asarray(np.power(base, exponent)), x.dtype, out)


def _integer_power(x: Array, y: Array) -> Array:
    if y.dtype.kind not in "iu":
        exponent = widened(y)
        if not np.array_equal(exponent, np.rint(exponent)):
            return np.asarray(np.power(x.astype(np.float64), exponent))
        y = exponent.astype(np.int64)
    result = np.asarray(np.power(x, np.maximum(y, 0).astype(np.int64)))
    if y.dtype.kind == "u" or not (y < 0).any():
        return result
    # The reciprocal of an integer truncates to 0, but those of 1 and -1 are themselves.
    unit = np.where(np.abs(x) == 1, np.where(y % 2 == 0, 1, x), 0)
    return np.where(y < 0, unit, result)


register_unary("Abs", np.absolute, consumed_inputs=True, in_single=True)
register_unary("Neg", np.negative, consumed_inputs=True, in_single=True)
register_unary("Sign", np.sign)
register_unary("Ceil", np.ceil, consumed_inputs=True)
register_unary("Floor", np.floor, consumed_inputs=True)
register_unary("Round", np.rint)
register_unary("Sqrt", np.sqrt, consumed_inputs=True)
register_unary("Reciprocal", np.reciprocal, consumed_inputs=True)

for _op_type, _function in (
    ("Add", np.add),
    ("Sub", np.subtract),
    ("Mul", np.multiply),
    ("Div", divide),
):
    register_binary(_op_type, _function, since=7, in_single=True)
    register_binary_before_7(_op_type, _function, consumed_inputs=True)
register_binary("Pow", power, since=7)
register_binary_before_7("Pow", power)


@kernel("Mod", inplace=(0, 1))
def modulo(a: Array, b: Array, *, fmod: int = 0, out: Array | None = None) -> Array:
    """Mod 10+: the remainder with the sign of `b`, or with `fmod` that of `a` (C's fmod).

    An integer modulo 0 is 0. Versions before 28 only define floats with `fmod`; without it they
    get the meaning version 28 gives them.
    """
    return np.asarray((np.fmod if fmod else np.remainder)(a, b, out=out))


@kernel("Clip", since=11, inplace=(0,))
@computes_in_single
def clip_inputs(
    x: Array, low: Array | None = None, high: Array | None = None, *, out: Array | None = None
) -> Array:
    """Clip 11+: `Min(max, Max(min, x))`, so `max` wins when `min` is greater; NaN stays NaN.

    An absent bound does not bound at all: infinities pass.
    """
    if low is None and high is None:
        return copy_of(x, out)
    least, greatest = bounds(x.dtype)
    low = least if low is None else low.reshape(())
    high = greatest if high is None else high.reshape(())
    return np.asarray(clip(x, low, high, out))


@kernel("Clip", until=11, inplace=(0,))
@computes_in_single
def clip_attributes(
    x: Array,
    *,
    min: float | None = None,
    max: float | None = None,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
) -> Array:
    """Clip 1 and 6: the bounds are attributes."""
    low = None if min is None else np.array(min).astype(x.dtype)
    high = None if max is None else np.array(max).astype(x.dtype)
    return clip_inputs(x, low, high, out=out)


@kernel("Max", inplace=(0, 1))
def maximum(
    *arrays: Array, consumed_inputs: Sequence[int] | None = None, out: Array | None = None
) -> Array:
    """Max 1+ of any number of broadcast arrays; a NaN anywhere gives NaN."""
    return _accumulate(_maximum_of_two, arrays, out)


@kernel("Min", inplace=(0, 1))
def minimum(
    *arrays: Array, consumed_inputs: Sequence[int] | None = None, out: Array | None = None
) -> Array:
    """Min 1+ of any number of broadcast arrays; a NaN anywhere gives NaN."""
    return _accumulate(_minimum_of_two, arrays, out)


@kernel("Sum", inplace=(0, 1))
@widening
def add_all(
    *arrays: Array, consumed_inputs: Sequence[int] | None = None, out: Array | None = None
) -> Array:
    """Sum 1+ of any number of broadcast arrays, from left to right."""
    return _accumulate(np.add, arrays, out)


@kernel("Mean", inplace=(0, 1))
@widening
def mean(
    *arrays: Array, consumed_inputs: Sequence[int] | None = None, out: Array | None = None
) -> Array:
    """Mean 1+ of any number of broadcast arrays: their sum divided by their number."""
    total = _accumulate(np.add, arrays, out)
    return np.asarray(np.divide(total, len(arrays), out=total))


def _accumulate(function: Any, arrays: Sequence[Array], out: Array | None) -> Array:
    first, *rest = arrays
    if not rest:
        return copy_of(first, out)
    if out is not None and any(np.may_share_memory(out, later) for later in rest[1:]):
        return copy_of(_accumulate(function, arrays, None), out)
    total = first
    for array in rest:
        total = function(total, array, out=out)
    return np.asarray(total)


def _maximum_of_two(a: Array, b: Array, out: Array | None) -> Any:
    if _bounds_all_of(b, a):
        return clip(a, b.reshape(()), bounds(a.dtype)[1], out)
    return np.maximum(a, b, out=out)


def _minimum_of_two(a: Array, b: Array, out: Array | None) -> Any:
    if _bounds_all_of(b, a):
        return clip(a, bounds(a.dtype)[0], b.reshape(()), out)
    return np.minimum(a, b, out=out)


def _bounds_all_of(b: Array, a: Array) -> bool:
    """Whether `b` is one number for all of `a`: then clipping is the faster formulation."""
    return b.size == 1 and b.ndim <= a.ndim and is_native(a.dtype)
