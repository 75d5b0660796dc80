"""Operators of ai.onnx.ml that prepare features: select, scale, threshold, fill in, normalise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from foldline.kernels.exact_bits import canonical
from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.ml_scores import ML
from foldline.kernels.precision import rounded
from foldline.kernels.registry import Array, Operand, kernel, maker

MOST_ALIKE = 8
"""A norm of so many elements at most is computed for each of them."""
MOST_COPIES = 1 << 10
"""So many elements at most of numbers that are written out for every row."""


@kernel("ArrayFeatureExtractor", domain=ML, exact=True)
def array_feature_extractor(x: Array, y: Array) -> Array:
    """ArrayFeatureExtractor 1: the elements Y of the last axis of X; a vector becomes one row.

    Raises IndexError for an index that is negative or too large.
    """
    wrong = (y < 0) | (y >= x.shape[-1])
    if wrong.any():
        raise IndexError(f"index {y[wrong].flat[0]} is not among the {x.shape[-1]} features")
    return np.atleast_2d(x)[..., y.reshape(-1)]


@kernel("Binarizer", domain=ML, exact=True)
def binarizer(x: Array, *, threshold: float = 0.0) -> Array:
    """Binarizer 1: 1 where X is greater than `threshold`, else 0, in the dtype of X."""
    return np.asarray(x > threshold).astype(x.dtype)


@kernel("FeatureVectorizer", domain=ML, exact=True)
def feature_vectorizer(*inputs: Array, inputdimensions: Sequence[int] | None = None) -> Array:
    """FeatureVectorizer 1: float32 `(N, sum of sizes)`, the inputs side by side.

    A vector is one row, further axes are flattened. Each input is cut or filled up with zeros to
    its size in `inputdimensions`, by default its own.

    Raises ValueError when there are not as many sizes as inputs.
    """
    parts = [np.atleast_2d(x) for x in inputs]
    parts = [x.reshape(len(x), math.prod(x.shape[1:])) for x in parts]
    sizes = [x.shape[1] for x in parts] if inputdimensions is None else inputdimensions
    if len(sizes) != len(parts):
        raise ValueError(f"FeatureVectorizer: {len(sizes)} inputdimensions, {len(parts)} inputs")
    result = np.zeros((len(parts[0]), sum(sizes)), np.float32)
    start = 0
    for part, size in zip(parts, sizes, strict=True):
        kept = part[:, :size]
        result[:, start : start + kept.shape[1]] = kept
        start += size
    return result


@kernel("Imputer", domain=ML, exact=True)
def imputer(
    x: Array,
    *,
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Array:
    """Imputer 1: X with elements equal to the replaced value, which may be NaN, replaced.

    There is one imputed value, or one for each place of the last axis; of floats or of integers,
    as X. Raises ValueError when the list for the dtype of X is missing.
    """
    is_float = x.dtype.kind == "f"
    imputed = imputed_value_floats if is_float else imputed_value_int64s
    if not imputed:
        kind = "floats" if is_float else "int64s"
        raise ValueError(f"Imputer: {x.dtype} needs the attribute imputed_value_{kind}")
    if is_float and np.isnan(replaced_value_float):
        missing = np.isnan(x)
    else:
        missing = x == x.dtype.type(replaced_value_float if is_float else replaced_value_int64)
    return np.where(missing, np.array(imputed, x.dtype), x)


_NORMS: dict[str, Callable[[Array], Array]] = {
    "MAX": lambda x: x.max(axis=-1, keepdims=True),
    "L1": lambda x: tree_sum(np.abs(x), (-1,), True),
    "L2": lambda x: np.sqrt(tree_sum(x * x, (-1,), True)),
}


@kernel("Normalizer", domain=ML, exact=True)
def normalizer(x: Array, *, norm: str = "MAX") -> Array:
    """Normalizer 1: float32, X over a norm of its last axis; what has norm 0 stays as it is.

    MAX is the greatest element, of whatever sign; L1 the sum of sizes; L2 the length.

    Raises ValueError for another norm.
    """
    if norm not in _NORMS:
        raise ValueError(f"Normalizer: norm is {norm!r}, expected one of {[*_NORMS]}")
    values = x if x.dtype == np.float64 else x.astype(np.float32)
    if not values.size:
        return values.astype(np.float32)
    divisor = _NORMS[norm](values)
    return canonical((values / np.where(divisor == 0, 1, divisor)).astype(np.float32, copy=False))


@maker("Normalizer", domain=ML)
def normalizer_fast(x: Operand, *, norm: str = "MAX") -> Callable[[Array], Array]:
    """Normalizer 1 in few steps: the sums are products with ones."""
    size = x.shape[-1] if x.shape else 0
    if x.dtype != np.float32 or norm not in ("L1", "L2") or not size:
        return partial(normalizer, norm=norm)
    # A divisor for each element, where few: one for each row takes thrice the time to divide by.
    ones = np.ones((size, size if size <= MOST_ALIKE else 1), np.float32)

    def by_sizes(x: Array) -> Array:
        return np.divide(x, _without_zeros(np.absolute(x).dot(ones)))

    def by_squares(x: Array) -> Array:
        divisor = np.multiply(x, x).dot(ones)
        return np.divide(x, _without_zeros(np.sqrt(divisor, divisor)))

    return by_sizes if norm == "L1" else by_squares


def _without_zeros(divisor: Array) -> Array:
    """The divisors, those of zero made one; to count them takes a third of the time of that."""
    if np.count_nonzero(divisor) < divisor.size:
        divisor[divisor == 0] = 1
    return divisor


@maker("Scaler", domain=ML, inplace=(0,))
def scaler_fast(
    x: Operand,
    *,
    offset: Sequence[float] | None = None,
    scale: Sequence[float] | None = None,
    out: Array | None = None,
) -> Callable[..., Array]:
    """Scaler 1 with its numbers made arrays beforehand."""
    wide = np.dtype(np.float64) if x.dtype == np.float64 else np.dtype(np.float32)
    shift, factor = np.array(offset or (0.0,), wide), np.array(scale or (1.0,), wide)
    if 0 < math.prod(x.shape) <= MOST_COPIES:
        # To broadcast takes half a microsecond.
        shift, factor = (np.broadcast_to(a, x.shape).copy() for a in (shift, factor))

    def scaled(x: Array, *, out: Array | None = None) -> Array:
        shifted = np.subtract(x, shift, out)
        return np.multiply(shifted, factor, shifted)

    def through_copy(x: Array, *, out: Array | None = None) -> Array:
        return rounded(scaled(x.astype(wide)), np.dtype(np.float32), out)

    return scaled if x.dtype == np.float32 else through_copy


@kernel("Scaler", domain=ML, exact=True)
def scaler(
    x: Array, *, offset: Sequence[float] | None = None, scale: Sequence[float] | None = None
) -> Array:
    """Scaler 1: float32 `(X - offset) * scale`, each one number or one for each feature."""
    values = x if x.dtype == np.float64 else x.astype(np.float32)
    shifted = values - np.array(offset or (0.0,), values.dtype)
    scaled = shifted * np.array(scale or (1.0,), values.dtype)
    return canonical(scaled.astype(np.float32, copy=False))
