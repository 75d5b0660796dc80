"""Products of 8-bit integers that give floats, or integers of a scale: exact sums.

Domain com.microsoft; version 1 of each operator.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels.dynamic_quantisation import dynamic_product
from foldline.kernels.epilogue import Apply, scaled
from foldline.kernels.integer_products import exact_matmul, row_zero
from foldline.kernels.precision import rounded, widened
from foldline.kernels.quantisation import quantised
from foldline.kernels.registry import Array, Operand, maker

DOMAIN = "com.microsoft"


@maker("MatMulIntegerToFloat", domain=DOMAIN)
def matmul_integer_to_float(
    a: Operand,
    b: Operand,
    a_scale: Operand,
    b_scale: Operand,
    a_zero_point: Operand | None = None,
    b_zero_point: Operand | None = None,
    bias: Operand | None = None,
) -> Callable[..., Array]:
    """MatMulIntegerToFloat: `((A - a_zero_point) @ (B - b_zero_point)) a_scale b_scale + bias`.

    Vectors of `a` have one element for each row, those of `b` one for each column.
    """
    product = exact_matmul(a, b, a_zero_point, b_zero_point)

    def run(
        a: Array,
        b: Array,
        a_scale: Array,
        b_scale: Array,
        a_zero_point: Array | None = None,
        b_zero_point: Array | None = None,
        bias: Array | None = None,
    ) -> Array:
        total = product(a, b, a_zero_point, b_zero_point)
        return rounded(_scaled(total, a_scale, b_scale, bias), a_scale.dtype)

    return run


@maker("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul(
    a: Operand,
    b: Operand,
    b_scale: Operand,
    b_zero_point: Operand | None = None,
    bias: Operand | None = None,
) -> Callable[..., Array]:
    """DynamicQuantizeMatMul: MatMulIntegerToFloat of `a`, quantised as DynamicQuantizeLinear does.

    Vectors of `b` have one element for each column.
    """
    product = dynamic_product(a, b, b_zero_point)

    def run(
        a: Array,
        b: Array,
        b_scale: Array,
        b_zero_point: Array | None = None,
        bias: Array | None = None,
    ) -> Array:
        def finish(scale: Array) -> Apply:
            return scaled(np.asarray(scale * widened(b_scale)), bias)

        return product(a, b, b_zero_point, finish)

    return run


def _scaled(total: Array, a_scale: Array, b_scale: Array, bias: Array | None) -> Array:
    """Sums of products of integers as float32."""
    rows = row_zero(a_scale)
    factor = widened(a_scale if rows is None else rows) * widened(b_scale)
    y = np.multiply(total, factor, dtype=np.float32)
    return np.asarray(y if bias is None else y + widened(bias))


@maker("QGemm", domain=DOMAIN)
def quantised_gemm(
    a: Operand,
    a_scale: Operand,
    a_zero_point: Operand,
    b: Operand,
    b_scale: Operand,
    b_zero_point: Operand,
    c: Operand | None = None,
    y_scale: Operand | None = None,
    y_zero_point: Operand | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Callable[..., Array]:
    """QGemm: `alpha ((A' - a_zero_point) @ (B' - b_zero_point) + C) a_scale b_scale`.

    C is int32, of the scale of the product, and broadcasts to it. The result is float32, or, with
    `y_scale` and `y_zero_point`, quantised to the type of that. Vectors of `b` have one element
    for each column of B'.
    """
    value = b.value.T if transB and b.value is not None else b.value
    product = exact_matmul(
        Operand(a.shape[::-1] if transA else a.shape, a.dtype),
        Operand(b.shape[::-1] if transB else b.shape, b.dtype, value),
        a_zero_point,
        b_zero_point,
    )

    def run(
        a: Array,
        a_scale: Array,
        a_zero_point: Array,
        b: Array,
        b_scale: Array,
        b_zero_point: Array,
        c: Array | None = None,
        y_scale: Array | None = None,
        y_zero_point: Array | None = None,
    ) -> Array:
        left, right = a.T if transA else a, b.T if transB else b
        total = product(left, right, a_zero_point, b_zero_point)
        if c is not None:
            total = total + c
        factor = a_scale * b_scale * np.float32(alpha)
        if y_zero_point is None:
            return np.multiply(total, factor, dtype=np.float32)
        scale = np.ones((), np.float32) if y_scale is None else y_scale
        return quantised(total, factor / scale, y_zero_point)

    return run
