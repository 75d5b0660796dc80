"""Operators of com.microsoft in exact mode: fused products and products of integers.

They are what their parts are: `exact_matmul`, `exact_conv`, `exact_quantisation`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldline.kernels.contrib_fused import seen_order
from foldline.kernels.contrib_nbits import n_bits_weights, refuse_orders
from foldline.kernels.exact_arithmetic import clip_inputs
from foldline.kernels.exact_bits import canonical, canonicalised
from foldline.kernels.exact_conv import centred, conv
from foldline.kernels.exact_matmul import gemm, matmul_integer
from foldline.kernels.exact_products import integer_product, prepared, product
from foldline.kernels.exact_quantisation import dynamic_quantize_linear, quantised
from foldline.kernels.exact_recurrent import chosen
from foldline.kernels.integer_products import row_zero
from foldline.kernels.lstm import lstm_step
from foldline.kernels.precision import rounded, widened, widening
from foldline.kernels.recurrent import Cell, Product, biases, clipper, run_layer
from foldline.kernels.registry import GRADES, LATEST, Array, find_kernel, kernel

DOMAIN = "com.microsoft"

_PARAMETERS: dict[str, tuple[str, ...]] = {
    "Clip": (),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
"""Activations, and the attributes that the numbers given with them are; of Clip the inputs."""


def _activated(x: Array, name: str, given: Sequence[float]) -> Array:
    """`x` after an activation; ValueError for an unknown name."""
    if not name:
        return x
    if name not in _PARAMETERS:
        raise ValueError(f"unknown activation {name!r}, expected one of {sorted(_PARAMETERS)}")
    if name == "Clip":
        return clip_inputs(x, *(np.array(bound, x.dtype) for bound in given))
    entry = find_kernel("", name, LATEST - 1, GRADES["exact"])
    assert entry is not None, "each has an exact kernel"
    return entry.function(x, **dict(zip(_PARAMETERS[name], given, strict=False)))


@kernel("FusedMatMul", domain=DOMAIN, grade="exact")
@canonicalised
@widening
def fused_matmul(
    a: Array,
    b: Array,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Array:
    """FusedMatMul: `MatMul(a', b') * alpha`, a factor of 1 is no step."""
    left = a.transpose(seen_order(a.ndim, transBatchA, transA))
    right = b.transpose(seen_order(b.ndim, transBatchB, transB))
    y = product(left, right)
    return y if alpha == 1.0 else np.asarray(y * y.dtype.type(alpha))


@kernel("TransposeMatMul", domain=DOMAIN, grade="exact")
def transpose_matmul(
    a: Array, b: Array, *, alpha: float = 1.0, transA: int = 0, transB: int = 0
) -> Array:
    """TransposeMatMul: what FusedMatMul was called before it had more attributes."""
    return fused_matmul(a, b, alpha=alpha, transA=transA, transB=transB)


@kernel("FusedGemm", domain=DOMAIN, grade="exact")
@widening
def fused_gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """FusedGemm: `activation(Gemm(a, b, c))`."""
    y = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    parameters = (activation_alpha, activation_beta, activation_gamma)
    return _activated(y, activation, [p for p in parameters if p is not None])


@kernel("FusedConv", domain=DOMAIN, grade="exact")
@widening
def fused_conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    z: Array | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """FusedConv: `activation(Conv(x, w, b) + z)`."""
    y = conv(
        x,
        w,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    y = y if z is None else canonical(np.add(y, z, out=y))
    return _activated(y, activation, activation_params)


@kernel("MatMulIntegerToFloat", domain=DOMAIN, grade="exact")
@canonicalised
def matmul_integer_to_float(
    a: Array,
    b: Array,
    a_scale: Array,
    b_scale: Array,
    a_zero_point: Array | None = None,
    b_zero_point: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """MatMulIntegerToFloat: the sums of MatMulInteger times `a_scale b_scale`, plus `bias`."""
    total = matmul_integer(a, b, a_zero_point, b_zero_point)
    return rounded(_scaled(total, a_scale, b_scale, bias), a_scale.dtype)


@kernel("DynamicQuantizeMatMul", domain=DOMAIN, grade="exact")
@canonicalised
def dynamic_quantize_matmul(
    a: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """DynamicQuantizeMatMul: MatMulIntegerToFloat of `a`, quantised by DynamicQuantizeLinear."""
    codes, scale, zero = dynamic_quantize_linear(a)
    return _scaled(matmul_integer(codes, b, zero, b_zero_point), scale, b_scale, bias)


def _scaled(total: Array, a_scale: Array, b_scale: Array, bias: Array | None) -> Array:
    rows = row_zero(a_scale)
    factor = widened(a_scale if rows is None else rows) * widened(b_scale)
    y = np.asarray(total.astype(np.float32) * factor)
    return y if bias is None else np.asarray(y + widened(bias))


@kernel("QGemm", domain=DOMAIN, grade="exact")
@canonicalised
def quantised_gemm(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    c: Array | None = None,
    y_scale: Array | None = None,
    y_zero_point: Array | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """QGemm: `((A' - a_zero_point) @ (B' - b_zero_point) + C) * (a_scale b_scale alpha)`."""
    left, right = a.T if transA else a, b.T if transB else b
    total = matmul_integer(left, right, a_zero_point, b_zero_point)
    total = total if c is None else total + c
    factor = a_scale * b_scale * np.float32(alpha)
    if y_zero_point is None:
        return np.asarray(total.astype(np.float32) * factor)
    scale = np.ones((), np.float32) if y_scale is None else y_scale
    return quantised(total, np.asarray(factor / scale), y_zero_point)


@kernel("MatMulNBits", domain=DOMAIN, grade="exact")
@canonicalised
def matmul_n_bits(
    a: Array,
    b: Array,
    scales: Array,
    zero_points: Array | None = None,
    g_idx: Array | None = None,
    bias: Array | None = None,
    *,
    K: int,
    N: int,
    block_size: int,
    accuracy_level: int = 0,
    bits: int = 4,
    weight_prepacked: int = 0,
) -> Array:
    """MatMulNBits: the product with the weights that the codes stand for, in float32."""
    refuse_orders(g_idx, weight_prepacked)
    weights = n_bits_weights(b, scales, zero_points, (N, K), block_size, bits)
    y = product(widened(a), weights)
    return rounded(y if bias is None else np.asarray(y + widened(bias)), a.dtype)


@kernel("DynamicQuantizeLSTM", domain=DOMAIN, grade="exact")
@canonicalised
def dynamic_quantize_lstm(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    p: Array | None,
    w_scale: Array,
    w_zero_point: Array,
    r_scale: Array,
    r_zero_point: Array,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> tuple[Array, ...]:
    """DynamicQuantizeLSTM 1: the LSTM of ONNX, with products by DynamicQuantizeMatMul."""
    size = r.shape[1]
    defaults = ("Sigmoid", "Tanh", "Tanh")
    functions = chosen(activations, activation_alpha, activation_beta, defaults, direction)

    def product_with(weights: Array, scale: Array, zero: Array, d: int) -> Product:
        right, most = prepared(centred(weights[d], zero[d]))

        def multiply(rows: Array) -> Array:
            codes, row_scale, row_zero_point = dynamic_quantize_linear(rows)
            total = integer_product(centred(codes, row_zero_point), right, most)
            return canonical(_scaled(total, row_scale, scale[d], None))

        return multiply

    def cell(d: int) -> Cell:
        step = lstm_step(
            product_with(r, r_scale, r_zero_point, d),
            functions[d],
            clipper(clip),
            None if p is None else p[d].reshape(3, size),
            input_forget,
        )
        bias_w, bias_r = biases(b, d, 4 * size)
        return Cell(bias_w + bias_r, step, product_with(w, w_scale, w_zero_point, d))

    initial = [initial_h, initial_c]
    return run_layer(x, w, initial, sequence_lens, cell, size, direction, layout=0)
