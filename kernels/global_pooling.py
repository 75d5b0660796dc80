"""GlobalAveragePool 1/22, GlobalMaxPool 1/22, GlobalLpPool 1/2/22 and MaxRoiPool 1/22."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.precision import widening, widening_maker
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.windows import aligned_size, scratch_view

LONGEST_DOT = 4096
"""A sum over no more elements than this is taken as a product with ones, several times faster
than a sum over a short last axis; a longer sum is better taken pairwise."""


@maker("GlobalAveragePool", any_order=True)
@widening_maker
def global_average_pool(x: Operand, *, out: Array | None = None) -> Step:
    """GlobalAveragePool 1/22: the mean over the spatial axes, which become 1."""
    return global_average_step(x)


def global_average_step(x: Operand) -> Step:
    """The mean over the spatial axes, in the order of C whatever the order in memory."""
    size, count = math.prod(x.shape[2:]), math.prod(x.shape[:2])
    ones, divisor = np.ones(size, x.dtype), np.array(size, x.dtype)
    copied = aligned_size(x.shape, x.dtype.itemsize) if x.channels_last else 0
    shape = (*x.shape[:2], *(1,) * (len(x.shape) - 2))

    def averaging(x: Array, scratch: Array, out: Array) -> Callable[[], Array]:
        planes = scratch_view(scratch, 0, x.shape, x.dtype) if copied else x
        flat, total = planes.reshape(count, size), scratch_view(scratch, copied, (count,), x.dtype)
        means = out.reshape(-1)

        def compute() -> Array:
            if copied:
                np.copyto(planes, x)
            if size <= LONGEST_DOT:
                np.matmul(flat, ones, total)
            else:
                np.add.reduce(flat, axis=1, out=total)
            np.divide(total, divisor, means)
            return out

        return compute

    def run(x: Array, *, scratch: Array, out: Array | None = None) -> Array:
        return averaging(x, scratch, np.empty(shape, x.dtype) if out is None else out)()

    def bind(x: Array, *, scratch: Array, out: Array) -> Callable[[], Array]:
        if copied or x.flags.c_contiguous:
            return averaging(x, scratch, out)
        return lambda: run(x, scratch=scratch, out=out)

    return Step(run, copied + max(64, aligned_size((count,), x.dtype.itemsize)), bind=bind)


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
