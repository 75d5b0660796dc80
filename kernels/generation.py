"""Operators that make a tensor from a few numbers: Range, EyeLike, OneHot."""

from __future__ import annotations

import math

import numpy as np

from foldline.kernels.precision import NARROW
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE


@kernel("Range")
def range_(start: Array, limit: Array, delta: Array, *, stash_type: int = 1) -> Array:
    """Range 11+: start + i * delta for i < max(ceil((limit - start) / delta), 0).

    Integers wrap around; half types (27) are computed in `stash_type`, float32 or double.
    Raises ValueError when `delta` is 0.
    """
    dtype = start.dtype
    if not delta.any():
        raise ValueError("Range: delta must not be 0")
    if dtype.kind in "iu":
        first, last, step = (int(bound.item()) for bound in (start, limit, delta))
        count = -((first - last) // step)
        wide = dtype
    else:
        wide = BY_CODE[stash_type].numpy if dtype in NARROW else dtype
        start, limit, delta = (bound.astype(wide) for bound in (start, limit, delta))
        count = math.ceil((limit - start).item() / delta.item())
    steps = np.arange(max(count, 0)).astype(wide)
    return (start.reshape(()) + steps * delta.reshape(())).astype(dtype, copy=False)


@kernel("EyeLike", exact=True)
def eye_like(data: Array, *, dtype: int | None = None, k: int = 0) -> Array:
    """EyeLike 9+: ones on diagonal `k`, shape of the matrix `data`, its dtype by default."""
    rows, columns = data.shape
    return np.eye(rows, columns, k, data.dtype if dtype is None else BY_CODE[dtype].numpy)


@kernel("OneHot", exact=True)
def one_hot(indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    """OneHot 9+: `values` is (off, on); a new axis of size `depth` is on at the index.

    Indices in [-depth, -1] count from the end, others out of range leave all off. Indices and
    depth of other types are cut to int64 first.
    """
    places = np.expand_dims(indices.astype(np.int64), axis)
    size = int(depth.item())
    shape = list(places.shape)
    shape[axis] = size
    result = np.full(shape, values[0], values.dtype)
    if result.size:
        inside = (places >= -size) & (places < size)
        np.put_along_axis(result, places % size, values[inside.astype(np.intp)], axis)
    return result
