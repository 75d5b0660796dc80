"""The transcendental elementwise operators in exact mode: Exp … Atanh, Erf, Pow, the activations.

An operator is one formula, computed in float64 and rounded once: to float32, and from there to a
half type where the data are of one. Of float64 data, the steps are rounded as they stand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels import exact_functions as functions
from foldline.kernels.exact_arithmetic import hard_swish
from foldline.kernels.exact_bits import canonical
from foldline.kernels.exact_cast import settled
from foldline.kernels.exact_error import erf_double, erf_single
from foldline.kernels.exact_exponential import (
    exp_double,
    exp_single,
    expm1_double,
    expm1_single,
)
from foldline.kernels.exact_steps import Elementwise, Floats
from foldline.kernels.precision import rounded, widened, widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import register_binary, register_binary_before_7, register_unary

Core = Callable[[Floats], Floats]
CONTRIB = "com.microsoft"
FUSED = "foldline"
_NO_BIAS = -0.0
"""What leaves zeros of either sign as they are when it is added."""

for _op_type, _function, _has_consumed_inputs in (
    ("Exp", functions.EXP, True),
    ("Log", functions.LOG, True),
    ("Tanh", functions.TANH, True),
    ("Sigmoid", functions.SIGMOID, True),
    ("Softplus", functions.SOFTPLUS, False),
    ("Sin", functions.SIN, False),
    ("Cos", functions.COS, False),
    ("Tan", functions.TAN, False),
    ("Asin", functions.ASIN, False),
    ("Acos", functions.ACOS, False),
    ("Atan", functions.ATAN, False),
    ("Sinh", functions.SINH, False),
    ("Cosh", functions.COSH, False),
    ("Asinh", functions.ASINH, False),
    ("Acosh", functions.ACOSH, False),
    ("Atanh", functions.ATANH, False),
):
    register_unary(
        _op_type, widening(_function), consumed_inputs=_has_consumed_inputs, grade="exact"
    )


@kernel("Erf", inplace=(0,), grade="exact")
def erf(x: Array, *, out: Array | None = None) -> Array:
    """Erf 9+ in the dtype of `x`; integers (9..12) are truncated."""
    if x.dtype.kind in "iu":
        return rounded(functions.ERF(x.astype(np.float64)), x.dtype, out)
    return rounded(functions.ERF(widened(x)), x.dtype, out)


def power(x: Array, y: Array, *, out: Array | None = None) -> Array:
    """`x ** y` in the dtype of `x`; squares and cubes are products, as fast mode has them.

    Integers to integral powers are exact modulo 2^bits; a negative power of an integer is the
    reciprocal truncated toward zero (0 to a negative power, which is infinite, gives 0).
    """
    if x.dtype.kind in "iu":
        return rounded(_power_of_integer(x, y), x.dtype, out)
    base = widened(x)
    exponent = y.astype(base.dtype) if y.dtype.kind in "iu" else widened(y)
    common = np.result_type(base, exponent)
    base, exponent = base.astype(common, copy=False), exponent.astype(common, copy=False)
    if exponent.size == 1 and exponent.ndim <= base.ndim and exponent.item() in (2, 3):
        return rounded(canonical(_product(base, exponent.item())), x.dtype, out)
    result = functions.POWER(base, exponent)
    for count in (2, 3):
        chosen = np.asarray(np.equal(exponent, count) & np.equal(base, base))
        if chosen.any():
            np.copyto(result, _product(base, count), where=chosen)
    return rounded(result, x.dtype, out)


def _product(x: Array, count: float) -> Array:
    """The product of two factors `x`, or of three."""
    square = x * x
    return np.asarray(square if count == 2 else square * x)


def _power_of_integer(x: Array, y: Array) -> Array:
    if y.dtype.kind not in "iu":
        exponent = widened(y)
        if not np.all(np.equal(exponent, np.rint(exponent))):
            result = functions.POWER(x.astype(np.float64), exponent.astype(np.float64))
            return settled(result, x.dtype)
        # What is greater is even too.
        y = settled(np.minimum(exponent, 2.0**62), np.dtype(np.int64))
    result = _repeated_product(x, np.where(y > 0, y, np.zeros_like(y)))
    # The reciprocal of an integer truncates to 0, but those of 1 and -1 are themselves.
    unit = np.where(np.abs(x) == 1, np.where((y & 1) == 0, 1, x), 0)
    return np.where(y < 0, unit, result)


def _repeated_product(x: Array, count: Array) -> Array:
    """The product of `count` factors `x`, modulo 2^bits, by squaring."""
    shape = np.broadcast_shapes(x.shape, count.shape)
    result, factor = np.ones(shape, x.dtype), x.copy()
    while np.any(count):
        np.multiply(result, factor, out=result, where=(count & 1) == 1)
        factor = np.asarray(factor * factor)
        count = np.asarray(count >> 1)
    return result


register_binary("Pow", power, since=7, grade="exact")
register_binary_before_7("Pow", power, grade="exact")


def _exponential_linear(
    x: Floats, *, expm1: Core, alpha: float, scale: float = 1.0, gamma: float = 1.0
) -> Floats:
    return np.where(x < 0, expm1(x / scale) * alpha, x) * gamma


_ELU = Elementwise(
    partial(_exponential_linear, expm1=expm1_single),
    partial(_exponential_linear, expm1=expm1_double),
)


@kernel("Elu", inplace=(0,), grade="exact")
@widening
def elu(
    x: Array,
    *,
    alpha: float = 1.0,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
) -> Array:
    """Elu 1+: `x`, or `alpha * (exp(x) - 1)` where `x` is negative."""
    return _ELU(x, alpha=alpha, out=out)


@kernel("Celu", inplace=(0,), grade="exact")
@widening
def celu(x: Array, *, alpha: float = 1.0, out: Array | None = None) -> Array:
    """Celu 12+: `x`, or `alpha * (exp(x / alpha) - 1)` where `x` is negative."""
    return _ELU(x, alpha=alpha, scale=alpha, out=out)


@kernel("Selu", inplace=(0,), grade="exact")
@widening
def selu(
    x: Array,
    *,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
) -> Array:
    """Selu 1+: `gamma` times Elu (the schema of version 1 has other defaults)."""
    return _ELU(x, alpha=alpha, gamma=gamma, out=out)


def _mish(x: Floats, *, exp: Core) -> Floats:
    power = exp(np.minimum(x, 20.0))
    curve = power * (power + 2.0)
    return np.maximum(x, -1000.0) * (curve / (curve + 2.0))


_MISH = Elementwise(partial(_mish, exp=exp_single), partial(_mish, exp=exp_double))


@kernel("Mish", inplace=(0,), grade="exact")
@widening
def mish(x: Array, *, out: Array | None = None) -> Array:
    """Mish 18+: `x * tanh(softplus(x))`, with its limit -0 for -inf."""
    return _MISH(x, out=out)


def _swish(x: Floats, factor: Any = 1.0, *, exp: Core, alpha: float) -> Floats:
    return x / (exp(x * -alpha) + 1.0) * factor


_SWISH = Elementwise(partial(_swish, exp=exp_single), partial(_swish, exp=exp_double))


@kernel("Swish", inplace=(0,), grade="exact")
@widening
def swish(x: Array, *, alpha: float = 1.0, out: Array | None = None) -> Array:
    """Swish 24+: `x * Sigmoid(alpha * x)`; NaN for -inf."""
    return _SWISH(x, alpha=alpha, out=out)


@kernel("SwiGLU", inplace=(0, 1), grade="exact")
@widening
def swiglu(a: Array, b: Array, *, alpha: float = 1.0, out: Array | None = None) -> Array:
    """SwiGLU 28+: `Swish(a) * b` of two arrays of one shape."""
    return _SWISH(a, b, alpha=alpha, out=out)


def _gelu(x: Floats, bias: Any = _NO_BIAS, *, erf: Core) -> Floats:
    total = x + bias
    return total * 0.5 * (erf(total * math.sqrt(0.5)) + 1.0)


def _gelu_by_tanh(x: Floats, bias: Any = _NO_BIAS, *, exp: Core) -> Floats:
    # (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
    total = x + bias
    inner = (total * total * 0.044715 + 1.0) * total
    return total / (exp(inner * (-2.0 * math.sqrt(2 / math.pi))) + 1.0)


_GELUS = {
    "none": Elementwise(partial(_gelu, erf=erf_single), partial(_gelu, erf=erf_double)),
    "tanh": Elementwise(
        partial(_gelu_by_tanh, exp=exp_single), partial(_gelu_by_tanh, exp=exp_double)
    ),
}


@kernel("Gelu", inplace=(0,), grade="exact")
@widening
def gelu(x: Array, *, approximate: str = "none", out: Array | None = None) -> Array:
    """Gelu 20+: `x / 2 (1 + erf(x / sqrt 2))`, or its `approximate="tanh"` form; NaN for -inf.

    ValueError when `approximate` is neither "none" nor "tanh".
    """
    if approximate not in _GELUS:
        raise ValueError(f"approximate is {approximate!r}, expected 'none' or 'tanh'")
    return _GELUS[approximate](x, out=out)


@kernel("Gelu", domain=CONTRIB, inplace=(0,), grade="exact")
@widening
def contrib_gelu(x: Array, *, out: Array | None = None) -> Array:
    """Gelu of com.microsoft: Gelu 20 of ONNX without its other form."""
    return _GELUS["none"](x, out=out)


@kernel("BiasGelu", domain=CONTRIB, grade="exact")
@widening
def bias_gelu(a: Array, b: Array) -> Array:
    """BiasGelu of com.microsoft: Gelu of `a + b`, where `b` is a vector for the last axis."""
    return _GELUS["none"](a, b)


@kernel("FastGelu", domain=CONTRIB, grade="exact")
@widening
def fast_gelu(x: Array, bias: Array | None = None) -> Array:
    """FastGelu of com.microsoft: the form of Gelu with tanh, of `x + bias`."""
    return _GELUS["tanh"](x) if bias is None else _GELUS["tanh"](x, bias)


@kernel("QuickGelu", domain=CONTRIB, inplace=(0,), grade="exact")
@widening
def quick_gelu(x: Array, *, alpha: float = 1.702, out: Array | None = None) -> Array:
    """QuickGelu of com.microsoft: `x * Sigmoid(alpha * x)`; NaN for -inf."""
    return _SWISH(x, alpha=alpha, out=out)


# What fusion forms for models of earlier versions is computed alike.
for _op_type, _kernel in (
    ("Gelu", gelu),
    ("HardSwish", hard_swish),
    ("Mish", mish),
    ("Swish", swish),
):
    kernel(_op_type, domain=FUSED, grade="exact")(_kernel)
