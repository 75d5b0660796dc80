"""Elu, Celu and Selu: linear above zero, an exponential below.

Half types compute in float32 and are rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import bounds, clip, constant, destination, positive_part


@kernel("Elu", inplace=(0,))
@widening
def elu(
    x: Array,
    *,
    alpha: float = 1.0,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
    scratch: Array | None = None,
) -> Array:
    """Elu 1+: `x`, or `alpha * (exp(x) - 1)` where `x` is negative."""
    return _exponential_linear(x, alpha, 1.0, out, scratch)


@kernel("Celu", inplace=(0,))
@widening
def celu(
    x: Array, *, alpha: float = 1.0, out: Array | None = None, scratch: Array | None = None
) -> Array:
    """Celu 12+: `Max(x, 0) + Min(0, alpha * (exp(x / alpha) - 1))`."""
    return _exponential_linear(x, alpha, alpha, out, scratch)


@kernel("Selu", inplace=(0,))
@widening
def selu(
    x: Array,
    *,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
    consumed_inputs: Sequence[int] | None = None,
    out: Array | None = None,
    scratch: Array | None = None,
) -> Array:
    """Selu 1+: `gamma` times Elu (the schema of version 1 has other defaults)."""
    y = _exponential_linear(x, alpha, 1.0, out, scratch)
    return np.multiply(y, constant(gamma, x.dtype), out=y)


def _exponential_linear(
    x: Array, alpha: float, scale: float, out: Array | None, scratch: Array | None
) -> Array:
    # The sum is exact: one of the two parts is zero.
    positive = positive_part(x, scratch)
    y = clip(x, bounds(x.dtype)[0], constant(0, x.dtype), destination(x, out))
    if scale != 1:
        np.divide(y, constant(scale, x.dtype), out=y)
    np.expm1(y, out=y)
    np.multiply(y, constant(alpha, x.dtype), out=y)
    return np.add(y, positive, out=y)
