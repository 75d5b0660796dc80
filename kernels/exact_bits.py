"""What exact mode settles that IEEE 754 leaves open: the bits of NaN, and which zero is greater.

    NaN made by arithmetic: positive, quiet, no payload (0x7FC00000 in float32)
    of two zeros: +0 is greater than -0

Both hang on the processor otherwise: x86 makes negative NaNs, and the loop that NumPy chose
decides which of two equal operands a maximum returns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from foldline.kernels.registry import Array
from foldline.kernels.ufuncs import CLIP, NATIVE_FLOATS, constant

Function = TypeVar("Function", bound=Callable[..., Any])

_INTEGERS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.int8),
    2: np.dtype(np.int16),
    4: np.dtype(np.int32),
    8: np.dtype(np.int64),
}
"""Signed integers by the bytes they take."""


def canonical(x: Array) -> Array:
    """`x`, an array of any type that the caller owns, with its NaNs replaced by the one NaN."""
    if x.dtype.kind in "biuOUS" or not x.size:
        return x
    # A maximum is NaN where one element is; finding it takes half the time of a comparison.
    greatest_of_all = np.maximum.reduce(x, None)
    if greatest_of_all != greatest_of_all:
        x[np.asarray(x != x)] = nan_of(x.dtype)
    return x


@functools.cache
def nan_of(dtype: np.dtype[Any]) -> Any:
    """The NaN of a float type: positive, quiet, no payload."""
    return np.array(0x7FC00000, np.uint32).view(np.float32).astype(dtype)


def canonicalised(function: Function) -> Function:
    """Decorator: a kernel whose results are its own arrays, the floats of which become canonical.

    It is for kernels; a function that may hand on its input needs a copy first.
    """

    @functools.wraps(function)
    def wrapper(*arrays: Any, **keywords: Any) -> Any:
        result = function(*arrays, **keywords)
        if isinstance(result, tuple):
            return tuple(canonical(np.asarray(part)) for part in cast("tuple[Any, ...]", result))
        return canonical(np.asarray(result))

    return cast(Any, wrapper)


def maximum(a: Array, b: Array) -> Array:
    """The greater of each pair in a new array; NaN where either is, +0 above -0."""
    return _chosen(np.maximum, np.logical_and, a, b)


def minimum(a: Array, b: Array) -> Array:
    """The smaller of each pair in a new array; NaN where either is, -0 below +0."""
    return _chosen(np.minimum, np.logical_or, a, b)


def _chosen(choose: np.ufunc, negative: np.ufunc, a: Array, b: Array) -> Array:
    if b.size == 1 and b.ndim <= a.ndim and b.dtype == a.dtype and b.dtype.kind not in "biuOUS":
        bound = b.reshape(())
        if bound != 0:
            return canonical(_bounded(choose, a, bound))
        if choose is np.maximum and not np.signbit(bound):
            result = _bounded(choose, a, bound)
            return canonical(np.add(result, bound, out=result))
    result = np.asarray(choose(a, b))
    if result.dtype.kind in "biuOUS":
        return result
    zero = np.asarray(result == 0)
    if zero.any():
        # The sign bits alone decide: a zero is the greater one only if the other is not above it.
        is_negative = np.broadcast_to(negative(np.signbit(a), np.signbit(b)), result.shape)
        result = np.where(zero, np.copysign(np.zeros_like(result), _sign(is_negative)), result)
        result = result.astype(np.result_type(a, b), copy=False)
    return canonical(result)


def _bounded(choose: np.ufunc, x: Array, bound: Array) -> Array:
    """`choose` of `x` and one number, which for float32 is clipping: NumPy's loop is faster.

    A zero of the result is one of `x`, with its sign, where the number is not zero. The maximum
    with +0 is some zero where `x` is not above it; adding +0 to that gives +0.
    """
    result = np.empty_like(x)
    if x.dtype not in NATIVE_FLOATS:
        return np.asarray(choose(x, bound, out=result))
    if choose is np.maximum:
        return CLIP(x, bound, constant(np.inf, x.dtype), result)
    return CLIP(x, constant(-np.inf, x.dtype), bound, result)


def _sign(is_negative: Array) -> Array:
    return np.where(is_negative, np.float32(-1), np.float32(1))


def ordered(x: Array) -> Array:
    """Integers in the order of the floats `x`: -0 below +0, NaN on top."""
    integer = _INTEGERS[x.dtype.itemsize]
    bits = canonical(x.copy()).view(integer)
    return np.asarray(bits ^ ((bits >> (8 * integer.itemsize - 1)) & np.iinfo(integer).max))


def from_ordered(keys: Array, dtype: np.dtype[Any]) -> Array:
    """What `ordered` made the integers of."""
    integer = _INTEGERS[dtype.itemsize]
    bits = keys ^ ((keys >> (8 * integer.itemsize - 1)) & np.iinfo(integer).max)
    return np.asarray(bits).view(dtype)


def greatest(x: Array, axes: tuple[int, ...] | None, keepdims: bool = False) -> Array:
    """The maximum over axes (None: all): -inf, or what integers have lowest, over no elements.

    NaN where there is one. The order of integers is total, so that of the search cannot matter.
    """
    if x.dtype.kind in "biu":
        low = False if x.dtype.kind == "b" else np.iinfo(x.dtype).min
        return np.asarray(np.maximum.reduce(x, axes, initial=low, keepdims=keepdims))
    if x.dtype in NATIVE_FLOATS:
        found = np.asarray(
            np.maximum.reduce(x, axes, initial=constant(-np.inf, x.dtype), keepdims=keepdims)
        )
        # Only of zeros, and of NaNs, could the order of the search choose one.
        if np.all(found):
            return canonical(found)
    low = ordered(np.array(-np.inf).astype(x.dtype)).item()
    found = np.maximum.reduce(ordered(x), axes, initial=low, keepdims=keepdims)
    return from_ordered(np.asarray(found), x.dtype)


def least(x: Array, axes: tuple[int, ...] | None, keepdims: bool = False) -> Array:
    """The minimum over axes (None: all): inf, or what integers have highest, over no elements."""
    if x.dtype.kind in "biu":
        high = True if x.dtype.kind == "b" else np.iinfo(x.dtype).max
        return np.asarray(np.minimum.reduce(x, axes, initial=high, keepdims=keepdims))
    if x.dtype in NATIVE_FLOATS:
        found = np.asarray(
            np.minimum.reduce(x, axes, initial=constant(np.inf, x.dtype), keepdims=keepdims)
        )
        if np.all(found):
            return canonical(found)
    # NaN is below all numbers once its sign is turned, and so is every number in its place.
    turned = greatest(np.asarray(np.negative(x)), axes, keepdims)
    return canonical(np.asarray(np.negative(turned)))
