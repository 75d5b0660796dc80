"""Activations of ONNX Runtime: Gelu in its forms, with and without a bias.

Domain com.microsoft; version 1 of each operator.
"""

from __future__ import annotations

from foldline.kernels.activation import gelu, swish
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel

DOMAIN = "com.microsoft"


@kernel("Gelu", domain=DOMAIN)
@widening
def exact_gelu(x: Array, *, out: Array | None = None) -> Array:
    """Gelu: `x / 2 (1 + erf(x / sqrt 2))`, as Gelu 20 of ONNX."""
    return gelu(x, out=out)


@kernel("BiasGelu", domain=DOMAIN)
@widening
def bias_gelu(a: Array, b: Array) -> Array:
    """BiasGelu: Gelu of `a + b`, where `b` is a vector for the last axis."""
    return gelu(a + b)


@kernel("FastGelu", domain=DOMAIN)
@widening
def fast_gelu(x: Array, bias: Array | None = None) -> Array:
    """FastGelu: the form of Gelu with tanh, of `x + bias`."""
    return gelu(x if bias is None else x + bias, approximate="tanh")


@kernel("QuickGelu", domain=DOMAIN)
@widening
def quick_gelu(x: Array, *, alpha: float = 1.702, out: Array | None = None) -> Array:
    """QuickGelu: `x * Sigmoid(alpha * x)`; NaN for -inf."""
    return swish(x, alpha=alpha, out=out)
