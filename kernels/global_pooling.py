"""GlobalAveragePool 1/22, GlobalMaxPool 1/22, GlobalLpPool 1/2/22 and MaxRoiPool 1/22."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from foldline.kernels.channels_last import RANK, pixels
from foldline.kernels.precision import widening, widening_maker
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.tiled_products import BLOCK
from foldline.kernels.windows import aligned_size, scratch_view

LONGEST_DOT = 4096
"""A sum over no more elements than this is taken as a product with ones, several times faster
than a sum over a short last axis; a longer sum is better taken pairwise."""


Summing: TypeAlias = Callable[[Array, Array, Array], list[Callable[[], object]]]
"""(x, scratch, sums) -> what sums x up."""


@maker("GlobalAveragePool", any_order=True)
@widening_maker
def global_average_pool(x: Operand, *, out: Array | None = None) -> Step:
    """GlobalAveragePool 1/22: the mean over the spatial axes, which become 1."""
    return global_average_step(x)


def global_average_step(x: Operand) -> Step:
    """The mean over the spatial axes; images are summed pixel by pixel in either memory order.

    Most have their channels innermost. To copy them into the order of C took ten times as long as
    the sums.
    """
    size, count = math.prod(x.shape[2:]), math.prod(x.shape[:2])
    shape = (*x.shape[:2], *(1,) * (len(x.shape) - 2))
    divisor, is_image = np.array(size, x.dtype), len(x.shape) == RANK
    summing = _pixel_sums(x) if is_image else _plane_sums(size, count, x.dtype)

    def averaging(x: Array, scratch: Array, out: Array) -> Callable[[], Array]:
        means = out.reshape(-1)
        steps = summing(x, scratch, means)

        def compute() -> Array:
            for step in steps:
                step()
            np.divide(means, divisor, means)
            return out

        return compute

    def run(x: Array, *, scratch: Array, out: Array | None = None) -> Array:
        return averaging(x, scratch, np.empty(shape, x.dtype) if out is None else out)()

    def bind(x: Array, *, scratch: Array, out: Array) -> Callable[[], Array]:
        if is_image or x.flags.c_contiguous:
            return averaging(x, scratch, out)
        return lambda: run(x, scratch=scratch, out=out)

    lines = (*x.shape[:1], *x.shape[2:3], *x.shape[1:2])
    held = aligned_size(x.shape, x.dtype.itemsize)
    return Step(run, max(64, held + aligned_size(lines, x.dtype.itemsize)), bind=bind)


def _plane_sums(size: int, count: int, dtype: np.dtype[Any]) -> Summing:
    ones = np.ones(size, dtype)

    def steps(x: Array, scratch: Array, sums: Array) -> list[Callable[[], object]]:
        flat = x.reshape(count, size)
        if size <= LONGEST_DOT:
            return [partial(np.matmul, flat, ones, sums)]
        return [partial(np.add.reduce, flat, axis=1, out=sums)]

    return steps


def _pixel_sums(x: Operand) -> Summing:
    """A sum over many pixels is taken row by row, so that no sum is long."""
    batch, channels, height, width = x.shape
    is_long = height * width > LONGEST_DOT
    lines = (batch, height, width) if is_long else (batch, 1, height * width)
    along, down = np.ones((1, lines[2]), x.dtype), np.ones((1, lines[1]), x.dtype)
    held_bytes = aligned_size(x.shape, x.dtype.itemsize)

    def steps(x: Array, scratch: Array, sums: Array) -> list[Callable[[], object]]:
        seen = held = pixels(x)
        made: list[Callable[[], object]] = []
        if not seen.flags.c_contiguous:
            held = scratch_view(scratch, 0, seen.shape, x.dtype)
            made.append(partial(np.copyto, held, seen))
        result = sums.reshape(batch, 1, channels)
        totals = result[:, None]
        if is_long:
            totals = scratch_view(scratch, held_bytes, (batch, height, 1, channels), x.dtype)
        made += _column_sums(along, held.reshape(*lines, channels), totals)
        if is_long:
            made += _column_sums(down, totals[:, :, 0], result)
        return made

    return steps


def _column_sums(ones: Array, pixels: Array, out: Array) -> list[Callable[[], object]]:
    """The calls that sum `(..., pixels, channels)`, equal channels to equal bits.

    BLAS sums columns beyond the last full block in another order; they are done once more, as a
    block that ends with them.
    """
    channels = pixels.shape[-1]
    if not channels % BLOCK or not BLOCK % channels:
        return [partial(np.matmul, ones, pixels, out)]
    if channels < BLOCK:
        return [partial(np.add.reduce, pixels, axis=-2, keepdims=True, out=out)]
    blocks = slice(channels // BLOCK * BLOCK), slice(channels - BLOCK, channels)
    return [partial(np.matmul, ones, pixels[..., part], out[..., part]) for part in blocks]


@kernel("GlobalAveragePool")
@widening
def global_average_pool_reference(x: Array) -> Array:
    """GlobalAveragePool 1/22: the mean over the spatial axes, which become 1."""
    return np.asarray(x.mean(axis=tuple(range(2, x.ndim)), keepdims=True))


@kernel("GlobalMaxPool")
def global_max_pool(x: Array, *, out: Array | None = None) -> Array:
    """GlobalMaxPool 1/22: the maximum over the spatial axes, which become 1; NaN wins."""
    flat, shape = _planes(x)
    if out is None:
        return np.maximum.reduce(flat, axis=1).reshape(shape)
    np.maximum.reduce(flat, axis=1, out=out.reshape(-1))
    return out


@kernel("GlobalLpPool")
@widening
def global_lp_pool(x: Array, *, p: float = 2) -> Array:
    """GlobalLpPool 1/2/22: `(sum |x|^p)^(1/p)` over the spatial axes, which become 1."""
    flat, shape = _planes(x)
    kind = x.dtype.type
    total = np.add.reduce(np.abs(flat) ** kind(p), axis=1)
    return (total ** kind(1 / p)).reshape(shape)


def _planes(x: Array) -> tuple[Array, tuple[int, ...]]:
    flat = x.reshape(x.shape[0] * x.shape[1], math.prod(x.shape[2:]))
    return flat, (*x.shape[:2], *(1,) * (x.ndim - 2))


@kernel("MaxRoiPool")
def max_roi_pool(
    x: Array, rois: Array, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0
) -> Array:
    """MaxRoiPool 1/22: X `(batch, channels, H, W)`, rois `(count, 5)` of image, x1, y1, x2, y2.

    The corners are scaled, rounded half away from zero and both belong to the region. A bin
    without an element gives 0.
    """
    out = np.zeros((len(rois), x.shape[1], *pooled_shape), x.dtype)
    for index, roi in enumerate(rois.astype(np.float64)):
        scaled = roi[1:] * spatial_scale
        corners = np.trunc(scaled + np.copysign(0.5, scaled))
        spans = [
            _bins(corners[axis], corners[axis + 2], bins, extent)
            for axis, bins, extent in (
                (1, pooled_shape[0], x.shape[2]),
                (0, pooled_shape[1], x.shape[3]),
            )
        ]
        image = x[int(roi[0])]
        for i, (top, bottom) in enumerate(spans[0]):
            for j, (left, right) in enumerate(spans[1]):
                if top < bottom and left < right:
                    out[index, :, i, j] = image[:, top:bottom, left:right].max(axis=(1, 2))
    return out


def _bins(first: float, last: float, count: int, extent: int) -> list[tuple[int, int]]:
    size = max(last - first + 1, 1.0) / count
    ends = [(math.floor(i * size + first), math.ceil((i + 1) * size + first)) for i in range(count)]
    return [(min(max(a, 0), extent), min(max(b, 0), extent)) for a, b in ends]
