"""AffineGrid and GridSample: sampling positions, and the input read at any positions.

    normalised position -> position in elements -> taps of each axis -> weighted sum over corners

Positions beyond the input are dealt with element by element: every tap outside is zero, or is
moved to the border, or reflected by it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.arguments import ints, zero_of
from foldline.kernels.precision import working_dtype
from foldline.kernels.registry import Array, kernel

CUBIC_A = -0.75
"""The free coefficient of cubic convolution, as ONNX fixes it."""

_FARTHEST = 2.0**30
"""Positions farther out are taken for this one: it is beyond any axis, and an integer."""

_MODES = {
    "nearest": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}


@dataclass(frozen=True)
class _Taps:
    """What is read on one axis for each point: `(points, taps)`."""

    index: npt.NDArray[np.int64]
    inside: npt.NDArray[np.bool_]
    weights: Array | None


@kernel("AffineGrid")
def affine_grid(theta: Array, size: Array, *, align_corners: int = 0) -> Array:
    """AffineGrid 20: the positions of an image of `size` under the affine maps `theta`.

    Theta `(N, r, r + 1)` with r = 2 or 3, size `(N, C, spatial sizes)`; the grid is
    `(N, spatial sizes, r)`, innermost coordinate first. An axis of one element is at 0.
    """
    spatial = ints(size)[2:]
    dtype = working_dtype(theta.dtype)
    axes = [_even_positions(count, align_corners).astype(dtype) for count in spatial]
    coordinates = np.meshgrid(*axes, indexing="ij")[::-1]
    homogeneous = np.stack([*coordinates, np.ones(spatial, dtype)], axis=-1)
    points = homogeneous.reshape(-1, len(spatial) + 1)
    grid = np.matmul(points, theta.astype(dtype, copy=False).transpose(0, 2, 1))
    return grid.reshape(len(theta), *spatial, len(spatial)).astype(theta.dtype, copy=False)


def _even_positions(count: int, align_corners: int) -> npt.NDArray[np.float64]:
    if not align_corners:
        return (2 * np.arange(count) + 1) / count - 1
    return np.linspace(-1, 1, count) if count > 1 else np.zeros(count)


@kernel("GridSample")
def grid_sample(
    x: Array,
    grid: Array,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Array:
    """GridSample 16/20/22: X `(N, C, r sizes)` read at the positions of grid `(N, r sizes, r)`.

    A position lists the innermost coordinate first; -1 and 1 are the outer edges of the axis, or
    with `align_corners` the centres of its first and last element. Mode nearest copies elements
    of any dtype, rounding ties to even. Linear and cubic compute floats of up to 32 bits and
    integers of up to 16 in float32, other reals in float64; integers are cut and saturate.

    Raises ValueError for an unknown mode, for strings unless mode is nearest, and when the last
    axis of the grid does not have one coordinate for each spatial axis.
    """
    spatial = x.shape[2:]
    if grid.shape[-1] != len(spatial):
        raise ValueError(f"GridSample: grid {grid.shape} does not fit an input {x.shape}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"GridSample: padding_mode is {padding_mode!r}")
    if mode not in _MODES or (x.dtype == np.object_ and mode != "nearest"):
        raise ValueError(f"GridSample: mode is {mode!r} on {x.dtype}")
    result = np.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for sample, positions, into in zip(x, grid, result, strict=True):
        points = positions.reshape(-1, len(spatial)).astype(np.result_type(grid, np.float32))
        taps = [
            _taps(points[:, -1 - axis], length, bool(align_corners), _MODES[mode], padding_mode)
            for axis, length in enumerate(spatial)
        ]
        channels = sample.reshape(len(sample), math.prod(spatial))
        into[...] = _read(channels, spatial, taps).reshape(into.shape)
    return result


def _taps(
    normalised: npt.NDArray[np.floating[Any]],
    length: int,
    align_corners: bool,
    mode: str,
    padding_mode: str,
) -> _Taps:
    if align_corners:
        position = (normalised + 1) / 2 * (length - 1)
    else:
        position = ((normalised + 1) * length - 1) / 2
    position = np.clip(position, -_FARTHEST, _FARTHEST)
    base = np.rint(position) if mode == "nearest" else np.floor(position)
    offsets = {"nearest": [0], "linear": [0, 1], "cubic": [-1, 0, 1, 2]}[mode]
    weights = None
    if mode == "linear":
        part = position - base
        weights = np.stack([1 - part, part], axis=-1)
    elif mode == "cubic":
        weights = _cubic_weights(position - base)
    first = np.nan_to_num(base, nan=-_FARTHEST).astype(np.int64)
    index, inside = _padded(first[:, None] + offsets, length, align_corners, padding_mode)
    return _Taps(index, inside, weights)


def _padded(
    index: npt.NDArray[np.int64], length: int, align_corners: bool, padding_mode: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Indices that exist, and which of the places are part of the padded input at all."""
    inside = (index >= 0) & (index < length)
    if padding_mode == "zeros" or not length:
        return np.where(inside, index, 0), inside
    if padding_mode == "border":
        return np.clip(index, 0, length - 1), np.ones_like(inside)
    # Mirrors lie at the centres of the border elements, or at their outer edges.
    period = max(2 * length - 2, 1) if align_corners else 2 * length
    folded = index % period
    mirrored = period - folded - (0 if align_corners else 1)
    return np.where(folded < length, folded, mirrored), np.ones_like(inside)


def _read(channels: Array, spatial: tuple[int, ...], taps: list[_Taps]) -> Array:
    """`(C, points)`: the sum over all combinations of taps, in the dtype of `channels`."""
    strides = [math.prod(spatial[axis + 1 :]) for axis in range(len(spatial))]
    total: Array | None = None
    for corner in itertools.product(*(range(tap.index.shape[1]) for tap in taps)):
        chosen = list(zip(corner, taps, strict=True))
        place = sum(
            (tap.index[:, k] * stride for (k, tap), stride in zip(chosen, strides, strict=True)),
            start=np.zeros(len(taps[0].index), np.int64),
        )
        outside = ~np.logical_and.reduce([tap.inside[:, k] for k, tap in chosen])
        if channels.shape[1]:
            part = channels.take(place, axis=1)
        else:
            part = np.empty((len(channels), len(place)), channels.dtype)
        part[:, outside] = zero_of(channels.dtype)
        weights = [tap.weights[:, k] for k, tap in chosen if tap.weights is not None]
        if not weights:
            return part
        part = part.astype(np.result_type(part, np.float32), copy=False) * math.prod(weights)
        total = part if total is None else total + part
    assert total is not None
    if channels.dtype.kind in "iu":
        limits = np.iinfo(channels.dtype)
        total = np.clip(total, limits.min, limits.max)
    return total.astype(channels.dtype)


def _cubic_weights(part: npt.NDArray[np.floating[Any]]) -> Array:
    """Weights of cubic convolution at distances 1 + part, part, 1 - part and 2 - part."""
    a = CUBIC_A
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (part, 1 - part)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (part + 1, 2 - part)]
    return np.stack([far[0], *near, far[1]], axis=-1)
