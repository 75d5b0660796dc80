"""Operators that draw random numbers.

With `seed`, a node makes a new generator from the bits of that float32 each time it runs: the
same seed gives the same numbers in every run, process and machine. Without it every run draws
afresh. The generator is NumPy's PCG64 and belongs to the call; no global state is read or left.
float64 numbers are drawn with 53 random bits, all other floats from float32 numbers with 24.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foldline.kernels.cast import convert
from foldline.kernels.precision import widened
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE


@kernel("RandomNormal")
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


@kernel("RandomNormalLike")
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


@kernel("RandomUniform", exact=True)
def random_uniform(
    *,
    dtype: int = 1,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
    shape: Sequence[int],
) -> Array:
    """RandomUniform 1/22: numbers evenly from `low` to `high`, which only rounding reaches."""
    return _uniform(tuple(shape), BY_CODE[dtype].numpy, low, high, seed)


@kernel("RandomUniformLike", exact=True)
def random_uniform_like(
    x: Array,
    *,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Array:
    """RandomUniformLike 1/22: RandomUniform of the input's shape and, by default, dtype."""
    return _uniform(x.shape, like(x, dtype), low, high, seed)


@kernel("Bernoulli", exact=True)
def bernoulli(x: Array, *, dtype: int | None = None, seed: float | None = None) -> Array:
    """Bernoulli 15/22: 1 with the probability the input holds, else 0; NaN gives 0.

    `dtype` is any number type or bool, by default the input's.
    """
    probability = widened(x)
    drawn = generator(seed).random(x.shape, probability.dtype) < probability
    return convert(np.asarray(drawn), x.dtype if dtype is None else BY_CODE[dtype].numpy)


@kernel("Multinomial")
def multinomial(
    x: Array, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Array:
    """Multinomial 7/22: `(batch, sample_size)` classes by log-probabilities `(batch, classes)`.

    These need not be normalised; a class at -infinity is never drawn. `dtype` is int32 or int64.
    """
    logits = x.astype(np.float64)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    # Below the last sum, which is exactly 1, for any number drawn: no class is out of range.
    cumulative = np.cumsum(weights, axis=1)
    cumulative /= cumulative[:, -1:]
    drawn = generator(seed).random((len(x), sample_size))
    result = np.empty((len(x), sample_size), BY_CODE[dtype].numpy)
    for row, sums, numbers in zip(result, cumulative, drawn, strict=True):
        row[:] = np.searchsorted(sums, numbers, side="right")
    return result


def generator(seed: float | None) -> Any:
    """A np.random.Generator; Any, as its methods are typed for literal dtypes only."""
    if seed is None:
        return np.random.default_rng()
    return np.random.Generator(np.random.PCG64(int(np.float32(seed).view(np.uint32))))


def like(x: Array, dtype: int | None) -> np.dtype[Any]:
    """The dtype that is asked for, by default that of `x`."""
    return x.dtype if dtype is None else BY_CODE[dtype].numpy


def drawn_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float64 or float32; ValueError for what is no float."""
    if dtype not in _FLOATS:
        raise ValueError(f"random numbers are asked for as {dtype}, which is no float type")
    return dtype if dtype == np.float64 else np.dtype(np.float32)


_FLOATS = frozenset(BY_CODE[code].numpy for code in (1, 10, 11, 16))


def _normal(
    shape: tuple[int, ...], dtype: np.dtype[Any], mean: float, scale: float, seed: float | None
) -> Array:
    wide = drawn_dtype(dtype)
    drawn = generator(seed).standard_normal(shape, wide)
    return np.asarray(drawn * wide.type(scale) + wide.type(mean)).astype(dtype)


def _uniform(
    shape: tuple[int, ...], dtype: np.dtype[Any], low: float, high: float, seed: float | None
) -> Array:
    wide = drawn_dtype(dtype)
    drawn = generator(seed).random(shape, wide)
    return np.asarray(drawn * wide.type(high - low) + wide.type(low)).astype(dtype)
