"""Layer and RMS normalisation as ONNX Runtime fuses them with sums.

Domain com.microsoft, version 1 of each operator; SimplifiedLayerNormalization is in the default
domain, as ONNX Runtime writes it to files.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels.normalisation import (
    layer_normalization,
    rms_normalization,
)
from foldline.kernels.precision import rounded, widened, working_dtype
from foldline.kernels.registry import Array, Operand, maker
from foldline.support.dtypes import BY_CODE

DOMAIN = "com.microsoft"

Results = Array | tuple[Array, ...]


@maker("SkipLayerNormalization", domain=DOMAIN)
def skip_layer_normalization(
    x: Operand,
    skip: Operand,
    gamma: Operand,
    beta: Operand | None = None,
    bias: Operand | None = None,
    *,
    epsilon: float = 1e-12,
    output_count: int = 1,
    out: Array | None = None,
) -> Callable[..., Results]:
    """SkipLayerNormalization: LayerNormalization over the last axis of `x + skip + bias`.

    `skip` broadcasts to `x`. Gives the result, mean and 1 / deviation in float32, and the sum.
    """
    total = Operand(x.shape, working_dtype(x.dtype))
    normalise: Callable[..., Results] = layer_normalization(
        total, gamma, beta, epsilon=epsilon, output_count=3 if output_count > 1 else 1
    ).run

    def run(
        x: Array,
        skip: Array,
        gamma: Array,
        beta: Array | None = None,
        bias: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Results:
        total = _sum(x, skip, bias)
        wide = out if x.dtype == total.dtype else None
        shift = None if beta is None else widened(beta)
        results = normalise(total, widened(gamma), shift, out=wide)
        if not isinstance(results, tuple):
            return rounded(results, x.dtype, out)
        y, *statistics = results
        return (rounded(y, x.dtype, out), *statistics, rounded(total, x.dtype))[:output_count]

    return run


@maker("SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_simplified_layer_normalization(
    x: Operand,
    skip: Operand,
    gamma: Operand,
    bias: Operand | None = None,
    *,
    epsilon: float = 1e-12,
    output_count: int = 1,
    out: Array | None = None,
) -> Callable[..., Results]:
    """SkipSimplifiedLayerNormalization: RMSNormalization over the last axis of `x + skip + bias`.

    Outputs are those of SkipLayerNormalization; the mean is 0.
    """
    wide = working_dtype(x.dtype)
    normalise = rms_normalization(
        Operand(x.shape, wide), Operand(gamma.shape, wide), epsilon=epsilon
    )

    def run(
        x: Array,
        skip: Array,
        gamma: Array,
        bias: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Results:
        total = _sum(x, skip, bias)
        target = out if x.dtype == total.dtype else None
        y = rounded(normalise(total, widened(gamma), out=target), x.dtype, out)
        if output_count == 1:
            return y
        inverse = _inverse_root_mean_square(total, -1, epsilon).astype(np.float32, copy=False)
        return (y, np.zeros_like(inverse), inverse, rounded(total, x.dtype))[:output_count]

    return run


def _sum(x: Array, skip: Array, bias: Array | None) -> Array:
    total = widened(x) + widened(skip)
    return total if bias is None else np.add(total, widened(bias), out=total)


@maker("SimplifiedLayerNormalization", inplace=(0,))
def simplified_layer_normalization(
    x: Operand,
    scale: Operand,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    output_count: int = 1,
    out: Array | None = None,
) -> Callable[..., Results]:
    """SimplifiedLayerNormalization: RMSNormalization 23, and `1 / sqrt(mean(x^2) + eps)`.

    The first result has the dtype of `scale`, the other is of the stash type.
    """
    normalise = rms_normalization(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)
    stash = BY_CODE[stash_type].numpy

    def run(x: Array, scale: Array, *, out: Array | None = None) -> Results:
        if output_count == 1:
            return normalise(x, scale, out=out)
        # Before the result, which may be written over `x`.
        inverse = _inverse_root_mean_square(widened(x, stash_type), axis, epsilon)
        return normalise(x, scale, out=out), inverse.astype(stash, copy=False)

    return run


def _inverse_root_mean_square(x: Array, axis: int, epsilon: float) -> Array:
    axes = tuple(range(axis % x.ndim, x.ndim))
    squares = (x * x).mean(axis=axes, keepdims=True)
    return np.asarray(1 / np.sqrt(squares + x.dtype.type(epsilon)))
