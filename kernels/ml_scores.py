"""What the models of ai.onnx.ml share: rows of features, class labels, transforms of scores.

ONNX says little about models with one score. Here, as in ONNX Runtime, a single score is changed
by PROBIT alone; a classifier of two classes that has one score s gives both classes one, by
default (1 - s, s).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from foldline.kernels.exact_bits import canonical
from foldline.kernels.exact_functions import EXP, LOG
from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.registry import Array
from foldline.kernels.ufuncs import constant

ML = "ai.onnx.ml"


def feature_rows(x: Array) -> Array:
    """`x` as `(N, F)` of float64 if it is that, else of float32; a vector is one row."""
    dtype = np.float64 if x.dtype == np.float64 else np.float32
    return np.atleast_2d(x).astype(dtype, copy=False)


def class_labels(ints: Sequence[int] | None, strings: Sequence[str] | None) -> Array:
    """Labels or keys, int64 or strings; ValueError unless exactly one list is given."""
    if bool(ints) == bool(strings):
        raise ValueError("exactly one of integer and string labels must be given")
    return np.array(ints, np.int64) if ints else np.array(strings, object)


def two_labels(labels: Array) -> Array:
    """Negative and positive label; a model with one label has 0 and 1."""
    if len(labels) == 2:
        return labels
    return np.array([0, 1], np.int64) if labels.dtype == np.int64 else np.array(["0", "1"], object)


def transformed(scores: Array, transform: str) -> Array:
    """Scores `(N, E)` after `transform`, row by row; a single score only takes PROBIT.

    ValueError for a name other than NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO, PROBIT.
    """
    if transform not in _TRANSFORMS:
        raise ValueError(f"post_transform is {transform!r}, expected one of {[*_TRANSFORMS]}")
    if scores.shape[1] == 1 and transform != "PROBIT":
        return canonical(scores.copy())
    return canonical(np.array(_TRANSFORMS[transform](scores)))


def fast_transformed(scores: Array, transform: str) -> Array:
    """The same within rounding, by NumPy's functions where there are any; may use `scores`."""
    if scores.shape[1] == 1 or transform not in ("NONE", "LOGISTIC", "SOFTMAX"):
        return transformed(scores, transform)
    if transform == "LOGISTIC":
        return _fast_logistic(scores)
    if transform == "SOFTMAX":
        np.subtract(scores, scores.max(axis=1, keepdims=True), scores)
        np.exp(scores, scores)
        np.divide(scores, np.add.reduce(scores, 1, keepdims=True), scores)
    return scores


def _fast_logistic(scores: Array) -> Array:
    """`1 / (1 + exp(-s))` written over `scores`; an overflow is an infinity, which gives 0."""
    np.negative(scores, scores)
    np.exp(scores, scores)
    np.add(scores, constant(1, scores.dtype), scores)
    return np.reciprocal(scores, scores)


def two_scores(score: Array, transform: str, *, mirrored: bool) -> Array:
    """`(N, 2)` of one score each: (-s, s) if mirrored else (1 - s, s); LOGISTIC is of (-s, s)."""
    if transform == "LOGISTIC":
        return canonical(logistic(np.stack([-score, score], axis=-1)))
    both = np.stack([-score if mirrored else 1 - score, score], axis=-1)
    return transformed(both, transform if transform == "PROBIT" else "NONE")


def logistic(scores: Array) -> Array:
    """1 / (1 + exp(-s)), without overflow."""
    positive = 1 / (1 + EXP(-np.abs(scores)))
    return np.where(scores < 0, 1 - positive, positive)


def _softmax(scores: Array) -> Array:
    powers = EXP(scores - scores.max(axis=1, keepdims=True))
    return powers / tree_sum(powers, (1,), True)


def _softmax_zero(scores: Array) -> Array:
    """Softmax in which scores of zero stay zero and do not count."""
    top = scores.max(axis=1, keepdims=True)
    powers = np.where(np.abs(scores) > 1e-7, EXP(scores - top), scores.dtype.type(0))
    return (powers / tree_sum(powers, (1,), True)).astype(scores.dtype, copy=False)


def _probit(scores: Array) -> Array:
    """The inverse normal distribution, by the approximation in closed form all runtimes use."""
    kind = scores.dtype.type
    x = 2 * scores - 1
    log = LOG((1 - x) * (1 + x))
    v = kind(2 / (np.pi * 0.147)) + log / 2
    root = np.sqrt(np.sqrt(v * v - log * kind(1 / 0.147)) - v)
    return np.copysign(root, x) * kind(np.sqrt(2))


_TRANSFORMS: dict[str, Callable[[Array], Any]] = {
    "NONE": lambda scores: scores,
    "LOGISTIC": logistic,
    "SOFTMAX": _softmax,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
