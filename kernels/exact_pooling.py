"""Pooling in exact mode: sums over the positions of the kernel, in C order, as one binary tree.

A position in the padding adds +0 to a sum; the global operators are the same tree over the whole
plane. Maxima are found among integers in the order of the floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.arguments import zero_of
from foldline.kernels.exact_bits import canonical, from_ordered, greatest, ordered
from foldline.kernels.exact_sums import tree_mean, tree_sum
from foldline.kernels.max_pool_indices import max_pool_with_indices
from foldline.kernels.pooling import pool_window, window_counts
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.windows import Window, even_spans

TAP_ELEMENTS = 1 << 20
"""Elements gathered at a time."""


@kernel("MaxPool", grade="exact")
@widening
def max_pool(
    x: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    output_count: int = 1,
) -> Array | tuple[Array, Array]:
    """MaxPool 1/8/10/11/12/22; NaN wins, +0 is above -0 unless indices are wanted."""
    window = pool_window(x.shape, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if output_count > 1:
        values, indices = max_pool_with_indices(x, window, storage_order)
        return canonical(values), indices
    if x.dtype.kind in "iu":
        return _maxima(x, window, int(np.iinfo(x.dtype).min))
    low = ordered(np.array(-math.inf, x.dtype)).item()
    return from_ordered(_maxima(ordered(x), window, low), x.dtype)


def _maxima(x: Array, window: Window, low: int) -> Array:
    """The greatest integer of each window."""
    out = np.full((*x.shape[:2], *window.output), low, x.dtype)
    for tap in window.taps():
        into, seen = window.hits_of(tap)
        np.maximum(out[into], x[seen], out=out[into])
    return out


@kernel("AveragePool", grade="exact")
@widening
def average_pool(
    x: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """AveragePool 1/7/10/11/19/22: sum divided by the number of elements, pads only if asked."""
    window = pool_window(x.shape, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    counts = window_counts(window, count_include_pad, x.dtype)
    return canonical(np.asarray(window_sums(x, window) / counts))


def window_sums(x: Array, window: Window) -> Array:
    """The sum of each window, `(batch, channels, *output)`."""
    planes = x.shape[0] * x.shape[1]
    inputs = x.reshape(1, planes, *window.spatial)
    out = np.empty((planes, *window.output), x.dtype)
    size = math.prod(window.kernel) * math.prod(window.output)
    for start, stop in even_spans(planes, -(-planes * size // TAP_ELEMENTS)):
        gathered = np.full(
            (math.prod(window.kernel), 1, stop - start, *window.output), zero_of(x.dtype), x.dtype
        )
        for index, tap in enumerate(window.taps()):
            into, seen = window.hits_of(tap)
            gathered[index][into] = inputs[:, start:stop][seen]
        out[start:stop] = tree_sum(gathered, (0, 1))
    return out.reshape(*x.shape[:2], *window.output)


@kernel("GlobalAveragePool", grade="exact")
@widening
def global_average_pool(x: Array) -> Array:
    """GlobalAveragePool 1/22: the mean over the spatial axes, which become 1."""
    return tree_mean(x, tuple(range(2, x.ndim)), True)


@kernel("GlobalMaxPool", grade="exact")
@widening
def global_max_pool(x: Array) -> Array:
    """GlobalMaxPool 1/22: the maximum over the spatial axes, which become 1; NaN wins."""
    return greatest(x, tuple(range(2, x.ndim)), True)
