"""DeformConv 19/22: a convolution whose taps are moved by an input and read between elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.windows import Window, sliding_window


@kernel("DeformConv")
@widening
def deform_conv(
    x: Array,
    w: Array,
    offset: Array,
    b: Array | None = None,
    mask: Array | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """DeformConv 19/22, any rank.

    `offset` is `(batch, offset_group * taps * rank, *output)` and `mask`
    `(batch, offset_group * taps, *output)`. Reading is linear along each axis; outside X is zero.
    """
    window, columns = deformed_columns(
        x, w, offset, mask, dilations, kernel_shape, offset_group, pads, strides
    )
    batch, depth, positions = len(x), columns.shape[1] // group, columns.shape[2]
    weights = w.reshape(group, w.shape[0] // group, depth)
    out = np.matmul(weights, columns.reshape(batch, group, depth, positions))
    if b is not None:
        out += b.reshape(group, -1, 1)
    return out.reshape(batch, w.shape[0], *window.output)


def deformed_columns(
    x: Array,
    w: Array,
    offset: Array,
    mask: Array | None,
    dilations: Sequence[int] | None,
    kernel_shape: Sequence[int] | None,
    offset_group: int,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> tuple[Window, Array]:
    """The window, and what its taps read: `(batch, channels * taps, positions)`."""
    shape = tuple(kernel_shape or w.shape[2:])
    window = sliding_window(x.shape[2:], shape, strides=strides, dilations=dilations, pads=pads)
    batch, taps, positions = x.shape[0], math.prod(shape), math.prod(window.output)
    shifts = offset.reshape(batch, offset_group, taps, window.rank, positions)
    factors = None if mask is None else mask.reshape(batch, offset_group, taps, 1, positions)
    planes = x.reshape(batch, offset_group, x.shape[1] // offset_group, math.prod(window.spatial))
    columns = np.empty((*planes.shape[:3], taps, positions), x.dtype)
    for index, tap in enumerate(window.taps()):
        places = _places(window, tap, x.dtype) + shifts[:, :, index]
        columns[:, :, :, index] = _read(planes, places, window.spatial)
        if factors is not None:
            columns[:, :, :, index] *= factors[:, :, index]
    return window, columns.reshape(batch, x.shape[1] * taps, positions)


def _places(window: Window, tap: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Where `tap` lies without offsets: `(rank, positions)`."""
    along = [
        np.arange(window.output[a]) * window.strides[a]
        + (tap[a] * window.dilations[a] - window.before[a])
        for a in range(window.rank)
    ]
    return np.stack(np.meshgrid(*along, indexing="ij")).reshape(window.rank, -1).astype(dtype)


def _read(planes: Array, places: Array, spatial: tuple[int, ...]) -> Array:
    """Values of planes `(..., channels, size)` at places `(..., rank, positions)`."""
    lower = np.floor(places)
    share = places - lower
    total = np.zeros((*planes.shape[:-1], places.shape[-1]), planes.dtype)
    for corner in product((0, 1), repeat=len(spatial)):
        weight = np.ones(share[..., 0, :].shape, planes.dtype)
        flat = np.zeros(weight.shape, np.int64)
        for axis, (step, extent) in enumerate(zip(corner, spatial, strict=True)):
            at = lower[..., axis, :] + step
            inside = (at >= 0) & (at < extent)
            part = share[..., axis, :]
            weight = weight * np.where(inside, part if step else 1 - part, 0)
            flat = flat * extent + np.where(inside, at, 0).astype(np.int64)
        values = np.take_along_axis(planes, flat[..., None, :], axis=-1)
        weight = weight[..., None, :]
        # An infinity that has no share must not make a NaN.
        total += np.multiply(values, weight, out=np.zeros_like(values), where=weight != 0)
    return total
