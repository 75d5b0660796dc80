"""Instance and group normalisation: channels of an image brought to mean 0 and variance 1.

Statistics are float32 at least, float64 for float64 and where `stash_type` is double.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.normalisation import centre_rows, row_spans
from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel


@kernel("InstanceNormalization", inplace=(0,))
@widening
def instance_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    consumed_inputs: Sequence[int] | None = None,
    epsilon: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """InstanceNormalization 1/6/22: standardise each channel of each image."""
    return _normalise_groups(x, scale, bias, x.shape[1], epsilon, out)


@kernel("GroupNormalization", until=21, inplace=(0,))
@widening
def group_normalization_18(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """GroupNormalization 18: scale and bias have one entry a group."""
    size = x.shape[1] // num_groups
    return _normalise_groups(
        x, np.repeat(scale, size), np.repeat(bias, size), num_groups, epsilon, out
    )


@kernel("GroupNormalization", since=21, inplace=(0,))
@widening
def group_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    out: Array | None = None,
) -> Array:
    """GroupNormalization 21: scale and bias have one entry a channel."""
    return _normalise_groups(x, scale, bias, num_groups, epsilon, out)


def _normalise_groups(
    x: Array, scale: Array, bias: Array, groups: int, epsilon: float, out: Array | None
) -> Array:
    out = np.empty(x.shape, x.dtype) if out is None else out
    if not out.size:
        return out
    batch, channels, size = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    per_group = channels // groups
    source = x.reshape(batch * groups, per_group * size)
    result = out.reshape(source.shape)
    factors = np.tile(scale.reshape(groups, per_group), (batch, 1))
    shifts = np.tile(bias.reshape(groups, per_group), (batch, 1))
    spans = row_spans(*source.shape, x.dtype)

    def tile(index: int) -> None:
        span = slice(*spans[index])
        _, inverse = centre_rows(source[span], epsilon, result[span])
        part = result[span].reshape(-1, per_group, size)
        np.multiply(part, (factors[span] * inverse[:, None])[..., None], out=part)
        np.add(part, shifts[span, :, None], out=part)

    parallel_for(len(spans), tile)
    return out
