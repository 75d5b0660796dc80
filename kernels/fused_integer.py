"""Products of 8-bit integers that go on to float32, with a scale and a bias.

    Y = float32((A - a_zero_point) @ (B - b_zero_point)) scale + bias

The sum of products is exact; the conversion, the product with the scale and the sum with the bias
round once each. So the bits are those of MatMulInteger or ConvInteger, Cast, Mul and Add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels import exact_conv as in_order
from foldline.kernels import exact_matmul as in_order_matmul
from foldline.kernels.epilogue import Apply
from foldline.kernels.exact_bits import canonical
from foldline.kernels.exact_quantisation import dynamic_quantize_linear as exactly_quantised
from foldline.kernels.integer_products import ExactMatMul, centred, exact_conv, row_zero
from foldline.kernels.quantisation import dynamic_quantize_linear, dynamic_range
from foldline.kernels.quantised_conv import conv_integer_reference
from foldline.kernels.quantised_matmul import matmul_integer_reference
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.ufuncs import clip

DOMAIN = "foldline"

_BYTE = np.dtype(np.uint8)
_ZERO = np.float32(0)


def _floats(total: Array, scale: Array, bias: Array | None, bias_first: int) -> Array:
    """Integers as float32, scaled and shifted."""
    y = np.asarray(np.multiply(total.astype(np.float32), scale))
    return y if bias is None else np.asarray(bias + y if bias_first else y + bias)


def _exact_floats(total: Array, scale: Array, bias: Array | None) -> Array:
    y = canonical(np.asarray(np.multiply(total.astype(np.float32), scale)))
    return y if bias is None else canonical(np.asarray(y + bias))


def _finish(scale: Array, bias: Array | None, bias_first: int) -> Apply:
    """The scale and the bias of each column, applied to tiles of a product."""
    scale = scale.reshape(-1)
    bias = None if bias is None else bias.reshape(-1)

    def apply(tile: Array, row0: int, col0: int, rows: int, cols: int) -> None:
        np.multiply(tile, scale if scale.size == 1 else scale[col0 : col0 + cols], out=tile)
        if bias is not None:
            part = bias if bias.size == 1 else bias[col0 : col0 + cols]
            terms = (part, tile) if bias_first else (tile, part)
            np.add(*terms, out=tile)

    return apply


@kernel("MatMulIntegerToFloat", domain=DOMAIN)
def matmul_integer_to_float_reference(
    a: Array,
    b: Array,
    a_zero_point: Array | None,
    b_zero_point: Array | None,
    scale: Array,
    bias: Array | None = None,
    *,
    bias_first: int = 0,
) -> Array:
    """MatMulIntegerToFloat: scale and bias are one number, or have one for each column."""
    total = matmul_integer_reference(a, b, a_zero_point, b_zero_point)
    return _floats(total, scale, bias, bias_first)


@maker("MatMulIntegerToFloat", domain=DOMAIN)
def matmul_integer_to_float(
    a: Operand,
    b: Operand,
    a_zero_point: Operand | None,
    b_zero_point: Operand | None,
    scale: Operand,
    bias: Operand | None = None,
    *,
    bias_first: int = 0,
    out: Array | None = None,
) -> Callable[..., Array]:
    """MatMulIntegerToFloat, tile by tile."""
    product = ExactMatMul(a, b, a_zero_point, b_zero_point)

    def run(
        a: Array,
        b: Array,
        a_zero_point: Array | None,
        b_zero_point: Array | None,
        scale: Array,
        bias: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        left = centred(a, row_zero(a_zero_point))
        return product.floats(left, b, b_zero_point, _finish(scale, bias, bias_first), out)

    return run


@kernel("MatMulIntegerToFloat", domain=DOMAIN, grade="exact")
def exact_matmul_integer_to_float(
    a: Array,
    b: Array,
    a_zero_point: Array | None,
    b_zero_point: Array | None,
    scale: Array,
    bias: Array | None = None,
    *,
    bias_first: int = 0,
) -> Array:
    """MatMulIntegerToFloat with exact kernels; the order of a sum makes no difference."""
    total = in_order_matmul.matmul_integer(a, b, a_zero_point, b_zero_point)
    return _exact_floats(total, scale, bias)


@kernel("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul_reference(
    x: Array,
    b: Array,
    b_zero_point: Array | None,
    b_scale: Array,
    bias: Array | None = None,
    *,
    bias_first: int = 0,
) -> Array:
    """DynamicQuantizeMatMul: MatMulIntegerToFloat of `x`, quantised by its range."""
    codes, scale, zero = dynamic_quantize_linear(x)
    total = matmul_integer_reference(codes, b, zero, b_zero_point)
    return _floats(total, np.asarray(scale * b_scale), bias, bias_first)


@maker("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul(
    x: Operand,
    b: Operand,
    b_zero_point: Operand | None,
    b_scale: Operand,
    bias: Operand | None = None,
    *,
    bias_first: int = 0,
    out: Array | None = None,
) -> Callable[..., Array]:
    """DynamicQuantizeMatMul whose codes never leave float32."""
    product = ExactMatMul(Operand(x.shape, _BYTE), b, Operand((), _BYTE), b_zero_point)

    def run(
        x: Array,
        b: Array,
        b_zero_point: Array | None,
        b_scale: Array,
        bias: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        left, scale = _centred_codes(x)
        finish = _finish(np.asarray(scale * b_scale), bias, bias_first)
        return product.floats(left, b, b_zero_point, finish, out)

    return run


def _centred_codes(x: Array) -> tuple[Array, Array]:
    """What DynamicQuantizeLinear gives, as `code - zero_point` in float32, and its scale."""
    scale, zero = dynamic_range(x)
    if not 0 < scale < np.inf:  # Some quotients are no numbers; what they become is its business.
        codes, scale, zero = dynamic_quantize_linear(x)
        return centred(codes, zero), scale
    left = np.atleast_1d(np.divide(x, scale))
    np.rint(left, out=left)
    point = zero.astype(np.float32)  # A code lies within 0 and 255.
    clip(left, -point, np.asarray(np.float32(255) - point), left)
    return left, scale


@kernel("DynamicQuantizeMatMul", domain=DOMAIN, grade="exact")
def exact_dynamic_quantize_matmul(
    x: Array,
    b: Array,
    b_zero_point: Array | None,
    b_scale: Array,
    bias: Array | None = None,
    *,
    bias_first: int = 0,
) -> Array:
    """DynamicQuantizeMatMul with exact kernels."""
    codes, scale, zero = exactly_quantised(x)
    total = in_order_matmul.matmul_integer(codes, b, zero, b_zero_point)
    return _exact_floats(total, canonical(np.asarray(scale * b_scale)), bias)


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
    return _floats(total if b is None else np.asarray(total + b), scale, bias, bias_first)


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
    return _exact_floats(total if b is None else np.asarray(total + b), scale, bias)
