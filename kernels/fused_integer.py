"""Products of 8-bit integers that go on to float32, with a scale and a bias.

    Y = float32((A - a_zero_point) @ (B - b_zero_point)) scale + bias

The sum of products is exact; the conversion, the product with the scale and the sum with the bias
round once each. So the bits are those of MatMulInteger, Cast, Mul and Add.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels import exact_matmul as in_order_matmul
from foldline.kernels.dynamic_quantisation import dynamic_product
from foldline.kernels.epilogue import Apply, scaled
from foldline.kernels.exact_bits import canonical
from foldline.kernels.exact_quantisation import dynamic_quantize_linear as exactly_quantised
from foldline.kernels.integer_products import ExactMatMul, centred, row_zero
from foldline.kernels.quantisation import dynamic_quantize_linear
from foldline.kernels.quantised_matmul import matmul_integer_reference
from foldline.kernels.registry import Array, Operand, kernel, maker

DOMAIN = "foldline"


def scaled_floats(total: Array, scale: Array, bias: Array | None, bias_first: int) -> Array:
    """Integers as float32, scaled and shifted."""
    y = np.asarray(np.multiply(total.astype(np.float32), scale))
    return y if bias is None else np.asarray(bias + y if bias_first else y + bias)


def canonical_floats(total: Array, scale: Array, bias: Array | None) -> Array:
    """The same in exact mode, where of two terms either may be the first."""
    y = canonical(np.asarray(np.multiply(total.astype(np.float32), scale)))
    return y if bias is None else canonical(np.asarray(y + bias))


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
    return scaled_floats(total, scale, bias, bias_first)


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
        return product.floats(left, b, b_zero_point, scaled(scale, bias, bias_first), out)

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
    return canonical_floats(total, scale, bias)


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
    return scaled_floats(total, np.asarray(scale * b_scale), bias, bias_first)


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
    product = dynamic_product(x, b, b_zero_point)

    def run(
        x: Array,
        b: Array,
        b_zero_point: Array | None,
        b_scale: Array,
        bias: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        def finish(scale: Array) -> Apply:
            return scaled(np.asarray(scale * b_scale), bias, bias_first)

        return product(x, b, b_zero_point, finish, out)

    return run


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
    return canonical_floats(total, canonical(np.asarray(scale * b_scale)), bias)
