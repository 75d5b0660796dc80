"""MaxPool, AveragePool and LpPool, all versions.

The reference kernels combine the taps of the kernel one by one; the fast ones go axis by axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from foldline.kernels.global_pooling import global_average_step
from foldline.kernels.max_pool_indices import max_pool_with_indices
from foldline.kernels.pool_channels_last import pool_pixels_step
from foldline.kernels.precision import widening, widening_maker
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.window_passes import Combine, Map, copy, separable_step
from foldline.kernels.windows import Window, sliding_window


@kernel("MaxPool")
@widening
def max_pool_reference(
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
    """MaxPool 1/8/10/11/12/22; NaN wins. See `max_pool_with_indices` for the second output."""
    window = pool_window(x.shape, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if output_count > 1:
        return max_pool_with_indices(x, window, storage_order)
    return _over_taps(np.maximum, x, window, lowest(x.dtype))


@kernel("AveragePool")
@widening
def average_pool_reference(
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
    return _over_taps(np.add, x, window, 0) / window_counts(window, count_include_pad, x.dtype)


@kernel("LpPool")
@widening
def lp_pool_reference(
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
    return _over_taps(np.add, np.abs(x) ** x.dtype.type(p), window, 0) ** x.dtype.type(1 / p)


def _over_taps(combine: Combine, x: Array, window: Window, identity: float) -> Array:
    out = np.full((*x.shape[:2], *window.output), identity, x.dtype)
    for tap in window.taps():
        into, seen = window.hits_of(tap)
        out[into] = combine(out[into], x[seen])
    return out


@maker("MaxPool", any_order=True)
@widening_maker
def max_pool(
    x: Operand,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    output_count: int = 1,
    out: Array | None = None,
) -> Step:
    """MaxPool 1/8/10/11/12/22, axis by axis unless indices are wanted."""
    window = pool_window(x.shape, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if output_count > 1:

        def run(x: Array, *, out: Array | None = None) -> tuple[Array, Array]:
            return max_pool_with_indices(np.ascontiguousarray(x), window, storage_order, out)

        return Step(run)
    return _pooling_step(x, window, np.maximum, lowest(x.dtype))


@maker("AveragePool", any_order=True)
@widening_maker
def average_pool(
    x: Operand,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    out: Array | None = None,
) -> Step:
    """AveragePool 1/7/10/11/19/22, axis by axis."""
    window = pool_window(x.shape, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    counts = window_counts(window, count_include_pad, x.dtype)
    is_even = counts.size and (counts == counts.flat[0]).all()
    divisor = counts.flat[0] if is_even else counts

    def average(total: Array, target: Array) -> None:
        np.divide(total, divisor, out=target)

    if _is_global(window):
        return global_average_step(x)
    if is_even or not x.channels_last:
        return _pooling_step(x, window, np.add, 0, after=average)
    total = _pooling_step(x, window, np.add, 0)

    def run_pixels(x: Array, *, scratch: Array, out: Array | None = None) -> Array:
        result = total.run(x, scratch=scratch, out=out)
        average(result, result)
        return result

    return Step(run_pixels, total.scratch_bytes, channels_last=True)


def _pooling_step(
    x: Operand,
    window: Window,
    combine: Combine,
    identity: float,
    before: Map | None = None,
    after: Map = copy,
) -> Step:
    step = pool_pixels_step if x.channels_last else separable_step
    return step(x, window, combine, identity, before, after)


def _is_global(window: Window) -> bool:
    pads = any(window.before) or any(window.after) or any(d > 1 for d in window.dilations)
    return window.kernel == window.spatial and not pads


@maker("LpPool", any_order=True)
@widening_maker
def lp_pool(
    x: Operand,
    *,
    kernel_shape: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    p: float = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    out: Array | None = None,
) -> Step:
    """LpPool 1/2/11/18/22, axis by axis."""
    shape = kernel_shape or x.shape[2:]
    window = pool_window(x.shape, shape, strides, dilations, pads, auto_pad, ceil_mode)
    return _pooling_step(x, window, np.add, 0, *_lp_maps(p))


def _lp_maps(p: float) -> tuple[Map, Map]:
    """What an Lp norm does before and after the sum: `|x|^p` and `s^(1/p)`."""

    def power(x: Array, target: Array) -> None:
        if p == 2:
            np.multiply(x, x, out=target)
            return
        np.abs(x, out=target)
        if p != 1:
            np.power(target, target.dtype.type(p), out=target)

    def root(total: Array, target: Array) -> None:
        if p == 2:
            np.sqrt(total, out=target)
        elif p == 1:
            np.copyto(target, total)
        else:
            np.power(total, total.dtype.type(1 / p), out=target)

    return power, root


def lowest(dtype: np.dtype[Any]) -> float:
    """The value no other is below."""
    return -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def pool_window(
    x: tuple[int, ...],
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil_mode: int,
) -> Window:
    return sliding_window(
        x[2:],
        kernel_shape,
        strides=strides,
        dilations=dilations,
        pads=pads,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
    )


def window_counts(window: Window, include_pads: int, dtype: np.dtype[Any]) -> Array:
    """Elements each window holds, as an array of the output's spatial shape."""
    counts = np.ones((), dtype)
    for axis in range(window.rank):
        start = np.arange(window.output[axis]) * window.strides[axis] - window.before[axis]
        taps = start[:, None] + np.arange(window.kernel[axis]) * window.dilations[axis]
        low = -window.before[axis] if include_pads else 0
        high = window.spatial[axis] + (window.after[axis] if include_pads else 0)
        along = np.count_nonzero((taps >= low) & (taps < high), axis=1)
        counts = counts[..., None] * along.astype(dtype)
    return counts
