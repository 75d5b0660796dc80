"""Activation functions: Relu and its relatives, the sigmoid family, Gelu, Shrink.

Half types compute in float32 and are rounded once. The formulas are chosen for the primitives
NumPy is fast at: clip and maximum of two arrays instead of `where`, one exponential each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.error_function import erf
from foldline.kernels.precision import rounded, widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import (
    CLIP,
    RECIPES,
    bounds,
    clip,
    constant,
    destination,
    positive_part,
    register_unary,
)


def relu(x: Array, *, out: Array | None = None) -> Array:
    """`Max(x, 0)`, also for integers; NaN stays NaN."""
    return np.asarray(positive_part(x, out))


register_unary("Relu", relu, consumed_inputs=True, recipe=((CLIP, 0, np.inf),))


@kernel("LeakyRelu")
@widening
def leaky_relu(
    x: Array,
    *,
    alpha: float = 0.01,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
) -> Array:
    """LeakyRelu 1+: `x`, times `alpha` where `x` is negative."""
    return _leaky(x, constant(alpha, x.dtype), 0 < alpha <= 1, out)


@kernel("PRelu", since=7)
@widening
def parametric_relu(x: Array, slope: Array, *, out: Array | None = None) -> Array:
    """PRelu 7+: `x`, times `slope`, which broadcasts to `x`, where `x` is negative."""
    return _leaky(x, slope, _all_shrink(slope), out)


@kernel("PRelu", until=7)
@widening
def parametric_relu_before_7(
    x: Array,
    slope: Array,
    *,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
) -> Array:
    """PRelu 1 and 6: `slope` is one number, or one for each channel (axis 1)."""
    slope = parametric_slope(x, slope)
    return _leaky(x, slope, _all_shrink(slope), out)


def parametric_slope(x: Array, slope: Array) -> Array:
    """The slope of PRelu below version 7 in a shape that broadcasts to `x`."""
    if slope.size == 1:
        return slope.reshape(())
    return slope.reshape(-1, *(1,) * (x.ndim - 2)) if slope.ndim == 1 else slope


def _all_shrink(slope: Array) -> bool:
    return bool(((slope > 0) & (slope <= 1)).all())


def _leaky(x: Array, slope: Array, all_shrink: bool, out: Array | None) -> Array:
    if all_shrink:
        # Each slope is within 0 and 1, so slope * x exceeds x exactly where x is negative.
        y = np.multiply(x, slope, out=destination(x, out))
        return np.maximum(x, y, out=y)
    return rounded(np.where(x < 0, x * slope, x), x.dtype, out)


@kernel("ThresholdedRelu", inplace=(0,))
@widening
def thresholded_relu(x: Array, *, alpha: float = 1.0, out: Array | None = None) -> Array:
    """ThresholdedRelu 10+: `x` where it is greater than `alpha`, else 0 (also for NaN)."""
    kept = x > constant(alpha, x.dtype)
    return rounded(np.where(kept, x, constant(0, x.dtype)), x.dtype, out)


@kernel("Elu", inplace=(0,))
@widening
def elu(
    x: Array,
    *,
    alpha: float = 1.0,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
) -> Array:
    """Elu 1+: `x`, or `alpha * (exp(x) - 1)` where `x` is negative."""
    return _exponential_linear(x, alpha, 1.0, out)


@kernel("Celu", inplace=(0,))
@widening
def celu(x: Array, *, alpha: float = 1.0, out: Array | None = None) -> Array:
    """Celu 12+: `Max(x, 0) + Min(0, alpha * (exp(x / alpha) - 1))`."""
    return _exponential_linear(x, alpha, alpha, out)


@kernel("Selu", inplace=(0,))
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
    y = _exponential_linear(x, alpha, 1.0, out)
    return np.multiply(y, constant(gamma, x.dtype), out=y)


def _exponential_linear(x: Array, alpha: float, scale: float, out: Array | None) -> Array:
    # The sum is exact: one of the two parts is zero.
    positive = positive_part(x)
    y = clip(x, bounds(x.dtype)[0], constant(0, x.dtype), destination(x, out))
    if scale != 1:
        np.divide(y, constant(scale, x.dtype), out=y)
    np.expm1(y, out=y)
    np.multiply(y, constant(alpha, x.dtype), out=y)
    return np.add(y, positive, out=y)


@kernel("Sigmoid", inplace=(0,))
@widening
def sigmoid(
    x: Array, *, consumed_inputs: Sequence[int] | None = None, out: Array | None = None
) -> Array:
    """Sigmoid 1+: `1 / (1 + exp(-x))`."""
    y = np.negative(x, out=destination(x, out))
    return np.reciprocal(_one_plus_exp(y), out=y)


RECIPES[sigmoid] = ((np.negative,), (np.exp,), (np.add, 1), (np.reciprocal,))


@kernel("HardSigmoid", inplace=(0,))
@widening
def hard_sigmoid(
    x: Array,
    *,
    alpha: float = 0.2,
    beta: float = 0.5,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
) -> Array:
    """HardSigmoid 1+: `alpha * x + beta` within 0 and 1."""
    y = np.multiply(x, constant(alpha, x.dtype), out=destination(x, out))
    np.add(y, constant(beta, x.dtype), out=y)
    return clip(y, constant(0, x.dtype), constant(1, x.dtype), y)


@kernel("HardSwish", inplace=(0,))
@widening
def hard_swish(x: Array, *, out: Array | None = None) -> Array:
    """HardSwish 14+: `x` times HardSigmoid with alpha 1/6 and beta 1/2; NaN for -inf."""
    y = hard_sigmoid(x, alpha=1 / 6, beta=0.5)
    return np.multiply(x, y, out=y if out is None else out)


@kernel("Softplus", inplace=(0,))
@widening
def softplus(x: Array, *, out: Array | None = None) -> Array:
    """Softplus 1+: `log(exp(x) + 1)`, written as `Max(x, 0) + log1p(exp(-|x|))`."""
    positive = positive_part(x)
    y = np.abs(x, out=destination(x, out))
    np.negative(y, out=y)
    np.exp(y, out=y)
    np.log1p(y, out=y)
    return np.add(y, positive, out=y)


@kernel("Softsign")
@widening
def softsign(x: Array, *, out: Array | None = None) -> Array:
    """Softsign 1+: `x / (1 + |x|)`; NaN for the infinities."""
    y = np.abs(x, out=destination(x, out))
    np.add(y, constant(1, x.dtype), out=y)
    return np.divide(x, y, out=y)


@kernel("Mish")
@widening
def mish(x: Array, *, out: Array | None = None) -> Array:
    """Mish 18+: `x * tanh(softplus(x))`, with its limit -0 for -inf.

    With `n = exp(x) (exp(x) + 2)`, the hyperbolic tangent is `n / (n + 2)`, which is 1 from 20 on
    and 0 below -1000 in float64 already.
    """
    kind = x.dtype
    y = clip(x, bounds(kind)[0], constant(20, kind), destination(x, out))
    np.exp(y, out=y)
    np.multiply(y, y + constant(2, kind), out=y)
    np.divide(y, y + constant(2, kind), out=y)
    return np.multiply(y, clip(x, constant(-1000, kind), bounds(kind)[1]), out=y)


@kernel("Swish")
@widening
def swish(x: Array, *, alpha: float = 1.0, out: Array | None = None) -> Array:
    """Swish 24+: `x * Sigmoid(alpha * x)`, written as one division; NaN for -inf."""
    y = np.multiply(x, constant(-alpha, x.dtype), out=destination(x, out))
    return np.divide(x, _one_plus_exp(y), out=y)


@kernel("SwiGLU")
@widening
def swiglu(a: Array, b: Array, *, alpha: float = 1.0, out: Array | None = None) -> Array:
    """SwiGLU 28+: `Swish(a) * b` of two arrays of one shape."""
    y = swish(a, alpha=alpha, out=out)
    return np.multiply(y, b, out=y)


@kernel("Gelu")
@widening
def gelu(x: Array, *, approximate: str = "none", out: Array | None = None) -> Array:
    """Gelu 20+: `x / 2 (1 + erf(x / sqrt 2))`, or its `approximate="tanh"` form; NaN for -inf.

    ValueError when `approximate` is neither "none" nor "tanh".
    """
    if approximate == "none":
        y = np.multiply(x, constant(math.sqrt(0.5), x.dtype), out=destination(x, out))
        erf(y, out=y)
        np.add(y, constant(1, x.dtype), out=y)
        np.multiply(y, constant(0.5, x.dtype), out=y)
        return np.multiply(x, y, out=y)
    if approximate != "tanh":
        raise ValueError(f"approximate is {approximate!r}, expected 'none' or 'tanh'")
    # (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
    slope = -2 * math.sqrt(2 / math.pi)
    y = np.square(x, out=destination(x, out))
    np.multiply(y, constant(slope * 0.044715, x.dtype), out=y)
    np.add(y, constant(slope, x.dtype), out=y)
    np.multiply(y, x, out=y)
    return np.divide(x, _one_plus_exp(y), out=y)


def _one_plus_exp(y: Array) -> Array:
    """`1 + exp(y)`, written over `y`."""
    np.exp(y, out=y)
    return np.add(y, constant(1, y.dtype), out=y)


@kernel("Shrink", inplace=(0,))
def shrink(x: Array, *, lambd: float = 0.5, bias: float = 0.0, out: Array | None = None) -> Array:
    """Shrink 9+: `x + bias` below `-lambd`, `x - bias` above `lambd`, else 0 (also for NaN).

    Integers stay exact when `bias` is integral, else the sum is truncated toward zero.
    """
    lower, upper = (x < -lambd), (x > lambd)
    is_exact = x.dtype.kind not in "iu" or float(bias).is_integer()
    shift = constant(bias, x.dtype if is_exact else np.dtype(np.float64))
    result = np.where(lower, x + shift, np.where(upper, x - shift, 0))
    return rounded(result, x.dtype, out)
