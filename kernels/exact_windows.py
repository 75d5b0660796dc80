"""LRN, LpPool, GlobalLpPool, Resize, sampling and DeformConv in exact mode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldline.kernels.deform_conv import deformed_columns
from foldline.kernels.detection import roi_align, roi_align_10
from foldline.kernels.exact_bits import canonicalised
from foldline.kernels.exact_functions import POWER
from foldline.kernels.exact_pooling import window_sums
from foldline.kernels.exact_products import product
from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.global_pooling import max_roi_pool
from foldline.kernels.grid_sample import grid_sample
from foldline.kernels.pooling import pool_window
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.resize import resize, resize_10, upsample_1, upsample_by_attribute
from foldline.kernels.ufuncs import constant

kernel("GridSample", grade="exact")(canonicalised(grid_sample))
kernel("MaxRoiPool", grade="exact")(canonicalised(max_roi_pool))
kernel("RoiAlign", until=16, grade="exact")(canonicalised(roi_align_10))
kernel("RoiAlign", since=16, grade="exact")(canonicalised(roi_align))
kernel("Upsample", until=7, grade="exact")(canonicalised(upsample_1))
kernel("Upsample", since=7, until=9, grade="exact")(canonicalised(upsample_by_attribute))
kernel("Upsample", since=9, grade="exact")(canonicalised(resize_10))
kernel("Resize", until=11, grade="exact")(canonicalised(resize_10))
kernel("Resize", since=11, grade="exact")(canonicalised(resize))


@kernel("LRN", grade="exact")
@canonicalised
@widening
def lrn(
    x: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """LRN 1/13: `x / (bias + alpha / size * (squares of `size` channels around))^beta`.

    The squares are added from the lowest channel up, to +0. The power 3/4 is taken by roots.
    """
    squares = x * x
    total = np.zeros_like(x)
    for shift in range(-((size - 1) // 2), size // 2 + 1):
        seen = slice(max(0, shift), x.shape[1] + min(0, shift))
        into = slice(max(0, -shift), x.shape[1] - max(0, shift))
        if seen.start < seen.stop:
            total[:, into] += squares[:, seen]
    total = total * constant(alpha / size, x.dtype) + constant(bias, x.dtype)
    if beta == 0.75:
        power = np.sqrt(total * np.sqrt(total))
    else:
        power = POWER(np.asarray(total), constant(beta, x.dtype))
    return np.asarray(x / power)


@kernel("LpPool", grade="exact")
@canonicalised
@widening
def lp_pool(
    x: Array,
    *,
    kernel_shape: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    p: float = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """LpPool 1/2/11/18/22: `(sum |x|^p)^(1/p)`; version 1 may leave the kernel shape out."""
    shape = kernel_shape or x.shape[2:]
    window = pool_window(x.shape, shape, strides, dilations, pads, auto_pad, ceil_mode)
    return _root(window_sums(_power(x, p), window), p)


@kernel("GlobalLpPool", grade="exact")
@canonicalised
@widening
def global_lp_pool(x: Array, *, p: float = 2) -> Array:
    """GlobalLpPool 1/2/22: `(sum |x|^p)^(1/p)` over the spatial axes, which become 1."""
    return _root(tree_sum(_power(x, p), tuple(range(2, x.ndim)), True), p)


def _power(x: Array, p: float) -> Array:
    if p == 2:
        return np.asarray(x * x)
    size = np.asarray(np.abs(x))
    return size if p == 1 else POWER(size, constant(p, x.dtype))


def _root(total: Array, p: float) -> Array:
    if p == 2:
        return np.asarray(np.sqrt(total))
    return total if p == 1 else POWER(total, constant(1 / p, total.dtype))


@kernel("DeformConv", grade="exact")
@canonicalised
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
    """DeformConv 19/22: the product over (channels of a group, kernel positions), as Conv."""
    window, columns = deformed_columns(
        x, w, offset, mask, dilations, kernel_shape, offset_group, pads, strides
    )
    depth = columns.shape[1] // group
    weights = w.reshape(group, w.shape[0] // group, depth)
    out = product(weights, columns.reshape(len(x), group, depth, columns.shape[2]))
    out = out if b is None else out + b.reshape(group, -1, 1)
    return out.reshape(len(x), w.shape[0], *window.output)
