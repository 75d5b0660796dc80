"""Normalisations of com.microsoft in exact mode: of sums, and of embeddings.

They are what their parts are: `exact_normalisation`.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.contrib_embedding import (
    embed_layer_normalization_by,
    quantised_embed_layer_normalization_by,
)
from foldline.kernels.exact_bits import canonicalised
from foldline.kernels.exact_normalisation import layer_normalization, rms_normalization
from foldline.kernels.exact_quantisation import dequantize_linear
from foldline.kernels.exact_sums import tree_mean
from foldline.kernels.precision import rounded, widened
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE

DOMAIN = "com.microsoft"
Results = Array | tuple[Array, ...]


@kernel("SkipLayerNormalization", domain=DOMAIN, grade="exact")
@canonicalised
def skip_layer_normalization(
    x: Array,
    skip: Array,
    gamma: Array,
    beta: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-12,
    output_count: int = 1,
) -> tuple[Array, ...]:
    """SkipLayerNormalization: LayerNormalization over the last axis of `x + skip + bias`."""
    total = _sum(x, skip, bias)
    shift = None if beta is None else widened(beta)
    y, mean, inverse = layer_normalization(total, widened(gamma), shift, epsilon=epsilon)
    return (rounded(y, x.dtype), mean, inverse, rounded(total, x.dtype))[:output_count]


@kernel("SkipSimplifiedLayerNormalization", domain=DOMAIN, grade="exact")
@canonicalised
def skip_simplified_layer_normalization(
    x: Array,
    skip: Array,
    gamma: Array,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-12,
    output_count: int = 1,
) -> tuple[Array, ...]:
    """SkipSimplifiedLayerNormalization: RMSNormalization of `x + skip + bias`; the mean is 0."""
    total = _sum(x, skip, bias)
    y = rounded(rms_normalization(total, widened(gamma), epsilon=epsilon), x.dtype)
    inverse = _inverse_root(total, -1, epsilon).astype(np.float32, copy=False)
    return (y, np.zeros_like(inverse), inverse, rounded(total, x.dtype))[:output_count]


def _sum(x: Array, skip: Array, bias: Array | None) -> Array:
    total = np.asarray(widened(x) + widened(skip))
    return total if bias is None else np.asarray(total + widened(bias))


@kernel("SimplifiedLayerNormalization", grade="exact")
@canonicalised
def simplified_layer_normalization(
    x: Array,
    scale: Array,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    output_count: int = 1,
) -> Results:
    """SimplifiedLayerNormalization: RMSNormalization 23, and `1 / sqrt(mean(x^2) + eps)`."""
    y = rms_normalization(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)
    if output_count == 1:
        return y
    inverse = _inverse_root(widened(x, stash_type), axis, epsilon)
    return y, inverse.astype(BY_CODE[stash_type].numpy, copy=False)


def _inverse_root(x: Array, axis: int, epsilon: float) -> Array:
    squares = tree_mean(np.multiply(x, x), tuple(range(axis % x.ndim, x.ndim)), True)
    return np.asarray(x.dtype.type(1) / np.sqrt(squares + x.dtype.type(epsilon)))


_embed = canonicalised(embed_layer_normalization_by(layer_normalization))
kernel("EmbedLayerNormalization", domain=DOMAIN, grade="exact")(_embed)
kernel("QEmbedLayerNormalization", domain=DOMAIN, grade="exact")(
    quantised_embed_layer_normalization_by(_embed, dequantize_linear)
)
