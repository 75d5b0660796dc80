"""Normalisations that fusion forms of several operators, where ONNX has them later only.

Domain foldline. They are the kernels of ONNX's operators, so that a model computes the same bits
whichever operator set it imports.
"""

from __future__ import annotations

from collections.abc import Callable

from foldline.kernels.normalisation import (
    group_normalization,
    layer_normalization,
    layer_normalization_reference,
    rms_normalization,
    rms_normalization_reference,
)
from foldline.kernels.registry import Array, Operand, kernel, maker

DOMAIN = "foldline"

maker("LayerNormalization", domain=DOMAIN, inplace=(0,))(layer_normalization)


@kernel("RMSNormalization", domain=DOMAIN)
def rms_normalization_of_parts_reference(
    x: Array,
    scale: Array,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    inverse: int = 0,
) -> Array:
    """RMSNormalization; `inverse` is for files."""
    return rms_normalization_reference(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)


@maker("RMSNormalization", domain=DOMAIN, inplace=(0,))
def rms_normalization_of_parts(
    x: Operand,
    scale: Operand,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    inverse: int = 0,
    out: Array | None = None,
) -> Callable[..., Array]:
    """RMSNormalization, in place and some rows at a time; `inverse` is for files."""
    return rms_normalization(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)


@kernel("LayerNormalization", domain=DOMAIN)
def only_layer_normalization_reference(
    x: Array,
    scale: Array,
    bias: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Array:
    """LayerNormalization without the statistics."""
    return layer_normalization_reference(
        x, scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type
    )[0]


@kernel("GroupNormalization", domain=DOMAIN, inplace=(0,))
def group_normalization_of_channels(
    x: Array,
    scale: Array,
    bias: Array,
    shape: Array | None = None,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """GroupNormalization: scale and bias broadcast to `x`, with one entry a channel."""
    return group_normalization(
        x, scale.reshape(-1), bias.reshape(-1), num_groups=num_groups, epsilon=epsilon, out=out
    )
