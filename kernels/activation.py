"""Activation functions: Relu and its relatives, the sigmoid family, Gelu, Shrink.

Half types compute in float32 and are rounded once. The formulas are chosen for the primitives
NumPy is fast at: clip and maximum of two arrays instead of `where`, one exponential each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.error_function import erf_double
from foldline.kernels.gelu import gelu_single
from foldline.kernels.precision import rounded, widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import (
    ATTRIBUTE_RECIPES,
    CLIP,
    GATES,
    RECIPES,
    Recipe,
    bounds,
    clip,
    constant,
    destination,
    mask_like,
    positive_part,
    register_unary,
)


def relu(x: Array, *, out: Array | None = None) -> Array:
    """`Max(x, 0)`, also for integers; NaN stays NaN."""
    return np.asarray(positive_part(x, out))


register_unary("Relu", relu, consumed_inputs=True, recipe=((CLIP, 0, np.inf),), in_single=True)


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
    slope = constant(alpha, x.dtype)
    # Nearly all slopes take no mask, so none takes memory for one.
    return _leaky(x, slope, _pick(slope), out, None)


@kernel("PRelu", since=7)
@widening
def parametric_relu(
    x: Array, slope: Array, *, out: Array | None = None, scratch: Array | None = None
) -> Array:
    """PRelu 7+: `x`, times `slope`, which broadcasts to `x`, where `x` is negative."""
    return _leaky(x, slope, _pick(slope), out, scratch)


@kernel("PRelu", until=7)
@widening
def parametric_relu_before_7(
    x: Array,
    slope: Array,
    *,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
    scratch: Array | None = None,
) -> Array:
    """PRelu 1 and 6: `slope` is one number, or one for each channel (axis 1)."""
    slope = parametric_slope(x, slope)
    return _leaky(x, slope, _pick(slope), out, scratch)


def parametric_slope(x: Array, slope: Array) -> Array:
    """The slope of PRelu below version 7 in a shape that broadcasts to `x`."""
    if slope.size == 1:
        return slope.reshape(())
    return slope.reshape(-1, *(1,) * (x.ndim - 2)) if slope.ndim == 1 else slope


def _pick(slope: Array) -> np.ufunc | None:
    """Which of `x` and `slope * x` is the result, if one ufunc tells: a mask takes 4 times as long.

    With a slope within 0 and 1 the product is the greater one exactly where x is negative, with a
    finite one from 1 on it is the lesser one there, unless integers overflow.
    """
    if ((slope > 0) & (slope <= 1)).all():
        return np.maximum
    is_float = slope.dtype.kind == "f"
    return np.minimum if is_float and ((slope >= 1) & (slope < np.inf)).all() else None


def _leaky(
    x: Array, slope: Array, pick: np.ufunc | None, out: Array | None, scratch: Array | None
) -> Array:
    y = np.multiply(x, slope, out=destination(x, out))
    if pick is not None:
        return np.asarray(pick(x, y, out=y))
    kept = np.less(x, constant(0, x.dtype), out=mask_like(x, scratch))
    np.putmask(y, np.logical_not(kept, out=kept), x)
    return y


@kernel("ThresholdedRelu", inplace=(0,))
@widening
def thresholded_relu(
    x: Array, *, alpha: float = 1.0, out: Array | None = None, scratch: Array | None = None
) -> Array:
    """ThresholdedRelu 10+: `x` where it is greater than `alpha`, else 0 (also for NaN)."""
    kept = np.greater(x, constant(alpha, x.dtype), out=mask_like(x, scratch))
    y = np.positive(x, out=destination(x, out))
    np.putmask(y, np.logical_not(kept, out=kept), constant(0, x.dtype))
    return y


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


def _hard_sigmoid_recipe(alpha: float, beta: float) -> Recipe:
    return (np.multiply, alpha), (np.add, beta), (CLIP, 0, 1)


ATTRIBUTE_RECIPES[hard_sigmoid] = _hard_sigmoid_recipe


@kernel("HardSwish", inplace=(0,))
@widening
def hard_swish(x: Array, *, out: Array | None = None, scratch: Array | None = None) -> Array:
    """HardSwish 14+: `x` times HardSigmoid with alpha 1/6 and beta 1/2; NaN for -inf."""
    y = hard_sigmoid(x, alpha=1 / 6, beta=0.5, out=scratch)
    return np.multiply(x, y, out=destination(x, out))


GATES[hard_swish] = _hard_sigmoid_recipe(1 / 6, 0.5), np.multiply


@kernel("Softplus", inplace=(0,))
@widening
def softplus(x: Array, *, out: Array | None = None, scratch: Array | None = None) -> Array:
    """Softplus 1+: `log(exp(x) + 1)`, written as `Max(x, 0) + log1p(exp(-|x|))`."""
    positive = positive_part(x, scratch)
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
def mish(x: Array, *, out: Array | None = None, scratch: Array | None = None) -> Array:
    """Mish 18+: `x * tanh(softplus(x))`, with its limit -0 for -inf.

    With `n = exp(x) (exp(x) + 2)`, the hyperbolic tangent is `n / (n + 2)`, which is 1 from 20 on
    and 0 below -1000 in float64 already.
    """
    kind = x.dtype
    y = clip(x, bounds(kind)[0], constant(20, kind), destination(x, out))
    np.exp(y, out=y)
    work = np.add(y, constant(2, kind), out=destination(x, scratch))
    np.multiply(y, work, out=y)
    np.add(y, constant(2, kind), out=work)
    np.divide(y, work, out=y)
    return np.multiply(y, clip(x, constant(-1000, kind), bounds(kind)[1], work), out=y)


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
def gelu(
    x: Array,
    *,
    approximate: str = "none",
    out: Array | None = None,
    scratch: Array | None = None,
) -> Array:
    """Gelu 20+: `x / 2 (1 + erf(x / sqrt 2))`, or its `approximate="tanh"` form; NaN for -inf.

    ValueError when `approximate` is neither "none" nor "tanh".
    """
    if approximate == "none":
        if x.dtype == np.float32:
            return gelu_single(x, out, scratch)
        y = rounded(erf_double(x * constant(math.sqrt(0.5), x.dtype)), x.dtype, out)
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
