"""Operators between DequantizeLinear and QuantizeLinear, on the codes themselves.

    Y = QuantizeLinear(operator(DequantizeLinear(X)))

What hangs on one code only is looked up: the table holds what the three operators make of each of
the 256 codes, so the bits are theirs. Codes are of 8 bits, and tensors have one scale each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels import exact_quantisation as exactly
from foldline.kernels.contrib_integer_matmul import quantised_gemm
from foldline.kernels.contrib_quantised import qlinear_add, qlinear_mul
from foldline.kernels.epilogue import activation_of, exactly_activated
from foldline.kernels.exact_bits import canonical
from foldline.kernels.quantisation import dequantize_linear, quantize_linear
from foldline.kernels.registry import (
    GRADES,
    LATEST,
    Array,
    Operand,
    compute,
    find_kernel,
    kernel,
    maker,
)

DOMAIN = "foldline"

LEAST_ROW = 512
"""So many elements a channel has at least where its table is worth a call of its own."""


def looked_up(x: Array, table: bytes) -> Array:
    """The entries of a table for codes, in their type; entry `i` is of the code whose byte is i."""
    codes = np.ascontiguousarray(x).view(np.uint8).reshape(-1).data
    return np.frombuffer(bytearray(codes).translate(table), x.dtype).reshape(x.shape)


def all_codes(dtype: np.dtype[np.generic]) -> Array:
    """All 256 codes in the order of their bytes."""
    return np.arange(256, dtype=np.uint8).view(dtype)


@maker("QLinearActivation", domain=DOMAIN)
def qlinear_activation(
    x: Operand,
    x_scale: Operand,
    x_zero_point: Operand | None,
    y_scale: Operand,
    y_zero_point: Operand,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
) -> Callable[..., Array]:
    """QLinearActivation: by a table, made once where all but X is constant."""
    codes = all_codes(x.dtype)

    def table_of(*parameters: Any) -> bytes:
        return qlinear_activation_reference(
            codes, *parameters, activation=activation, activation_params=activation_params
        ).tobytes()

    known = _known((x_scale, x_zero_point, y_scale, y_zero_point))
    kept = None if known is None else table_of(*known)

    def run(x: Array, *parameters: Array | None) -> Array:
        return looked_up(x, table_of(*parameters) if kept is None else kept)

    return run


def _known(operands: Sequence[Operand | None]) -> list[Any] | None:
    """The values of operands, if all that are given are constant."""
    if any(operand is not None and operand.value is None for operand in operands):
        return None
    return [None if operand is None else operand.value for operand in operands]


@kernel("QLinearActivation", domain=DOMAIN)
def qlinear_activation_reference(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
) -> Array:
    """QLinearActivation: the operators one by one."""
    values = dequantize_linear(x, x_scale, x_zero_point)
    if activation:
        applied = activation_of(activation, activation_params, values.dtype)
        values = applied.run(values, out=np.empty_like(values))
    return quantize_linear(values, y_scale, y_zero_point)


@kernel("QLinearActivation", domain=DOMAIN, grade="exact")
def exact_qlinear_activation(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
) -> Array:
    """QLinearActivation with exact kernels, by a table."""
    values = exactly.dequantize_linear(all_codes(x.dtype), x_scale, x_zero_point)
    values = exactly_activated(values, activation, activation_params)
    return looked_up(x, exactly.quantize_linear(values, y_scale, y_zero_point).tobytes())


@kernel("QLinearBatchNormalization", domain=DOMAIN)
def qlinear_batch_normalization_reference(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """QLinearBatchNormalization: X `(batch, channels, …)`, the operators one by one."""
    values = dequantize_linear(x, x_scale, x_zero_point)
    normal = _normalised(values, (scale, bias, mean, variance), epsilon, "fast")
    return quantize_linear(normal, y_scale, y_zero_point)


@maker("QLinearBatchNormalization", domain=DOMAIN)
def qlinear_batch_normalization(
    x: Operand,
    x_scale: Operand,
    x_zero_point: Operand | None,
    y_scale: Operand,
    y_zero_point: Operand,
    scale: Operand,
    bias: Operand,
    mean: Operand,
    variance: Operand,
    *,
    epsilon: float = 1e-5,
) -> Callable[..., Array]:
    """QLinearBatchNormalization: by a table for each channel, where all but X is constant."""
    parameters = (x_scale, x_zero_point, y_scale, y_zero_point, scale, bias, mean, variance)
    known = _known(parameters)
    if known is None or len(x.shape) < 2:
        return partial(qlinear_batch_normalization_reference, epsilon=epsilon)
    codes = np.repeat(all_codes(x.dtype)[:, None], x.shape[1], axis=1)
    tables = qlinear_batch_normalization_reference(codes, *known, epsilon=epsilon)
    look_up = _by_channel(x, np.ascontiguousarray(tables.T))

    def run(x: Array, *_: Array | None) -> Array:
        return look_up(x)

    return run


@kernel("QLinearBatchNormalization", domain=DOMAIN, grade="exact")
def exact_qlinear_batch_normalization(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """QLinearBatchNormalization with exact kernels, one by one."""
    values = exactly.dequantize_linear(x, x_scale, x_zero_point)
    normal = _normalised(values, (scale, bias, mean, variance), epsilon, "exact")
    return exactly.quantize_linear(normal, y_scale, y_zero_point)


def _normalised(x: Array, parameters: Sequence[Array], epsilon: float, mode: str) -> Array:
    entry = find_kernel("", "BatchNormalization", LATEST - 1, GRADES[mode])
    assert entry is not None
    return np.asarray(compute(entry, (x, *parameters), epsilon=epsilon, training_mode=0))


def _by_channel(x: Operand, tables: Array) -> Callable[[Array], Array]:
    """The way to look codes up, in a table `(channels, 256)` for each index of axis 1."""
    channels = len(tables)
    seen = (x.shape[0], channels, math.prod(x.shape[2:]))
    if seen[2] < LEAST_ROW:
        flat, first = tables.reshape(-1), np.arange(0, 256 * channels, 256)[:, None]

        def from_one(x: Array) -> Array:
            places = np.add(x.view(np.uint8).reshape(seen), first)
            return flat.take(places).reshape(x.shape)

        return from_one
    rows = [table.tobytes() for table in tables] * x.shape[0]
    size = seen[2]

    def from_each(x: Array) -> Array:
        codes = x.tobytes()
        parts = (
            codes[start : start + size].translate(table)
            for start, table in zip(range(0, len(codes), size), rows, strict=True)
        )
        return np.frombuffer(bytearray().join(parts), x.dtype).reshape(x.shape)

    return from_each


@maker("QLinearGemm", domain=DOMAIN)
def qlinear_gemm(
    a: Operand,
    a_scale: Operand,
    a_zero_point: Operand,
    b: Operand,
    b_scale: Operand,
    b_zero_point: Operand,
    y_scale: Operand,
    y_zero_point: Operand,
    c: Operand,
    bias: Operand,
    *,
    transB: int = 0,
) -> Callable[..., Array]:
    """QLinearGemm: the quantised `A B' + C`; C is int32, of the scale of the product."""
    factors = (a, a_scale, a_zero_point, b, b_scale, b_zero_point)
    multiply = quantised_gemm(*factors, c, y_scale, y_zero_point, transB=transB)

    def run(*arrays: Array) -> Array:
        y_scale, y_zero_point, c, _ = arrays[6:]
        return multiply(*arrays[:6], c, y_scale, y_zero_point)

    return run


def _exact_sum(a: Array, b: Array) -> Array:
    return canonical(np.asarray(a + b))


def _exact_product(a: Array, b: Array) -> Array:
    return canonical(np.asarray(a * b))


def _exactly(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """A function of two arrays between exact kernels."""

    def run(
        a: Array,
        a_scale: Array,
        a_zero_point: Array | None,
        b: Array,
        b_scale: Array,
        b_zero_point: Array | None,
        y_scale: Array,
        y_zero_point: Array,
    ) -> Array:
        left = exactly.dequantize_linear(a, a_scale, a_zero_point)
        right = exactly.dequantize_linear(b, b_scale, b_zero_point)
        return exactly.quantize_linear(function(left, right), y_scale, y_zero_point)

    return run


for _op_type, _function, _exact in (
    ("QLinearAdd", qlinear_add, _exact_sum),
    ("QLinearMul", qlinear_mul, _exact_product),
):
    kernel(_op_type, domain=DOMAIN)(_function)
    kernel(_op_type, domain=DOMAIN, grade="exact")(_exactly(_exact))
