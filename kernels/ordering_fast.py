"""TopK by one unstable partition of 64-bit keys that carry the index.

    element -> uint32 that orders as elements do (flipped when the largest are wanted)
    key = that number << 32 | index along the axis -> partition, sort k of them -> index

No two keys are equal, so the cheap sorts are as good as stable ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index

from foldline.kernels.ordering import Pair, checked_k, stable_top_k
from foldline.kernels.precision import widened
from foldline.kernels.registry import Array, kernel

_LOW = np.uint64(0xFFFFFFFF)
_SIGN = np.uint32(1 << 31)


@kernel("TopK", until=10, grade="fast")
def top_k_1(data: Array, *, k: int, axis: int = -1) -> Pair:
    """TopK 1: as the reference kernel."""
    return _top_k(data, k, axis, True)


@kernel("TopK", since=10, grade="fast")
def top_k(data: Array, k: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Pair:
    """TopK 10+: as the reference kernel; types of more than 32 bits go there."""
    return _top_k(data, int(k.item()), axis, bool(largest))


def _top_k(data: Array, k: int, axis: int, largest: bool) -> Pair:
    if data.dtype.itemsize > 4:
        return stable_top_k(data, k, axis, largest)
    axis = normalize_axis_index(axis, data.ndim)
    size = checked_k(data, k, axis)
    order = _order(np.moveaxis(data, axis, -1))
    keys = (~order if largest else order).astype(np.uint64) << np.uint64(32)
    keys |= np.arange(size, dtype=np.uint64)
    if k < size:
        keys = np.partition(keys, k, -1)[..., :k]
    keys.sort(-1)
    chosen = (keys & _LOW).astype(np.int64)
    indices = np.ascontiguousarray(np.moveaxis(chosen, -1, axis))
    return np.take_along_axis(data, indices, axis), indices


def _order(data: Array) -> npt.NDArray[np.uint32]:
    """Numbers that compare as the elements: -0 as +0, NaN above all."""
    if data.dtype.kind in "iu":
        return (data.astype(np.int64) - np.iinfo(data.dtype).min).astype(np.uint32)
    wide = widened(data)
    bits = np.ascontiguousarray(wide).view(np.uint32)
    # Magnitudes of negative numbers count backwards, and below all others.
    order = bits ^ np.where(bits & _SIGN, _LOW.astype(np.uint32), _SIGN)
    np.copyto(order, _SIGN, where=wide == 0)
    np.copyto(order, np.uint32(_LOW), where=np.isnan(wide))
    return order
