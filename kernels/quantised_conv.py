"""ConvInteger and QLinearConv: convolutions of 8-bit integers, exact for any window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldline.kernels.conv import conv_reference
from foldline.kernels.integer_products import exact_conv, map_zero
from foldline.kernels.quantisation import quantised
from foldline.kernels.registry import Array, Operand, Step, kernel, maker


@kernel("ConvInteger")
def conv_integer_reference(
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """ConvInteger 10: Conv of `x - x_zero_point` and `w - w_zero_point` as int32, which wraps.

    `w_zero_point` is one number or has one for each output map. Padding is `x_zero_point`.
    """
    return conv_reference(
        _centred(x, x_zero_point),
        _centred(w, map_zero(w_zero_point, w.ndim)),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )


@maker("ConvInteger")
def conv_integer(
    x: Operand,
    w: Operand,
    x_zero_point: Operand | None = None,
    w_zero_point: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Step:
    """ConvInteger 10 by float32 products."""
    step = exact_conv(
        x,
        w,
        x_zero_point,
        w_zero_point,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )

    def run(
        x: Array,
        w: Array,
        x_zero_point: Array | None = None,
        w_zero_point: Array | None = None,
        *,
        scratch: Array,
    ) -> Array:
        return step.run(x, w, x_zero_point, w_zero_point, scratch)

    return Step(run, step.scratch_bytes)


@kernel("QLinearConv")
def qlinear_conv_reference(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """QLinearConv 10: `saturate(round((Conv + B) x_scale w_scale / y_scale) + y_zero_point)`.

    Conv is that of ConvInteger. `w_scale` is one number or has one for each output map.
    """
    total = conv_integer_reference(
        x,
        w,
        x_zero_point,
        w_zero_point,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return requantised(total, x_scale, w_scale, y_scale, y_zero_point, b)


@maker("QLinearConv")
def qlinear_conv(
    x: Operand,
    x_scale: Operand,
    x_zero_point: Operand,
    w: Operand,
    w_scale: Operand,
    w_zero_point: Operand,
    y_scale: Operand,
    y_zero_point: Operand,
    b: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Step:
    """QLinearConv 10 by float32 products, which stay floats where that is exact."""
    greatest = 0 if b is None else _greatest(b)
    step = exact_conv(
        x,
        w,
        x_zero_point,
        w_zero_point,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
        headroom=greatest,
    )

    def run(
        x: Array,
        x_scale: Array,
        x_zero_point: Array,
        w: Array,
        w_scale: Array,
        w_zero_point: Array,
        y_scale: Array,
        y_zero_point: Array,
        b: Array | None = None,
        *,
        scratch: Array,
    ) -> Array:
        total = step.run(x, w, x_zero_point, w_zero_point, scratch)
        return requantised(total, x_scale, w_scale, y_scale, y_zero_point, b)

    return Step(run, step.scratch_bytes)


def _centred(x: Array, zero: Array | None) -> Array:
    return x.astype(np.int32) if zero is None else np.subtract(x, zero, dtype=np.int32)


def _greatest(b: Operand) -> int | None:
    """The greatest absolute value of a bias, if it is constant."""
    return None if b.value is None else int(np.abs(b.value.astype(np.int64)).max(initial=0))


def requantised(
    total: Array, x_scale: Array, w_scale: Array, y_scale: Array, zero: Array, b: Array | None
) -> Array:
    """Sums of products, int32 or exact in float32, with a bias and on another scale.

    float32 ones are overwritten.
    """
    by_map = (-1, *(1,) * (total.ndim - 2))
    if b is not None:
        total = np.add(total, b.reshape(by_map).astype(total.dtype, copy=False), out=total)
    multiplier = (x_scale * w_scale / y_scale).reshape(-1)
    return quantised(total, multiplier.reshape(by_map), zero)
