"""Batch, layer, RMS, group, instance, mean-variance and Lp normalisation in exact mode.

Means and variances are sums as one binary tree, divided by the number of elements; every step of
the formulas is rounded, in the order they are written in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.batch_normalisation import (
    batch_normalization_6,
    batch_normalization_9,
    batch_normalization_reference,
)
from foldline.kernels.exact_bits import canonicalised
from foldline.kernels.exact_sums import tree_mean, tree_sum
from foldline.kernels.precision import rounded, widened, widening
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE

# These are written with sums as one tree already.
kernel("BatchNormalization", until=7, grade="exact")(canonicalised(batch_normalization_6))
kernel("BatchNormalization", since=7, until=14, grade="exact")(canonicalised(batch_normalization_9))
kernel("BatchNormalization", since=14, grade="exact")(canonicalised(batch_normalization_reference))


def standardised(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """`(x - mean) * inverse`, mean and `inverse = 1 / sqrt(variance + epsilon)` over `axes`."""
    mean = tree_mean(x, axes, True)
    centred = np.subtract(x, mean)
    variance = tree_mean(np.multiply(centred, centred), axes, True)
    inverse = x.dtype.type(1) / np.sqrt(variance + x.dtype.type(epsilon))
    return np.asarray(centred * inverse), mean, np.asarray(inverse)


@kernel("LayerNormalization", grade="exact")
@canonicalised
@widening
def layer_normalization(
    x: Array,
    scale: Array,
    bias: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Array, Array, Array]:
    """LayerNormalization 17: standardise over `axis` and all after it, then scale and shift."""
    result, mean, inverse = standardised(x, tuple(range(axis % x.ndim, x.ndim)), epsilon)
    result = np.asarray(result * scale)
    stash = BY_CODE[stash_type].numpy
    result = result if bias is None else np.asarray(result + bias)
    return result, mean.astype(stash), inverse.astype(stash)


@kernel("RMSNormalization", grade="exact")
@canonicalised
def rms_normalization(
    x: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """RMSNormalization 23: `x / sqrt(mean(x^2) + eps) * scale` over `axis` and all after it."""
    values = widened(x, stash_type)
    squares = tree_mean(np.multiply(values, values), tuple(range(axis % x.ndim, x.ndim)), True)
    normalised = values / np.sqrt(squares + values.dtype.type(epsilon))
    return rounded(np.asarray(normalised * widened(scale, stash_type)), scale.dtype)


@kernel("InstanceNormalization", grade="exact")
@canonicalised
@widening
def instance_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    consumed_inputs: Sequence[int] | None = None,
    epsilon: float = 1e-5,
) -> Array:
    """InstanceNormalization 1/6/22: standardise each channel of each image."""
    return _groups(x, scale, bias, x.shape[1], epsilon)


@kernel("GroupNormalization", until=21, grade="exact")
@canonicalised
@widening
def group_normalization_18(
    x: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 1e-5
) -> Array:
    """GroupNormalization 18: scale and bias have one entry a group."""
    size = x.shape[1] // num_groups
    return _groups(x, np.repeat(scale, size), np.repeat(bias, size), num_groups, epsilon)


@kernel("GroupNormalization", since=21, grade="exact")
@canonicalised
@widening
def group_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Array:
    """GroupNormalization 21: scale and bias have one entry a channel."""
    return _groups(x, scale, bias, num_groups, epsilon)


def _groups(x: Array, scale: Array, bias: Array, groups: int, epsilon: float) -> Array:
    batch, channels, size = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    rows = x.reshape(batch, groups, channels // groups, size)
    result = standardised(rows, (2, 3), epsilon)[0].reshape(batch, channels, size)
    return (result * scale.reshape(-1, 1) + bias.reshape(-1, 1)).reshape(x.shape)


@kernel("MeanVarianceNormalization", grade="exact")
@canonicalised
@widening
def mean_variance_normalization(x: Array, *, axes: Sequence[int] = (0, 2, 3)) -> Array:
    """MeanVarianceNormalization 9/13: `(x - mean) / (sqrt(variance) + 1e-9)` over `axes`."""
    centred = x - tree_mean(x, tuple(axes), True)
    deviation = np.sqrt(tree_mean(centred * centred, tuple(axes), True))
    return np.asarray(centred / (deviation + x.dtype.type(1e-9)))


@kernel("LpNormalization", grade="exact")
@canonicalised
@widening
def lp_normalization(x: Array, *, axis: int = -1, p: int = 2) -> Array:
    """LpNormalization 1/22: X divided by its norm along `axis`; where the norm is 0, 0."""
    size = np.abs(x)
    total = tree_sum(size if p == 1 else np.multiply(x, x), (axis,), True)
    norm = total if p == 1 else np.sqrt(total)
    quotient = np.asarray(x / np.where(norm == 0, x.dtype.type(1), norm))
    return np.where(norm == 0, x.dtype.type(0), quotient)
