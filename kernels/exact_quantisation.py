"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear in exact mode.

The formulas are those of `quantisation`; what ONNX leaves open is settled: NaN becomes 0 in an
integer type.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.cast import convert
from foldline.kernels.exact_bits import canonical, greatest, least, maximum, minimum
from foldline.kernels.precision import NARROW
from foldline.kernels.quantisation import (
    aligned_parameters,
    integer_limits,
    quantised_dtype,
    quotient_dtype,
)
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE

_FLOAT32 = np.dtype(np.float32)


@kernel("QuantizeLinear", grade="exact")
def quantize_linear(
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Array:
    """QuantizeLinear 10..28: `saturate(round_half_even(x / scale) + zero_point)`."""
    dtype = quantised_dtype(y_zero_point, output_dtype)
    quotient = BY_CODE[precision].numpy if precision else quotient_dtype(y_scale.dtype)
    shape, scale, zero = aligned_parameters(x.shape, axis, block_size, y_scale, y_zero_point)
    part = np.divide(x.reshape(shape).astype(quotient), convert(scale, quotient))
    part = part.astype(np.float32) if quotient in NARROW else part
    return _as_target(part, zero, dtype, bool(saturate)).reshape(x.shape)


def _as_target(part: Array, zero: Array | None, dtype: np.dtype, saturate: bool) -> Array:
    limits = integer_limits(dtype)
    shift = None if zero is None else convert(zero, _FLOAT32)
    if limits is None:
        moved = part if shift is None else part + shift
        return convert(canonical(np.array(moved)), dtype, saturate)
    whole = np.rint(part)
    whole = whole if shift is None else whole + shift
    low, high = (np.array(limit, part.dtype) for limit in limits)
    bounded = minimum(maximum(np.asarray(whole), low), high)
    missing = np.asarray(bounded != bounded)
    if missing.any():
        bounded[missing] = 0
    return bounded.astype(dtype)


def quantised(total: Array, multiplier: Array, zero: Array) -> Array:
    """`saturate(round_half_even(total * multiplier) + zero)` in the type of `zero`.

    `total` are sums of products, int32 or float32; the product with `multiplier`, float32, which
    broadcasts to it, is float32.
    """
    part = np.multiply(total.astype(np.float32), multiplier)
    return _as_target(np.asarray(part), zero, zero.dtype, True).reshape(total.shape)


@kernel("DequantizeLinear", grade="exact")
def dequantize_linear(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """DequantizeLinear 10..28: `(x - zero_point) * scale` in float32, rounded once."""
    dtype = BY_CODE[output_dtype].numpy if output_dtype else x_scale.dtype
    shape, scale, zero = aligned_parameters(x.shape, axis, block_size, x_scale, x_zero_point)
    part = x.reshape(shape).astype(np.float32)
    if zero is not None:
        part = part - convert(zero, _FLOAT32)
    result = np.asarray(part * convert(scale, _FLOAT32)).reshape(x.shape)
    return canonical(canonical(result).astype(dtype, copy=False))


@kernel("DynamicQuantizeLinear", grade="exact")
def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    """DynamicQuantizeLinear 11: uint8, scale and zero point from the range of `x` and zero."""
    nothing = np.zeros((), np.float32)
    low, high = minimum(least(x, None), nothing), maximum(greatest(x, None), nothing)
    scale = canonical(np.asarray((high - low) / np.float32(255)))
    if high == low:
        scale = np.ones((), np.float32)
    zero = _as_target(np.asarray(np.rint(-low / scale)), None, np.dtype(np.uint8), True)
    return quantize_linear(x, scale, zero), scale, zero
