"""Resampling of one axis: where every output element reads, and with which weights.

    output position -> source position (`SOURCE_POSITION`)
        nearest -> one tap (`nearest_taps`)
        linear, cubic -> several weighted taps (`weighted_taps`)

A `Taps` is an index array (output size, taps) into the source axis and the weights of the same
shape, or no weights when one tap is taken as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.registry import Array

Positions = npt.NDArray[np.floating[Any]]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Line:
    """One axis to resample."""

    size: int
    """Elements before."""
    count: int
    """Elements after."""
    scale: float
    width: float
    """`scale * size`: what `count` was before it was cut to an integer."""
    roi: tuple[float, float] = (0.0, 1.0)
    """Start and end of the region read in mode tf_crop_and_resize, as parts of the axis."""


@dataclass(frozen=True)
class Taps:
    """What every element of a resampled axis is made of."""

    index: Indices
    weights: npt.NDArray[np.float64] | None
    outside: npt.NDArray[np.bool_] | None = None
    """Elements that are the extrapolation value instead."""


def _half_pixel(at: Positions, line: Line) -> Positions:
    return (at + 0.5) / _like(at, line.scale) - 0.5


def _half_pixel_symmetric(at: Positions, line: Line) -> Positions:
    return _half_pixel(at, line) + _like(at, line.size / 2 * (1 - line.count / line.width))


def _pytorch_half_pixel(at: Positions, line: Line) -> Positions:
    return _half_pixel(at, line) if line.count > 1 else at


def _align_corners(at: Positions, line: Line) -> Positions:
    if line.count <= 1:
        return at
    return at * _like(at, line.size - 1) / _like(at, line.width - 1)


def _asymmetric(at: Positions, line: Line) -> Positions:
    return at / _like(at, line.scale)


def _tf_half_pixel_for_nn(at: Positions, line: Line) -> Positions:
    return (at + 0.5) / _like(at, line.scale)


def _tf_crop_and_resize(at: Positions, line: Line) -> Positions:
    start, end = line.roi
    last = line.size - 1
    if line.count <= 1:
        return at + _like(at, (start + end) * last / 2)
    return _like(at, start * last) + at * _like(at, (end - start) * last) / _like(
        at, line.width - 1
    )


def _like(at: Positions, number: float) -> Any:
    return at.dtype.type(number)


SOURCE_POSITION: dict[str, Callable[[Positions, Line], Positions]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_half_pixel_for_nn": _tf_half_pixel_for_nn,
    "tf_crop_and_resize": _tf_crop_and_resize,
}
"""coordinate_transformation_mode -> position in the source, from output positions 0, 1, …"""

_NEAREST: dict[str, Callable[[Positions], Positions]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def nearest_taps(line: Line, transformation: str, nearest_mode: str) -> Taps:
    """The source element `nearest_mode` chooses.

    In float32, as common runtimes do: a scale such as 2.6 is a rounded number, and rounding the
    quotient again brings positions that are integers back to them.
    """
    at = SOURCE_POSITION[transformation](np.arange(line.count, dtype=np.float32), line)
    chosen = _NEAREST[nearest_mode](at).astype(np.intp)
    index = np.clip(chosen, 0, max(line.size - 1, 0))[:, None]
    return Taps(index, None, _outside(at, line, transformation))


def weighted_taps(
    line: Line, transformation: str, mode: str, cubic_a: float, antialias: bool, inner_only: bool
) -> Taps:
    """The elements around the source position, weighted by the linear or cubic filter.

    With `antialias` the filter is stretched when the axis shrinks. `inner_only` drops taps
    outside the axis; otherwise they read the element at its border.
    """
    at = SOURCE_POSITION[transformation](np.arange(line.count, dtype=np.float64), line)
    shrink = min(line.scale, 1.0) if antialias else 1.0
    reach = int(np.ceil(_RADIUS[mode] / shrink))
    base = np.floor(at)
    offsets = np.arange(1 - reach, reach + 1)
    distance = np.abs(offsets - (at - base)[:, None]) * shrink
    weights = _linear(distance) if mode == "linear" else _cubic(distance, cubic_a)
    index = base.astype(np.intp)[:, None] + offsets
    if inner_only:
        weights[(index < 0) | (index >= line.size)] = 0
    if inner_only or antialias:
        total = tree_sum(weights, (1,), True)
        weights = weights / np.where(total == 0, 1, total)
    index = np.clip(index, 0, max(line.size - 1, 0))
    return Taps(index, weights, _outside(at, line, transformation))


_RADIUS = {"linear": 1, "cubic": 2}


def _linear(distance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.maximum(1 - distance, 0)


def _cubic(d: npt.NDArray[np.float64], a: float) -> npt.NDArray[np.float64]:
    """Keys' kernel: one cubic on [0, 1], another on (1, 2), zero beyond."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _outside(at: Positions, line: Line, transformation: str) -> npt.NDArray[np.bool_] | None:
    if transformation != "tf_crop_and_resize":
        return None
    outside = (at < 0) | (at > line.size - 1)
    return outside if outside.any() else None


def resample(
    x: Array, axis: int, taps: Taps, out: Array | None = None, work: Array | None = None
) -> Array:
    """`x` with `axis` replaced by what `taps` reads; weighted in the dtype of `x`.

    `work` is memory for another array like the result.
    """
    result = _taken(x, axis, taps.index[:, 0], out)
    if taps.weights is None or not result.size:
        return result
    weights = taps.weights.astype(x.dtype)
    _weigh(result, weights[:, 0], axis)
    for tap in range(1, weights.shape[1]):
        part = _taken(x, axis, taps.index[:, tap], work)
        _weigh(part, weights[:, tap], axis)
        result += part
    return result


def _taken(x: Array, axis: int, index: Indices, out: Array | None) -> Array:
    # All of the indices are inside; NumPy would write to a copy of `out` to see whether they are.
    return x.take(index, axis, out=out, mode="raise" if out is None else "clip")


def _weigh(part: Array, weights: Array, axis: int) -> None:
    # A tap without weight is not read: 0 * inf would be NaN.
    idle = np.flatnonzero(weights == 0)
    if idle.size:
        part[(*(slice(None),) * axis, idle)] = 0
    part *= weights.reshape(-1, *(1,) * (part.ndim - axis - 1))
