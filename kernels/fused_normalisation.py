"""Normalisations that fusion forms of several operators, where ONNX has them later only.

Domain foldline. They are the kernels of ONNX's operators, so that a model computes the same bits
whichever operator set it imports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foldline.kernels import exact_normalisation
from foldline.kernels.exact_bits import canonical
from foldline.kernels.group_normalisation import group_normalization
from foldline.kernels.half import HALF, onto_halves
from foldline.kernels.normalisation import (
    layer_normalization,
    layer_normalization_reference,
    rms_normalization,
    rms_normalization_reference,
)
from foldline.kernels.registry import Array, Operand, Step, computes_in_single, kernel, maker
from foldline.kernels.ufuncs import of_halves

DOMAIN = "foldline"

Results = Array | tuple[Array, ...]

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


def _skipping(
    normalise: Callable[..., Any] | Step, needs_sum: bool, add: Callable[..., Any] = np.add
) -> Step:
    """What adds, and gives the sum where it is needed; else it is normalised where it lies."""
    step = normalise if isinstance(normalise, Step) else Step(normalise)

    def run(x: Array, z: Array, *scale: Array, out: Array | None = None) -> Results:
        total = np.asarray(add(x, z, out=None if needs_sum else out))
        y = step.run(total, *scale, out=out if needs_sum else total)
        return (y, total) if needs_sum else y

    def bind(x: Array, z: Array, *scale: Array, out: Array) -> Callable[[], Any]:
        assert step.bind is not None
        normalised = step.bind(out, *scale, out=out)

        def compute() -> None:
            add(x, z, out=out)
            normalised()

        return compute

    return Step(run, bind=None if needs_sum or step.bind is None else bind)


def _adding(x: Operand) -> Callable[..., Any]:
    return _add_halves if x.dtype == HALF else np.add


def _sum_of(x: Operand, z: Operand) -> Operand:
    return Operand(np.broadcast_shapes(x.shape, z.shape), x.dtype)


def _add_halves(x: Array, z: Array, *, out: Array | None = None) -> Array:
    """The sum of float16, or of such as is held in float32."""
    if x.dtype == HALF:
        return of_halves(np.add, x, z, out)
    total = np.asarray(np.add(x, z, out=out))
    return onto_halves(total, total)


def skip_layer_normalization_of_halves(
    x: Operand,
    z: Operand,
    scale: Operand,
    bias: Operand | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    output_count: int = 1,
) -> Step:
    """LayerNormalization of `x + z`, float16 that is held in float32."""
    rows = layer_normalization(_sum_of(x, z), scale, bias, axis=axis, epsilon=epsilon)
    return _skipping(rows, output_count > 1, _add_halves)


def skip_layer_normalization(
    x: Operand,
    z: Operand,
    scale: Operand,
    bias: Operand | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    output_count: int = 1,
    out: Array | None = None,
) -> Step:
    """LayerNormalization of `x + z`; the sum is the second result."""
    rows = layer_normalization(
        _sum_of(x, z), scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type
    )
    return _skipping(rows, output_count > 1, _adding(x))


maker("SkipLayerNormalization", domain=DOMAIN)(
    computes_in_single(skip_layer_normalization, skip_layer_normalization_of_halves)
)


@maker("SkipRMSNormalization", domain=DOMAIN)
def skip_rms_normalization(
    x: Operand,
    z: Operand,
    scale: Operand,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    inverse: int = 0,
    output_count: int = 1,
    out: Array | None = None,
) -> Step:
    """RMSNormalization of `x + z`; the sum is the second result; `inverse` is for files."""
    rows = rms_normalization(
        _sum_of(x, z), scale, axis=axis, epsilon=epsilon, stash_type=stash_type
    )
    return _skipping(rows, output_count > 1, _adding(x))


@kernel("SkipLayerNormalization", domain=DOMAIN, grade="exact")
def exact_skip_layer_normalization(
    x: Array,
    z: Array,
    scale: Array,
    bias: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    output_count: int = 1,
) -> Results:
    """The operators of exact mode one by one."""
    total = canonical(np.asarray(np.add(x, z)))
    rows = exact_normalisation.layer_normalization(
        total, scale, bias, axis=axis, epsilon=epsilon, stash_type=stash_type
    )
    return (rows[0], total) if output_count > 1 else rows[0]


@kernel("SkipRMSNormalization", domain=DOMAIN, grade="exact")
def exact_skip_rms_normalization(
    x: Array,
    z: Array,
    scale: Array,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    inverse: int = 0,
    output_count: int = 1,
) -> Results:
    """The operators of exact mode one by one; `inverse` is for files."""
    total = canonical(np.asarray(np.add(x, z)))
    rows = exact_normalisation.rms_normalization(
        total, scale, axis=axis, epsilon=epsilon, stash_type=stash_type
    )
    return (rows, total) if output_count > 1 else rows


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
