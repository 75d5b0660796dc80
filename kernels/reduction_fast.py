"""Reductions over the last axes of contiguous floats, by the cheapest primitive for rows.

Sums of rows are a product with a vector of ones, sums of squares a product of every row with
itself, a maximum is taken of the transposed rows; NumPy's own reduction of a short last axis costs
several times as much. Longer rows go to the reference kernels, whose pairwise sum is the more
precise one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from foldline.kernels.reduction import (
    Axes,
    Body,
    group_size,
    reduce_l1,
    reduce_l2,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_sum,
    reduce_sum_square,
    register,
)
from foldline.kernels.registry import Array
from foldline.kernels.ufuncs import constant

_LONGEST = 4096
_NARROW = 48
"""Longest row that is transposed for a maximum: reducing the first axis is vectorised."""


def _sums(rows: Array) -> Array:
    return np.matmul(rows, _ones(rows.shape[1], rows.dtype))


def _mean(rows: Array) -> Array:
    total = _sums(rows)
    return np.divide(total, group_size(rows, total), total)


def _sums_of_squares(rows: Array) -> Array:
    return np.vecdot(rows, rows)


def _sums_of_magnitudes(rows: Array) -> Array:
    return _sums(np.absolute(rows))


def _l2(rows: Array) -> Array:
    return np.sqrt(_sums_of_squares(rows))


def _maximum(rows: Array) -> Array:
    return np.maximum.reduce(np.ascontiguousarray(rows.T))


def _minimum(rows: Array) -> Array:
    return np.minimum.reduce(np.ascontiguousarray(rows.T))


@lru_cache(maxsize=64)
def _ones(size: int, dtype: np.dtype[Any]) -> Array:
    ones = np.ones(size, dtype)
    ones.flags.writeable = False
    return ones


def _plus_zero(x: Array, out: Array | None) -> Array:
    """The sum of one element: of -0 that is 0."""
    return np.add(x, constant(0, x.dtype), out)


def _by_rows(
    by_rows: Callable[[Array], Array],
    longest: int,
    otherwise: Body,
    alone: Callable[[Array, Array | None], Array] | None = None,
) -> Body:
    """`by_rows` where the elements to reduce are short rows in memory, else `otherwise`.

    `alone`, if given, reduces a single element.
    """

    def body(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
        first = _first_reduced(x, axes)
        width = math.prod(x.shape[first:])
        if width == 1 and alone is not None and first < x.ndim:
            return alone(x.reshape(x.shape if keepdims else x.shape[:first]), out)
        if first == x.ndim or not 1 < width <= longest:
            return otherwise(x, axes, keepdims, out)
        kept = x.shape[:first] + (1,) * (x.ndim - first if keepdims else 0)
        return by_rows(x.reshape(-1, width)).reshape(kept)

    return body


def _first_reduced(x: Array, axes: Axes) -> int:
    """The axis from which on all are reduced, or the rank when it is not like that."""
    if x.dtype.kind != "f" or not x.flags.c_contiguous:
        return x.ndim
    return 0 if axes is None else _first_of_last(axes, x.ndim)


@lru_cache(maxsize=256)
def _first_of_last(axes: tuple[int, ...], rank: int) -> int:
    """The first of `axes` if they are the last ones of all, else the rank."""
    first = rank - len(axes)
    reduced = sorted(normalize_axis_tuple(axes, rank))
    return first if reduced == list(range(first, rank)) else rank


for _op_type, _rows, _longest, _body, _alone, _axes_input_since in (
    ("ReduceL1", _sums_of_magnitudes, _LONGEST, reduce_l1, None, 18),
    ("ReduceL2", _l2, _LONGEST, reduce_l2, None, 18),
    ("ReduceMax", _maximum, _NARROW, reduce_max, None, 18),
    ("ReduceMean", _mean, _LONGEST, reduce_mean, _plus_zero, 18),
    ("ReduceMin", _minimum, _NARROW, reduce_min, None, 18),
    ("ReduceSum", _sums, _LONGEST, reduce_sum, _plus_zero, 13),
    ("ReduceSumSquare", _sums_of_squares, _LONGEST, reduce_sum_square, None, 18),
):
    register(_op_type, _by_rows(_rows, _longest, _body, _alone), _axes_input_since, "fast")
