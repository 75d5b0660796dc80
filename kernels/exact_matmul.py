"""MatMul, Gemm and the products of 8-bit integers in exact mode."""

from __future__ import annotations

import numpy as np

from foldline.kernels.exact_bits import canonicalised
from foldline.kernels.exact_conv import centred
from foldline.kernels.exact_products import integer_product, product
from foldline.kernels.exact_quantisation import quantised
from foldline.kernels.integer_products import row_zero
from foldline.kernels.precision import NARROW, widening
from foldline.kernels.quantised_matmul import output_multiplier
from foldline.kernels.registry import Array, kernel


@kernel("MatMul", grade="exact")
@widening
def matmul(a: Array, b: Array) -> Array:
    """MatMul 1/9/13: `product`, of float32 for half types."""
    return product(a, b)


@kernel("Gemm", until=7, grade="exact")
@widening
def gemm_6(
    a: Array,
    b: Array,
    c: Array,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Gemm 1/6: C must have the shape of the result unless `broadcast` is set."""
    shape = (a.shape[1 if transA else 0], b.shape[0 if transB else 1])
    if not broadcast and c.shape != shape:
        raise ValueError(f"C has shape {c.shape}, not {shape}, and broadcast is 0")
    return gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@kernel("Gemm", since=7, grade="exact")
@widening
@canonicalised
def gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Gemm 7/9/11/13: `(A' B') * alpha + C * beta`, each operation rounded; no factor of 1.

    For integers a factor other than 1 is applied in float64 and the result truncated.
    """
    result = _scaled(product(a.T if transA else a, b.T if transB else b), alpha)
    return result if c is None else result + _scaled(c, beta)


def _scaled(array: Array, factor: float) -> Array:
    if factor == 1.0:
        return array
    if array.dtype.kind == "f":
        return array * array.dtype.type(factor)
    return (array * factor).astype(array.dtype)


@kernel("MatMulInteger", grade="exact")
def matmul_integer(
    a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None
) -> Array:
    """MatMulInteger 10: `(A - a_zero_point) @ (B - b_zero_point)` as int32, which wraps."""
    return integer_product(centred(a, row_zero(a_zero_point)), centred(b, b_zero_point))


@kernel("QLinearMatMul", grade="exact")
def qlinear_matmul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    """QLinearMatMul 10/21: `saturate(round((A @ B) a_scale b_scale / y_scale) + y_zero_point)`."""
    if a.dtype in NARROW or b.dtype in NARROW:
        zero = row_zero(a_zero_point)
        left = a.astype(np.float32) - (a_zero_point if zero is None else zero).astype(np.float32)
        total = product(left, b.astype(np.float32) - b_zero_point.astype(np.float32))
    else:
        total = matmul_integer(a, b, a_zero_point, b_zero_point)
    return quantised(total, output_multiplier(a_scale, b_scale, y_scale), y_zero_point)
