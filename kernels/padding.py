"""Operators that add or remove elements at the borders: Pad, CenterCropPad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import normalize_axis_index

from foldline.kernels.arguments import ints, zero_of
from foldline.kernels.registry import Array, kernel

Pads = list[tuple[int, int]]
"""(before, after) of every axis; below zero removes elements."""


@kernel("Pad", until=2, exact=True)
def pad_1(
    data: Array,
    *,
    paddings: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
    out: Array | None = None,
) -> Array:
    """Pad 1: as Pad 2 with `pads` called `paddings`."""
    return _pad(data, _pads(data, paddings, None), mode, value, out)


@kernel("Pad", since=2, until=11, exact=True)
def pad_by_attribute(
    data: Array,
    *,
    pads: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
    out: Array | None = None,
) -> Array:
    """Pad 2–10: `pads` is (begin of every axis, end of every axis), `value` the constant."""
    return _pad(data, _pads(data, pads, None), mode, value, out)


@kernel("Pad", since=11, exact=True)
def pad(
    data: Array,
    pads: Array,
    constant_value: Array | None = None,
    axes: Array | None = None,
    *,
    mode: str = "constant",
    out: Array | None = None,
) -> Array:
    """Pad 11+: modes constant, reflect, edge, wrap; any dtype; negative pads crop first.

    Raises IndexError when a mode other than constant pads an axis without elements.
    """
    value = zero_of(data.dtype) if constant_value is None else constant_value.reshape(())[()]
    given = None if axes is None else ints(axes)
    return _pad(data, _pads(data, ints(pads), given), mode, value, out)


@kernel("CenterCropPad", exact=True)
def center_crop_pad(
    data: Array, shape: Array, *, axes: Sequence[int] | None = None, out: Array | None = None
) -> Array:
    """CenterCropPad 18: crop or zero-pad `axes` (default all) to `shape` around the centre.

    An odd difference removes one more at the end, and adds one more at the end.
    """
    pads: Pads = [(0, 0)] * data.ndim
    for axis, target in zip(range(data.ndim) if axes is None else axes, ints(shape), strict=True):
        axis = normalize_axis_index(axis, data.ndim)
        grow = target - data.shape[axis]
        before = grow // 2 if grow >= 0 else -(-grow // 2)
        pads[axis] = (before, grow - before)
    return _pad_constant(_cropped(data, pads), _added(pads), zero_of(data.dtype), out)


def _pads(data: Array, pads: Sequence[int], axes: Sequence[int] | None) -> Pads:
    """The flat `pads` of ONNX, begins before ends, for every axis of `data`."""
    axes = range(data.ndim) if axes is None else axes
    if len(pads) != 2 * len(axes):
        raise ValueError(f"{len(axes)} axes need {2 * len(axes)} pads, not {len(pads)}")
    result: Pads = [(0, 0)] * data.ndim
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        result[normalize_axis_index(axis, data.ndim)] = (before, after)
    return result


def _pad(data: Array, pads: Pads, mode: str, value: Any, out: Array | None) -> Array:
    data, added = _cropped(data, pads), _added(pads)
    if mode == "constant":
        return _pad_constant(data, added, value, out)
    result = data
    padded = [axis for axis, pair in enumerate(added) if pair != (0, 0)]
    for axis in padded:
        places = _places(mode, *added[axis], data.shape[axis])
        if axis == padded[-1] and out is not None and data.size:
            # With the default mode, take would fill a buffer first and copy it to `out`.
            return result.take(places, axis, out=out, mode="clip")
        result = result.take(places, axis)
    if out is None:
        return result.copy() if result is data else result
    np.copyto(out, result)
    return out


@lru_cache(maxsize=256)
def _places(mode: str, before: int, after: int, size: int) -> npt.NDArray[np.intp]:
    """Which element of an axis stands at each place of the padded one."""
    return _SOURCE[mode](np.arange(-before, size + after, dtype=np.intp), size)


def _cropped(data: Array, pads: Pads) -> Array:
    """`data` without what negative pads remove; removing more than there is leaves nothing."""
    window = tuple(
        slice(max(-before, 0), max(size + min(after, 0), 0))
        for size, (before, after) in zip(data.shape, pads, strict=True)
    )
    return data[(*window, ...)]


def _added(pads: Pads) -> Pads:
    return [(max(before, 0), max(after, 0)) for before, after in pads]


def _pad_constant(data: Array, pads: Pads, value: Any, out: Array | None) -> Array:
    shape = tuple(b + n + a for n, (b, a) in zip(data.shape, pads, strict=True))
    if out is None:
        out = np.empty(shape, data.dtype)
    for axis, (before, after) in enumerate(pads):
        across = (slice(None),) * axis
        out[(*across, slice(before))] = value
        out[(*across, slice(shape[axis] - after, None))] = value
    inner = tuple(slice(b, b + n) for n, (b, _) in zip(data.shape, pads, strict=True))
    out[(*inner, ...)] = data
    return out


def _reflected(at: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    """Mirror at the first and last element, as often as needed; they are not repeated."""
    period = max(2 * (size - 1), 1)
    at = at % period
    return np.minimum(at, period - at) if size > 1 else at


_Source = Callable[[npt.NDArray[np.intp], int], npt.NDArray[np.intp]]
_SOURCE: dict[str, _Source] = {
    "edge": lambda at, size: np.clip(at, 0, max(size - 1, 0)),
    "reflect": _reflected,
    "wrap": lambda at, size: at % max(size, 1),
}
"""Mode -> which element of an axis of `size` stands at position `at`, which may lie outside."""
