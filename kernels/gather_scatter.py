"""Operators that read or write at places given by a tensor of indices.

Indices below zero count from the end of the axis; one out of range raises IndexError that names
it, the axis and its bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index

from foldline.kernels.arguments import copy_of, nonnegative
from foldline.kernels.registry import Array, kernel
from foldline.kernels.scatter_rows import combine, combine_rows

Index = tuple[npt.NDArray[Any], ...]

_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@kernel("Gather", exact=True)
def gather(data: Array, indices: Array, *, axis: int = 0, out: Array | None = None) -> Array:
    """Gather 1+: slices of `data` along `axis`; `indices.shape` takes the place of that axis."""
    axis = normalize_axis_index(axis, data.ndim)
    places = nonnegative(indices, data.shape[axis], axis)
    if out is None:
        shape = data.shape[:axis] + indices.shape + data.shape[axis + 1 :]
        out = np.empty(shape, data.dtype)
    if not places.ndim:
        # Of strided data, take would copy all first; an index that is an array would, too.
        out[...] = data[(slice(None),) * axis + (places.item(),)]
    elif out.size:
        # With the default mode, take would fill a buffer first and copy it to `out`.
        data.take(places, axis, out=out, mode="clip")
    return out


@kernel("GatherElements", exact=True)
def gather_elements(data: Array, indices: Array, *, axis: int = 0) -> Array:
    """GatherElements 11+: `data` at the place of every index, moved to the index on `axis`."""
    return data[_places_along(data, indices, axis)]


@kernel("GatherND", exact=True)
def gather_nd(data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    """GatherND 11+: the last axis of `indices` holds index tuples into `data`.

    The first `batch_dims` axes of both walk together (12+).
    """
    rank = indices.ndim - 1
    batch = [
        np.arange(indices.shape[d], dtype=np.intp).reshape(
            [-1 if e == d else 1 for e in range(rank)]
        )
        for d in range(batch_dims)
    ]
    return data[(*batch, *_tuples(data, indices, batch_dims), ...)]


@kernel("Scatter", inplace=(0,), exact=True)
def scatter(
    data: Array, indices: Array, updates: Array, *, axis: int = 0, out: Array | None = None
) -> Array:
    """Scatter 9–11: the older name of ScatterElements."""
    return scatter_elements(data, indices, updates, axis=axis, out=out)


@kernel("ScatterElements", inplace=(0,))
def scatter_elements(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    axis: int = 0,
    reduction: str = "none",
    out: Array | None = None,
) -> Array:
    """ScatterElements 11+: the inverse of GatherElements on a copy of `data`.

    `reduction` (16+: add, mul; 18+: max, min) combines in the order of `indices`, in the dtype
    of `data`; with none, the last of several updates of one place stays.
    """
    result = copy_of(data, out)
    if reduction == "none":
        result[_places_along(data, indices, axis)] = updates
    elif _are_rows(data, indices, axis):
        rows = nonnegative(indices.reshape(len(indices), -1)[:, 0], len(data), 0)
        combine_rows(
            result.reshape(len(data), -1),
            rows,
            updates.reshape(len(rows), -1),
            _REDUCTIONS[reduction],
        )
    else:
        places = _flat(_places_along(data, indices, axis), data.shape, indices.shape)
        combine(result.reshape(-1), places, updates.reshape(-1), _REDUCTIONS[reduction])
    return result


@kernel("ScatterND", inplace=(0,))
def scatter_nd(
    data: Array,
    indices: Array,
    updates: Array,
    *,
    reduction: str = "none",
    out: Array | None = None,
) -> Array:
    """ScatterND 11+: the last axis of `indices` holds index tuples into a copy of `data`.

    `updates` has shape `indices.shape[:-1] + data.shape[k:]`; `reduction` as ScatterElements.
    """
    result = copy_of(data, out)
    places, outer = _tuples(data, indices, 0), indices.shape[-1]
    if reduction == "none":
        result[places] = updates
    else:
        flat = _flat(places, data.shape[:outer], indices.shape[:-1])
        width = math.prod(data.shape[outer:])
        rows = (math.prod(data.shape[:outer]), width)
        combine_rows(
            result.reshape(rows), flat, updates.reshape(len(flat), width), _REDUCTIONS[reduction]
        )
    return result


@kernel("TensorScatter", inplace=(0,), exact=True)
def tensor_scatter(
    past_cache: Array,
    update: Array,
    write_indices: Array | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
    out: Array | None = None,
) -> Array:
    """TensorScatter 24: write `update` into a copy of the cache, sample b at `write_indices[b]`.

    `axis` is the sequence axis; in mode circular positions wrap around, in mode linear one
    beyond the cache raises IndexError.
    """
    samples, length = past_cache.shape[0], past_cache.shape[axis]
    start = np.zeros(samples, np.int64) if write_indices is None else write_indices
    places = start[:, None] + np.arange(update.shape[axis], dtype=np.int64)
    if mode == "circular":
        places = places % length
    elif (places < 0).any():
        raise IndexError(f"index {places.min()} is out of bounds for a cache of {length}")
    result = copy_of(past_cache, out)
    np.moveaxis(result, axis, 1)[np.arange(samples, dtype=np.intp)[:, None], places] = np.moveaxis(
        update, axis, 1
    )
    return result


def _places_along(data: Array, indices: Array, axis: int) -> Index:
    """An index of the shape of `indices`: its value on `axis`, its own position elsewhere."""
    axis = normalize_axis_index(axis, data.ndim)
    grid: list[npt.NDArray[Any]] = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    grid[axis] = nonnegative(indices, data.shape[axis], axis)
    return tuple(grid)


def _tuples(data: Array, indices: Array, first: int) -> Index:
    """One array of indices for each axis of `data` from `first` on."""
    return tuple(
        nonnegative(indices[..., k], data.shape[first + k], first + k)
        for k in range(indices.shape[-1])
    )


def _are_rows(data: Array, indices: Array, axis: int) -> bool:
    """Whether `indices` hold an index for each row, seen under the shape of the rows."""
    moved = (s for size, s in zip(indices.shape[1:], indices.strides[1:], strict=True) if size > 1)
    is_first = normalize_axis_index(axis, data.ndim) == 0
    return is_first and indices.shape[1:] == data.shape[1:] and indices.size > 0 and not any(moved)


def _flat(places: Index, shape: tuple[int, ...], count: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Places in an array of `shape`, in memory order; `count` is the shape of the indices."""
    flat = np.zeros(count, np.intp)
    for places_along, size in zip(places, shape, strict=True):
        np.multiply(flat, size, out=flat)
        np.add(flat, places_along, out=flat)
    return flat.reshape(-1)
