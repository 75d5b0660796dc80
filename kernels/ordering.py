"""Operators that find elements by order or value: TopK, Unique, NonZero."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index

from foldline.kernels.precision import working_dtype
from foldline.kernels.registry import Array, kernel

Pair = tuple[Array, Array]


@kernel("TopK", until=10, exact=True)
def top_k_1(data: Array, *, k: int, axis: int = -1) -> Pair:
    """TopK 1: `k` is an attribute; the largest elements, sorted."""
    return stable_top_k(data, k, axis, True)


@kernel("TopK", since=10, exact=True)
def top_k(data: Array, k: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Pair:
    """TopK 10+: values and int64 indices of the `k` largest, or smallest, along `axis`.

    Of equal elements the one of lower index comes first. NaN counts as larger than all
    numbers. Also without `sorted` the result is sorted. ValueError when `k` exceeds the axis.
    """
    return stable_top_k(data, int(k.item()), axis, bool(largest))


@kernel("NonZero", exact=True)
def non_zero(x: Array) -> Array:
    """NonZero 9+: int64 (rank, count), the indices of elements not zero, in C order.

    For a scalar the shape is (0, 0) or (0, 1).
    """
    if x.ndim == 0:
        return np.empty((0, int(bool(x))), np.int64)
    return np.array(np.nonzero(x), np.int64)


@kernel("Unique", exact=True)
def unique(
    x: Array, *, axis: int | None = None, sorted: int = 1
) -> tuple[Array, Array, Array, Array]:
    """Unique 11+: distinct elements of flattened `x`, or distinct slices along `axis`.

    Returns them with int64 vectors: index of the first occurrence, for every element of `x`
    its place among them, and how often it occurs. In ascending (lexicographic) order, or by
    first occurrence when not `sorted`. NaNs are one value, larger than all numbers.
    """
    flat, along = (x.reshape(-1), 0) if axis is None else (x, normalize_axis_index(axis, x.ndim))
    first, inverse, counts = _distinct(flat, along)
    if not sorted:
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, inverse, counts = first[order], place[inverse], counts[order]
    return (
        flat.take(first, along),
        first.astype(np.int64, copy=False),
        inverse.astype(np.int64, copy=False),
        counts.astype(np.int64, copy=False),
    )


Vector = npt.NDArray[np.intp]


def _distinct(x: Array, axis: int) -> tuple[Vector, Vector, Vector]:
    """First occurrence, inverse and count of the distinct slices, in lexicographic order.

    Elements are replaced by their rank first, so that slices of any dtype compare as integers.
    """
    wide = x.astype(working_dtype(x.dtype), copy=False)
    _, first, rank, counts = np.unique(wide, True, True, True)
    if x.ndim == 1:
        return first, rank.reshape(-1), counts
    slices = x.shape[axis]
    if x.size:
        rows = np.moveaxis(rank.reshape(x.shape), axis, 0).reshape(slices, -1)
    else:
        rows = np.zeros((slices, 1), np.intp)
    _, first, inverse, counts = np.unique(rows, True, True, True, axis=0)
    return first, inverse.reshape(-1), counts


def stable_top_k(data: Array, k: int, axis: int, largest: bool) -> Pair:
    """TopK by a stable sort of the whole axis, for any dtype."""
    axis = normalize_axis_index(axis, data.ndim)
    size = checked_k(data, k, axis)
    # ml_dtypes has no order for NaN, float32 has; widening keeps all others.
    ranked = data.astype(working_dtype(data.dtype), copy=False)
    if largest:
        # Backwards twice: a stable sort that descends and keeps equal elements in order.
        order = size - 1 - np.flip(np.argsort(np.flip(ranked, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(ranked, axis, kind="stable")
    indices = np.ascontiguousarray(order.take(np.arange(k), axis), np.int64)
    return np.take_along_axis(data, indices, axis), indices


def checked_k(data: Array, k: int, axis: int) -> int:
    """The size of `axis`, after checking that it has `k` elements."""
    size = data.shape[axis]
    if not 0 <= k <= size:
        raise ValueError(f"TopK: k is {k}, but axis {axis} has {size} elements")
    return size
