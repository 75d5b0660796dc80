"""Linear models: LinearClassifier 1 and LinearRegressor 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.exact_products import product
from foldline.kernels.ml_scores import (
    ML,
    class_labels,
    fast_transformed,
    feature_rows,
    transformed,
    two_labels,
    two_scores,
)
from foldline.kernels.registry import Array, Operand, maker

MOST_COPIES = 1 << 10
"""So many elements at most of intercepts written out for every row."""


@maker("LinearClassifier", domain=ML, grade="reference", exact=True)
def linear_classifier(
    x: Operand,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> Callable[..., tuple[Array, Array]]:
    """LinearClassifier 1: labels `(N)` and float32 scores `(N, E)` of rows of features.

    The label is that of the greatest score before `post_transform`. With one row of coefficients
    it is the second of two labels (or 1) if the score is positive, else the first (or 0).
    `multi_class` has no effect.
    """
    labels = class_labels(classlabels_ints, classlabels_strings)
    return _classifier(_linear(x, coefficients, intercepts), labels, post_transform)


@maker("LinearClassifier", domain=ML)
def linear_classifier_fast(
    x: Operand,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> Callable[..., tuple[Array, Array]]:
    """LinearClassifier 1, with the products of BLAS."""
    labels = class_labels(classlabels_ints, classlabels_strings)
    score = _fast_linear(x, coefficients, intercepts)
    return _classifier(score, labels, post_transform, fast_transformed)


def _classifier(
    score: Callable[[Array], Array],
    labels: Array,
    post_transform: str,
    transformed: Callable[[Array, str], Array] = transformed,
) -> Callable[..., tuple[Array, Array]]:
    def run(x: Array) -> tuple[Array, Array]:
        scores = score(x)
        if scores.shape[1] > 1:
            chosen = labels[scores.argmax(1)]
            return chosen, transformed(scores, post_transform).astype(np.float32, copy=False)
        chosen = two_labels(labels)[(scores[:, 0] > 0).astype(np.intp)]
        if len(labels) == 2:
            scores = two_scores(scores[:, 0], post_transform, mirrored=False)
        else:
            scores = transformed(scores, post_transform)
        return chosen, scores.astype(np.float32, copy=False)

    return run


@maker("LinearRegressor", domain=ML, grade="reference", exact=True)
def linear_regressor(
    x: Operand,
    *,
    coefficients: Sequence[float] | None = None,
    intercepts: Sequence[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Callable[..., Array]:
    """LinearRegressor 1: float32 `(N, targets)`, the features times coefficients plus intercepts.

    Raises ValueError when the coefficients are not `targets` rows of one for each feature.
    """
    return _regressor(_linear(x, coefficients or (), intercepts, targets), post_transform)


@maker("LinearRegressor", domain=ML)
def linear_regressor_fast(
    x: Operand,
    *,
    coefficients: Sequence[float] | None = None,
    intercepts: Sequence[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Callable[..., Array]:
    """LinearRegressor 1, with the products of BLAS."""
    score = _fast_linear(x, coefficients or (), intercepts, targets)
    return _regressor(score, post_transform, fast_transformed)


def _regressor(
    score: Callable[[Array], Array],
    post_transform: str,
    transformed: Callable[[Array, str], Array] = transformed,
) -> Callable[..., Array]:
    def run(x: Array) -> Array:
        return transformed(score(x), post_transform).astype(np.float32, copy=False)

    return run


def _linear(
    x: Operand,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None,
    targets: int | None = None,
) -> Callable[[Array], Array]:
    weights, bias = _weights_and_bias(x, coefficients, intercepts, targets)

    def score(x: Array) -> Array:
        scores = product(feature_rows(x), weights)
        return np.add(scores, bias, scores)

    return score


def _fast_linear(
    x: Operand,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None,
    targets: int | None = None,
) -> Callable[[Array], Array]:
    weights, bias = _weights_and_bias(x, coefficients, intercepts, targets)
    weights = np.ascontiguousarray(weights)
    is_rows = len(x.shape) == 2 and x.dtype == weights.dtype
    if is_rows and x.shape[0] * weights.shape[1] <= MOST_COPIES:
        # To add a row to each takes twice the time of adding as many rows as there are.
        bias = np.broadcast_to(bias, (x.shape[0], weights.shape[1])).copy()

    def score(x: Array) -> Array:
        scores = (x if is_rows else feature_rows(x)).dot(weights)
        return np.add(scores, bias, scores)

    return score


def _weights_and_bias(
    x: Operand,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None,
    targets: int | None,
) -> tuple[Array, Array]:
    """`(features, targets)` and as many intercepts, or one zero for none."""
    dtype = np.float64 if x.dtype == np.float64 else np.float32
    features = x.shape[-1]
    if targets is None:
        targets = len(intercepts or ()) or len(coefficients) // max(features, 1)
        if intercepts:
            # Files exist with coefficients of more rows than classes; they have no effect.
            coefficients = coefficients[: targets * features]
    if len(coefficients) != targets * features:
        raise ValueError(f"{len(coefficients)} coefficients for {targets} x {features} features")
    weights = np.array(coefficients, dtype).reshape(targets, features).T
    return weights, np.array(intercepts or (0.0,), dtype)
