"""Operators on 8-bit integers that compute on the numbers these stand for, and quantise again.

    x = (code - zero_point) * scale        code = saturate(round_half_even(y / scale) + zero_point)

Domain com.microsoft; version 1 of each operator. The arithmetic between is in float32. An absent
zero point is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.activation import leaky_relu, sigmoid
from foldline.kernels.movement import concat
from foldline.kernels.pooling import average_pool
from foldline.kernels.quantisation import dequantize_linear, quantize_linear
from foldline.kernels.registry import Array, Operand, kernel, run_once
from foldline.kernels.softmax import softmax_11_reference, softmax_reference

DOMAIN = "com.microsoft"


@kernel("QuantizeLinear", domain=DOMAIN)
def early_quantize_linear(
    x: Array, y_scale: Array, y_zero_point: Array | None = None, *, axis: int = 1
) -> Array:
    """QuantizeLinear: that of ONNX, for types that it took later."""
    return quantize_linear(x, y_scale, y_zero_point, axis=axis)


@kernel("DequantizeLinear", domain=DOMAIN)
def early_dequantize_linear(
    x: Array, x_scale: Array, x_zero_point: Array | None = None, *, axis: int = 1
) -> Array:
    """DequantizeLinear: that of ONNX, for types that it took later."""
    return dequantize_linear(x, x_scale, x_zero_point, axis=axis)


@kernel("QLinearWhere", domain=DOMAIN)
def qlinear_where(
    condition: Array,
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    y: Array,
    y_scale: Array,
    y_zero_point: Array,
    z_scale: Array,
    z_zero_point: Array,
) -> Array:
    """QLinearWhere: Where of two arrays, quantised anew."""
    given = (x, x_scale, x_zero_point), (y, y_scale, y_zero_point)
    parts = [_mapped(a, np.asarray, scale, zero, z_scale, z_zero_point) for a, scale, zero in given]
    return np.where(condition, *parts)


@kernel("QLinearAdd", domain=DOMAIN)
def qlinear_add(
    a: Array,
    a_scale: Array,
    a_zero_point: Array | None,
    b: Array,
    b_scale: Array,
    b_zero_point: Array | None,
    c_scale: Array,
    c_zero_point: Array | None = None,
) -> Array:
    """QLinearAdd: the quantised sum of two arrays that broadcast."""
    y = dequantize_linear(a, a_scale, a_zero_point) + dequantize_linear(b, b_scale, b_zero_point)
    return _quantised(y, c_scale, c_zero_point, a.dtype)


@kernel("QLinearMul", domain=DOMAIN)
def qlinear_mul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array | None,
    b: Array,
    b_scale: Array,
    b_zero_point: Array | None,
    c_scale: Array,
    c_zero_point: Array | None = None,
) -> Array:
    """QLinearMul: the quantised product of two arrays that broadcast."""
    y = dequantize_linear(a, a_scale, a_zero_point) * dequantize_linear(b, b_scale, b_zero_point)
    return _quantised(y, c_scale, c_zero_point, a.dtype)


@kernel("QLinearSigmoid", domain=DOMAIN)
def qlinear_sigmoid(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
) -> Array:
    """QLinearSigmoid: the quantised Sigmoid."""
    return _mapped(x, sigmoid, x_scale, x_zero_point, y_scale, y_zero_point)


@kernel("QLinearLeakyRelu", domain=DOMAIN)
def qlinear_leaky_relu(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    alpha: float = 0.01,
) -> Array:
    """QLinearLeakyRelu: the quantised LeakyRelu."""

    def function(x: Array) -> Array:
        return leaky_relu(x, alpha=alpha)

    return _mapped(x, function, x_scale, x_zero_point, y_scale, y_zero_point)


@kernel("QLinearConcat", domain=DOMAIN)
def qlinear_concat(y_scale: Array, y_zero_point: Array, *inputs: Array, axis: int) -> Array:
    """QLinearConcat: `inputs` are an array, its scale and its zero point, in turn."""
    triples = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    parts = [
        _mapped(x, np.asarray, scale, zero, y_scale, y_zero_point) for x, scale, zero in triples
    ]
    return concat(*parts, axis=axis)


@kernel("QLinearSoftmax", domain=DOMAIN)
def qlinear_softmax(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array,
    *,
    axis: int = -1,
    opset: int,
) -> Array:
    """QLinearSoftmax: the quantised Softmax as version `opset` of ONNX has it."""
    function = softmax_reference if opset >= 13 else softmax_11_reference
    y = function(dequantize_linear(x, x_scale, x_zero_point), axis=axis)
    return _quantised(y, y_scale, y_zero_point, x.dtype)


@kernel("QLinearGlobalAveragePool", domain=DOMAIN)
def qlinear_global_average_pool(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    *,
    channels_last: int = 0,
) -> Array:
    """QLinearGlobalAveragePool: the quantised mean over the spatial axes, which become 1."""
    axes = tuple(range(1, x.ndim - 1) if channels_last else range(2, x.ndim))
    total = np.subtract(x, x_zero_point, dtype=np.int32).sum(
        axis=axes, dtype=np.int64, keepdims=True
    )
    count = np.prod([x.shape[axis] for axis in axes], dtype=np.int64)
    y = total.astype(np.float32) * (x_scale / count.astype(np.float32))
    return _quantised(y, y_scale, y_zero_point, x.dtype)


@kernel("QLinearAveragePool", domain=DOMAIN)
def qlinear_average_pool(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """QLinearAveragePool: the quantised AveragePool."""
    values = dequantize_linear(x, x_scale, x_zero_point)
    values = np.ascontiguousarray(np.moveaxis(values, -1, 1)) if channels_last else values
    step = average_pool(
        Operand(values.shape, values.dtype),
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        pads=pads,
        strides=strides,
    )
    y: Array = run_once(step, [values])
    y = np.ascontiguousarray(np.moveaxis(y, 1, -1)) if channels_last else y
    return _quantised(y, y_scale, y_zero_point, x.dtype)


def _quantised(y: Array, scale: Array, zero: Array | None, dtype: np.dtype[np.generic]) -> Array:
    return quantize_linear(y, scale, np.zeros((), dtype) if zero is None else zero)


def _mapped(
    x: Array,
    function: Callable[[Array], Array],
    x_scale: Array,
    x_zero: Array | None,
    y_scale: Array,
    y_zero: Array | None,
) -> Array:
    """A function of each element, quantised, by a table of all codes; floats are just quantised."""
    if x.dtype.kind == "f":
        return quantize_linear(x, y_scale, y_zero)
    codes = np.arange(256, dtype=np.uint8).view(x.dtype)
    values = function(dequantize_linear(codes, x_scale, x_zero))
    return _quantised(values, y_scale, y_zero, x.dtype)[x.view(np.uint8)]
