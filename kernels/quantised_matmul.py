"""MatMulInteger and QLinearMatMul: products of 8-bit integers, exact for any length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels.integer_products import exact_matmul, row_zero
from foldline.kernels.precision import NARROW
from foldline.kernels.quantisation import quantised
from foldline.kernels.registry import Array, Operand, kernel, maker


@kernel("MatMulInteger")
def matmul_integer_reference(
    a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None
) -> Array:
    """MatMulInteger 10: `(A - a_zero_point) @ (B - b_zero_point)` as int32, which wraps.

    A vector `a_zero_point` has one element for each row, `b_zero_point` one for each column.
    """
    return np.asarray(
        np.matmul(_centred(a, row_zero(a_zero_point)), _centred(b, b_zero_point)), np.int32
    )


@maker("MatMulInteger")
def matmul_integer(
    a: Operand,
    b: Operand,
    a_zero_point: Operand | None = None,
    b_zero_point: Operand | None = None,
) -> Callable[..., Array]:
    """MatMulInteger 10 by float32 products; constant B and zero points make blocks longer."""
    product = exact_matmul(a, b, a_zero_point, b_zero_point)

    def run(
        a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None
    ) -> Array:
        return product(a, b, a_zero_point, b_zero_point)

    return run


@kernel("QLinearMatMul")
def qlinear_matmul_reference(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    """QLinearMatMul 10/21: `saturate(round((A @ B) a_scale b_scale / y_scale) + y_zero_point)`.

    A and B are centred. Integers multiply exactly, float8 in float32. Vectors of `a` have one
    element for each row, those of `b` one for each column.
    """
    product = np.matmul(_centred(a, row_zero(a_zero_point)), _centred(b, b_zero_point))
    multiplier = output_multiplier(a_scale, b_scale, y_scale)
    return quantised(np.asarray(product), multiplier, y_zero_point)


@maker("QLinearMatMul")
def qlinear_matmul(
    a: Operand,
    a_scale: Operand,
    a_zero_point: Operand,
    b: Operand,
    b_scale: Operand,
    b_zero_point: Operand,
    y_scale: Operand,
    y_zero_point: Operand,
) -> Callable[..., Array]:
    """QLinearMatMul 10/21 by float32 products."""
    if a.dtype in NARROW or b.dtype in NARROW:
        return qlinear_matmul_reference
    product = exact_matmul(a, b, a_zero_point, b_zero_point)

    def run(
        a: Array,
        a_scale: Array,
        a_zero_point: Array,
        b: Array,
        b_scale: Array,
        b_zero_point: Array,
        y_scale: Array,
        y_zero_point: Array,
    ) -> Array:
        multiplier = output_multiplier(a_scale, b_scale, y_scale)
        return quantised(product(a, b, a_zero_point, b_zero_point), multiplier, y_zero_point)

    return run


def _centred(x: Array, zero: Array | None) -> Array:
    wide = np.float32 if x.dtype in NARROW else np.int32
    return x.astype(wide) if zero is None else x.astype(wide) - zero.astype(wide)


def output_multiplier(a_scale: Array, b_scale: Array, y_scale: Array) -> Array:
    a_scale, b_scale, y_scale = (s.astype(np.float32) for s in (a_scale, b_scale, y_scale))
    rows = row_zero(a_scale)
    return np.asarray((a_scale if rows is None else rows) * b_scale / y_scale)
