"""Elementwise arithmetic in exact mode: the operations of IEEE 754 and what is made of a few.

Half types compute in float32 and are rounded once. Steps are rounded in the order they stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from foldline.kernels.activation import parametric_slope, shrink
from foldline.kernels.arithmetic import divide, modulo
from foldline.kernels.cumulative import cum_prod, cum_sum
from foldline.kernels.exact_bits import canonical, canonicalised, maximum, minimum
from foldline.kernels.generation import range_
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import (
    constant,
    register_binary,
    register_binary_before_7,
    register_unary,
)

for _op_type, _function, _has_consumed_inputs in (
    ("Abs", np.absolute, True),
    ("Neg", np.negative, True),
    ("Sign", np.sign, False),
    ("Ceil", np.ceil, True),
    ("Floor", np.floor, True),
    ("Round", np.rint, False),
    ("Sqrt", np.sqrt, True),
    ("Reciprocal", np.reciprocal, True),
):
    register_unary(
        _op_type,
        canonicalised(_function),
        consumed_inputs=_has_consumed_inputs,
        grade="exact",
    )

for _op_type, _function in (
    ("Add", np.add),
    ("Sub", np.subtract),
    ("Mul", np.multiply),
    ("Div", divide),
):
    _exact = canonicalised(_function)
    register_binary(_op_type, _exact, since=7, grade="exact")
    register_binary_before_7(_op_type, _exact, consumed_inputs=True, grade="exact")

kernel("Mod", inplace=(0, 1), grade="exact")(canonicalised(modulo))
kernel("Range", grade="exact")(canonicalised(range_))
kernel("CumSum", grade="exact")(canonicalised(cum_sum))
kernel("CumProd", grade="exact")(canonicalised(cum_prod))
kernel("Shrink", inplace=(0,), grade="exact")(canonicalised(shrink))


@kernel("Clip", since=11, grade="exact")
def clip_inputs(x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Clip 11+: `Min(max, Max(min, x))`; a copy where there is no bound."""
    if low is None and high is None:
        return x.copy()
    bounded = x if low is None else maximum(x, low.reshape(()))
    return bounded if high is None else minimum(bounded, high.reshape(()))


@kernel("Clip", until=11, grade="exact")
def clip_attributes(
    x: Array,
    *,
    min: float | None = None,
    max: float | None = None,
    consumed_inputs: Sequence[int] | None = None,
) -> Array:
    """Clip 1 and 6: the bounds are attributes."""
    low = None if min is None else np.array(min).astype(x.dtype)
    high = None if max is None else np.array(max).astype(x.dtype)
    return clip_inputs(x, low, high)


@kernel("Max", grade="exact")
def maximum_of_all(*arrays: Array, consumed_inputs: Sequence[int] | None = None) -> Array:
    """Max 1+ of any number of broadcast arrays: NaN above all, +0 above -0."""
    return _combined(maximum, arrays)


@kernel("Min", grade="exact")
def minimum_of_all(*arrays: Array, consumed_inputs: Sequence[int] | None = None) -> Array:
    """Min 1+ of any number of broadcast arrays: NaN below all, -0 below +0."""
    return _combined(minimum, arrays)


@kernel("Sum", grade="exact")
@widening
def add_all(*arrays: Array, consumed_inputs: Sequence[int] | None = None) -> Array:
    """Sum 1+ of any number of broadcast arrays, from left to right."""
    return _combined(np.add, arrays)


@kernel("Mean", grade="exact")
@widening
def mean(*arrays: Array, consumed_inputs: Sequence[int] | None = None) -> Array:
    """Mean 1+ of any number of broadcast arrays: their sum divided by their number."""
    total = _combined(np.add, arrays)
    return total if len(arrays) == 1 else canonical(np.asarray(np.divide(total, len(arrays))))


def _combined(function: Callable[..., Any], arrays: Sequence[Array]) -> Array:
    """From left to right; one array is copied as it is."""
    if len(arrays) == 1:
        return arrays[0].copy()
    return canonical(np.asarray(reduce(function, arrays)))


@kernel("Relu", grade="exact")
def relu(x: Array, *, consumed_inputs: Sequence[int] | None = None) -> Array:
    """Relu: `Max(x, 0)`, so that -0 becomes 0; NaN stays NaN."""
    return maximum(x, constant(0, x.dtype))


@kernel("LeakyRelu", grade="exact")
@canonicalised
@widening
def leaky_relu(
    x: Array, *, alpha: float = 0.01, consumed_inputs: Sequence[int] | None = None
) -> Array:
    """LeakyRelu 1+: `x`, times `alpha` where `x` is negative."""
    return np.where(x < 0, x * constant(alpha, x.dtype), x)


@kernel("PRelu", since=7, grade="exact")
@canonicalised
@widening
def parametric_relu(x: Array, slope: Array) -> Array:
    """PRelu 7+: `x`, times `slope`, which broadcasts to `x`, where `x` is negative."""
    return np.where(x < 0, x * slope, x)


@kernel("PRelu", until=7, grade="exact")
@canonicalised
@widening
def parametric_relu_before_7(
    x: Array, slope: Array, *, consumed_inputs: Sequence[int] | None = None
) -> Array:
    """PRelu 1 and 6: `slope` is one number, or one for each channel (axis 1)."""
    return np.where(x < 0, x * parametric_slope(x, slope), x)


@kernel("ThresholdedRelu", grade="exact")
@widening
def thresholded_relu(x: Array, *, alpha: float = 1.0) -> Array:
    """ThresholdedRelu 10+: `x` where it is greater than `alpha`, else 0 (also for NaN)."""
    return np.where(x > constant(alpha, x.dtype), x, constant(0, x.dtype))


@kernel("HardSigmoid", grade="exact")
@canonicalised
@widening
def hard_sigmoid(
    x: Array,
    *,
    alpha: float = 0.2,
    beta: float = 0.5,
    consumed_inputs: Sequence[int] | None = None,
) -> Array:
    """HardSigmoid 1+: `alpha * x + beta` within 0 and 1."""
    y = np.asarray(x * constant(alpha, x.dtype) + constant(beta, x.dtype))
    return minimum(maximum(y, constant(0, x.dtype)), constant(1, x.dtype))


@kernel("HardSwish", grade="exact")
@canonicalised
@widening
def hard_swish(x: Array) -> Array:
    """HardSwish 14+: `x` times HardSigmoid with alpha 1/6 and beta 1/2; NaN for -inf."""
    return np.asarray(x * hard_sigmoid(x, alpha=1 / 6, beta=0.5))


@kernel("Softsign", grade="exact")
@canonicalised
@widening
def softsign(x: Array) -> Array:
    """Softsign 1+: `x / (1 + |x|)`; NaN for the infinities."""
    return np.asarray(x / (constant(1, x.dtype) + np.abs(x)))
