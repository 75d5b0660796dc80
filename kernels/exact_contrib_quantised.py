"""Operators of com.microsoft on 8-bit integers in exact mode.

They compute on the numbers that the codes stand for, in float32, by exact kernels, and quantise
the result; see `contrib_quantised` and `contrib_channels_last`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.exact_arithmetic import leaky_relu
from foldline.kernels.exact_conv import qlinear_conv
from foldline.kernels.exact_functions import SIGMOID
from foldline.kernels.exact_pooling import average_pool, max_pool
from foldline.kernels.exact_quantisation import dequantize_linear, quantize_linear
from foldline.kernels.exact_softmax import softmax, softmax_11
from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.movement import concat
from foldline.kernels.registry import Array, kernel

DOMAIN = "com.microsoft"


@kernel("QuantizeLinear", domain=DOMAIN, grade="exact")
def early_quantize_linear(
    x: Array, y_scale: Array, y_zero_point: Array | None = None, *, axis: int = 1
) -> Array:
    """QuantizeLinear: that of ONNX, for types that it took later."""
    return quantize_linear(x, y_scale, y_zero_point, axis=axis)


@kernel("DequantizeLinear", domain=DOMAIN, grade="exact")
def early_dequantize_linear(
    x: Array, x_scale: Array, x_zero_point: Array | None = None, *, axis: int = 1
) -> Array:
    """DequantizeLinear: that of ONNX, for types that it took later."""
    return dequantize_linear(x, x_scale, x_zero_point, axis=axis)


@kernel("QLinearWhere", domain=DOMAIN, grade="exact")
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
    parts = [_mapped(a, _itself, scale, zero, z_scale, z_zero_point) for a, scale, zero in given]
    return np.where(condition, *parts)


@kernel("QLinearAdd", domain=DOMAIN, grade="exact")
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
    return _quantised(np.asarray(y), c_scale, c_zero_point, a.dtype)


@kernel("QLinearMul", domain=DOMAIN, grade="exact")
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
    return _quantised(np.asarray(y), c_scale, c_zero_point, a.dtype)


@kernel("QLinearSigmoid", domain=DOMAIN, grade="exact")
def qlinear_sigmoid(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
) -> Array:
    """QLinearSigmoid: the quantised Sigmoid."""
    return _mapped(x, SIGMOID, x_scale, x_zero_point, y_scale, y_zero_point)


@kernel("QLinearLeakyRelu", domain=DOMAIN, grade="exact")
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


@kernel("QLinearConcat", domain=DOMAIN, grade="exact")
def qlinear_concat(y_scale: Array, y_zero_point: Array, *inputs: Array, axis: int) -> Array:
    """QLinearConcat: `inputs` are an array, its scale and its zero point, in turn."""
    triples = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    parts = [_mapped(x, _itself, scale, zero, y_scale, y_zero_point) for x, scale, zero in triples]
    return concat(*parts, axis=axis)


@kernel("QLinearSoftmax", domain=DOMAIN, grade="exact")
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
    function = softmax if opset >= 13 else softmax_11
    y = function(dequantize_linear(x, x_scale, x_zero_point), axis=axis)
    return _quantised(y, y_scale, y_zero_point, x.dtype)


@kernel("QLinearGlobalAveragePool", domain=DOMAIN, grade="exact")
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
    total = tree_sum(x.astype(np.int64) - x_zero_point.astype(np.int64), axes, True)
    count = np.float32(math.prod(x.shape[axis] for axis in axes))
    y = np.asarray(total.astype(np.float32) * (x_scale / count))
    return _quantised(y, y_scale, y_zero_point, x.dtype)


@kernel("QLinearAveragePool", domain=DOMAIN, grade="exact")
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
    y = average_pool(
        _channels_second(values) if channels_last else values,
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        pads=pads,
        strides=strides,
    )
    return _quantised(_channels_last(y) if channels_last else y, y_scale, y_zero_point, x.dtype)


@kernel("QLinearConv", domain=DOMAIN, grade="exact")
def qlinear_conv_channels_last(
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
    channels_last: int = 0,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """QLinearConv: that of ONNX; with `channels_last` those of `x` and the result are."""
    y = qlinear_conv(
        _channels_second(x) if channels_last else x,
        x_scale,
        x_zero_point,
        w,
        w_scale,
        w_zero_point,
        y_scale,
        y_zero_point,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return _channels_last(y) if channels_last else y


@kernel("NhwcMaxPool", domain=DOMAIN, grade="exact")
def nhwc_max_pool(
    x: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """NhwcMaxPool: MaxPool of ONNX with the channels last."""
    y = max_pool(
        _channels_second(x),
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    return _channels_last(np.asarray(y))


def _itself(x: Array) -> Array:
    return x


def _channels_second(x: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def _channels_last(x: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


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
    """A function of each element, quantised; floats are just quantised."""
    if x.dtype.kind == "f":
        return quantize_linear(x, y_scale, y_zero)
    values = function(dequantize_linear(x, x_scale, x_zero))
    return _quantised(values, y_scale, y_zero, x.dtype)
