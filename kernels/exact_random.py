"""Normal numbers and classes drawn in exact mode.

Random bits are those of PCG64, which are integers; the numbers made of them are multiples of a
power of two. What follows is exact functions. A seed gives other normal numbers than in fast mode,
where NumPy's tables make them: pairs of them come from pairs of even ones (Box and Muller 1958),

    r = sqrt(-2 log(1 - u))        r cos(2 pi v), r sin(2 pi v)

computed in float64 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.exact_bits import greatest
from foldline.kernels.exact_functions import COS, EXP, LOG, SIN
from foldline.kernels.random import drawn_dtype, generator, like
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE


@kernel("RandomNormal", grade="exact")
def random_normal(
    *,
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
    shape: Sequence[int],
) -> Array:
    """RandomNormal 1/22: normal numbers of `mean` and standard deviation `scale`."""
    return _normal(tuple(shape), BY_CODE[dtype].numpy, mean, scale, seed)


@kernel("RandomNormalLike", grade="exact")
def random_normal_like(
    x: Array,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Array:
    """RandomNormalLike 1/22: RandomNormal of the input's shape and, by default, dtype."""
    return _normal(x.shape, like(x, dtype), mean, scale, seed)


def _normal(
    shape: tuple[int, ...], dtype: np.dtype, mean: float, scale: float, seed: float | None
) -> Array:
    wide, count = drawn_dtype(dtype), math.prod(shape)
    pairs = generator(seed).random((2, -(-count // 2)))
    radius = np.sqrt(-2.0 * LOG(np.asarray(1.0 - pairs[0])))
    angle = np.asarray(pairs[1] * (2 * math.pi))
    drawn = np.concatenate([radius * COS(angle), radius * SIN(angle)])[:count].astype(wide)
    return np.asarray(drawn * wide.type(scale) + wide.type(mean)).astype(dtype).reshape(shape)


@kernel("Multinomial", grade="exact")
def multinomial(
    x: Array, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Array:
    """Multinomial 7/22: `(batch, sample_size)` classes by log-probabilities `(batch, classes)`.

    The sums of probabilities are from the first class on.
    """
    logits = x.astype(np.float64)
    weights = EXP(np.asarray(logits - greatest(logits, (1,), True)))
    sums = np.add.accumulate(weights, axis=1)
    shares = np.asarray(sums / sums[:, -1:])
    drawn = generator(seed).random((len(x), sample_size))
    result = np.empty((len(x), sample_size), BY_CODE[dtype].numpy)
    for row, ends, numbers in zip(result, shares, drawn, strict=True):
        row[:] = np.searchsorted(ends, numbers, side="right")
    return result
