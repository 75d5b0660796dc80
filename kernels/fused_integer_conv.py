"""Convolutions of 8-bit integers that go on to float32, with a scale and a bias.

    Y = float32(Conv(X - x_zero_point, W - w_zero_point) + b) scale + bias

Roundings are those of `fused_integer`, so the bits are those of ConvInteger, Cast, Mul and Add.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldline.kernels import exact_conv as in_order
from foldline.kernels.fused_integer import DOMAIN, canonical_floats, scaled_floats
from foldline.kernels.integer_products import exact_conv
from foldline.kernels.quantised_conv import conv_integer_reference
from foldline.kernels.registry import Array, Operand, Step, kernel, maker

_ZERO = np.float32(0)


@kernel("ConvIntegerToFloat", domain=DOMAIN)
def conv_integer_to_float_reference(
    x: Array,
    w: Array,
    x_zero_point: Array | None,
    w_zero_point: Array | None,
    scale: Array,
    b: Array | None = None,
    bias: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    bias_first: int = 0,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """ConvIntegerToFloat: `b` is added to the integers, which wrap, `bias` to the floats."""
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
    return scaled_floats(total if b is None else np.asarray(total + b), scale, bias, bias_first)


@maker("ConvIntegerToFloat", domain=DOMAIN)
def conv_integer_to_float(
    x: Operand,
    w: Operand,
    x_zero_point: Operand | None,
    w_zero_point: Operand | None,
    scale: Operand,
    b: Operand | None = None,
    bias: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    bias_first: int = 0,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    out: Array | None = None,
) -> Step:
    """ConvIntegerToFloat by float32 products, finished where they lie."""
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
        headroom=0 if b is None else None,
    )

    def run(
        x: Array,
        w: Array,
        x_zero_point: Array | None,
        w_zero_point: Array | None,
        scale: Array,
        b: Array | None = None,
        bias: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        total = step.run(x, w, x_zero_point, w_zero_point, scratch)
        y = np.empty(total.shape, np.float32) if out is None else out
        if total.dtype == np.float32:
            np.add(total, _ZERO, out=y)  # Integers have no -0.
        else:
            np.copyto(y, total if b is None else np.add(total, b, out=total), casting="same_kind")
        np.multiply(y, scale, out=y)
        if bias is not None:
            np.add(*((bias, y) if bias_first else (y, bias)), out=y)
        return y

    return Step(run, step.scratch_bytes)


@kernel("ConvIntegerToFloat", domain=DOMAIN, grade="exact")
def exact_conv_integer_to_float(
    x: Array,
    w: Array,
    x_zero_point: Array | None,
    w_zero_point: Array | None,
    scale: Array,
    b: Array | None = None,
    bias: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    bias_first: int = 0,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """ConvIntegerToFloat with exact kernels."""
    total = in_order.conv_integer(
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
    return canonical_floats(total if b is None else np.asarray(total + b), scale, bias)
