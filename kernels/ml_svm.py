"""Support vector machines: SVMClassifier 1 and SVMRegressor 1.

    features -> kernel with every support vector -> decisions -> votes, probabilities, labels

Without support vectors both are linear models.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldline.kernels.exact_functions import EXP, POWER, TANH
from foldline.kernels.exact_products import product
from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.ml_scores import (
    ML,
    class_labels,
    feature_rows,
    logistic,
    transformed,
    two_scores,
)
from foldline.kernels.registry import Array, Operand, maker

_BLOCK = 1 << 20
"""Most numbers held at a time for the differences of the RBF kernel."""


@dataclass(frozen=True)
class Functions:
    """What these models compute with, other than arithmetic."""

    product: Callable[[Array, Array], Any]
    """Of matrices."""
    power: Callable[[Array, Array], Any]
    tanh: Callable[[Array], Any]
    exp: Callable[[Array], Any]
    total: Callable[[Array, int], Any]
    """The sum along an axis."""


def svm_regressor_by(functions: Functions) -> Callable[..., Callable[..., Array]]:
    """The maker of SVMRegressor, given what it computes with."""

    def svm_regressor(
        x: Operand,
        *,
        coefficients: Sequence[float] | None = None,
        kernel_params: Sequence[float] | None = None,
        kernel_type: str = "LINEAR",
        n_supports: int = 0,
        one_class: int = 0,
        post_transform: str = "NONE",
        rho: Sequence[float] | None = None,
        support_vectors: Sequence[float] | None = None,
    ) -> Callable[..., Array]:
        """SVMRegressor 1: float32 `(N, 1)`; with `one_class` 1 for a positive score, else -1."""
        dtype = _dtype(x)
        weights = np.array(coefficients or (), dtype)
        bias = np.array(rho or (0.0,), dtype)[0]
        kernel = feature_rows
        if n_supports:
            vectors = np.array(support_vectors, dtype).reshape(n_supports, -1)
            kernel = _kernel(functions, vectors, kernel_type, kernel_params)

        def run(x: Array) -> Array:
            scores = (functions.product(kernel(x), weights) + bias)[:, np.newaxis]
            if one_class:
                scores = np.where(scores > 0, 1, -1)
            else:
                scores = transformed(scores, post_transform)
            return scores.astype(np.float32, copy=False)

        return run

    return svm_regressor


def svm_classifier_by(
    functions: Functions,
) -> Callable[..., Callable[..., tuple[Array, Array]]]:
    """The maker of SVMClassifier, given what it computes with."""

    def svm_classifier(
        x: Operand,
        *,
        classlabels_ints: Sequence[int] | None = None,
        classlabels_strings: Sequence[str] | None = None,
        coefficients: Sequence[float] | None = None,
        kernel_params: Sequence[float] | None = None,
        kernel_type: str = "LINEAR",
        post_transform: str = "NONE",
        prob_a: Sequence[float] | None = None,
        prob_b: Sequence[float] | None = None,
        rho: Sequence[float] | None = None,
        support_vectors: Sequence[float] | None = None,
        vectors_per_class: Sequence[int] | None = None,
    ) -> Callable[..., tuple[Array, Array]]:
        """SVMClassifier 1: labels `(N)` and float32 scores of rows of features.

        With support vectors, each pair of classes has a decision and the label is the class that
        wins most of them. The scores are one probability for each class if `prob_a` and `prob_b`
        are given, else the decisions, of which two classes have both signs. Without support
        vectors there is one linear score for each class and the label is that of the greatest; of
        two classes it is the second as soon as any score is positive (at least 0.5 if no
        coefficient is negative).
        """
        dtype = _dtype(x)
        labels = class_labels(classlabels_ints, classlabels_strings)
        weights = np.array(coefficients or (), dtype)
        bias = np.array(rho or (0.0,), dtype)
        if not sum(vectors_per_class or ()):
            return _linear_classifier(
                functions, labels, weights.reshape(len(labels), -1), bias[0], post_transform
            )
        counts = vectors_per_class or ()
        vectors = np.array(support_vectors or (), dtype).reshape(sum(counts), -1)
        kernel = _kernel(functions, vectors, kernel_type, kernel_params)
        decide = _decisions(functions, weights.reshape(-1, len(vectors)), bias, counts)
        pairs = list(itertools.combinations(range(len(labels)), 2))
        slopes, offsets = np.array(prob_a or (), dtype), np.array(prob_b or (), dtype)

        def run(x: Array) -> tuple[Array, Array]:
            decisions = decide(kernel(x))
            votes = np.zeros((len(decisions), len(labels)), np.int64)
            for (i, j), decision in zip(pairs, decisions.T, strict=True):
                votes[:, i] += decision > 0
                votes[:, j] += ~(decision > 0)
            if len(slopes):
                chances = 1 - logistic(decisions * slopes + offsets)
                scores = transformed(
                    _coupled(functions, chances, pairs, len(labels)), post_transform
                )
            elif len(pairs) == 1:
                mirrored = post_transform == "NONE"
                scores = two_scores(decisions[:, 0], post_transform, mirrored=mirrored)
            else:
                scores = transformed(decisions, post_transform)
            return labels[votes.argmax(axis=1)], scores.astype(np.float32, copy=False)

        return run

    return svm_classifier


def _linear_classifier(
    functions: Functions, labels: Array, weights: Array, bias: Array, post_transform: str
) -> Callable[..., tuple[Array, Array]]:
    only_positive = bool((weights >= 0).all())

    def run(x: Array) -> tuple[Array, Array]:
        scores = functions.product(feature_rows(x), weights.T) + bias
        chosen = scores.argmax(axis=1)
        if len(labels) == 2:
            top = scores.max(axis=1)
            chosen = np.where(top >= 0.5 if only_positive else top > 0, 1, chosen)
        scores = transformed(scores, post_transform)
        return labels[chosen], scores.astype(np.float32, copy=False)

    return run


def _dtype(x: Operand) -> type[np.float32] | type[np.float64]:
    return np.float64 if x.dtype == np.float64 else np.float32


def _kernel(
    functions: Functions, vectors: Array, kernel_type: str, kernel_params: Sequence[float] | None
) -> Callable[[Array], Array]:
    """`(N, F)` features to `(N, support vectors)`; ValueError for an unknown kernel."""
    gamma, coef0, degree = (vectors.dtype.type(p) for p in kernel_params or (0.0, 0.0, 0.0))

    def products(x: Array) -> Array:
        return functions.product(x, vectors.T)

    kernels: dict[str, Callable[[Array], Array]] = {
        "LINEAR": products,
        "POLY": lambda x: functions.power(gamma * products(x) + coef0, np.asarray(degree)),
        "SIGMOID": lambda x: functions.tanh(gamma * products(x) + coef0),
        "RBF": lambda x: functions.exp(-gamma * _squared_distances(functions, x, vectors)),
    }
    if kernel_type not in kernels:
        raise ValueError(f"kernel_type is {kernel_type!r}, expected one of {[*kernels]}")
    chosen = kernels[kernel_type]
    return lambda x: chosen(feature_rows(x))


def _squared_distances(functions: Functions, x: Array, vectors: Array) -> Array:
    # Differences first: |x|^2 + |v|^2 - 2 x v would lose the digits of near vectors.
    result = np.empty((len(x), len(vectors)), x.dtype)
    step = max(_BLOCK // max(vectors.size, 1), 1)
    for start in range(0, len(x), step):
        difference = x[start : start + step, np.newaxis] - vectors
        result[start : start + step] = functions.total(difference * difference, 2)
    return result


def _decisions(
    functions: Functions, weights: Array, rho: Array, counts: Sequence[int]
) -> Callable[[Array], Array]:
    """Kernel values to one decision for each pair of classes, in the order of the pairs.

    Row j - 1 of `weights` holds, for the vectors of class i < j, their weights against class j;
    row i, for the vectors of class j, theirs against class i.
    """
    ends = list(itertools.accumulate(counts, initial=0))
    parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
    pairs = list(itertools.combinations(range(len(counts)), 2))

    def decide(values: Array) -> Array:
        result = np.empty((len(values), len(pairs)), values.dtype)
        for at, (i, j) in enumerate(pairs):
            of_i = functions.product(values[:, parts[i]], weights[j - 1, parts[i]])
            of_j = functions.product(values[:, parts[j]], weights[i, parts[j]])
            result[:, at] = of_i + of_j + rho[at]
        return result

    return decide


def _coupled(
    functions: Functions, chances: Array, pairs: Sequence[tuple[int, int]], classes: int
) -> Array:
    """Class probabilities `(N, classes)` that fit the chances of each pair best.

    Pairwise coupling as libsvm has it: minimise p'Qp over probabilities p, coordinate by
    coordinate, in at most 100 rounds.
    """
    kind = chances.dtype.type
    chances = np.clip(chances, kind(1e-7), kind(1 - 1e-7))
    r = np.zeros((len(chances), classes, classes), chances.dtype)
    for (i, j), chance in zip(pairs, chances.T, strict=True):
        r[:, i, j], r[:, j, i] = chance, 1 - chance
    q = -r.transpose(0, 2, 1) * r
    diagonal = np.arange(classes)
    q[:, diagonal, diagonal] = functions.total(r * r, 1)
    p = np.full((len(chances), classes), 1 / classes, chances.dtype)
    left = np.arange(len(chances))
    for _ in range(100):
        qp = functions.product(q[left], p[left, :, np.newaxis])[..., 0]
        pqp = functions.total(p[left] * qp, 1)
        unsettled = np.abs(qp - pqp[:, np.newaxis]).max(axis=1) >= 0.005 / classes
        left, qp, pqp = left[unsettled], qp[unsettled], pqp[unsettled]
        if not len(left):
            break
        p[left] = _one_round(q[left], p[left], qp, pqp)
    return p


def _one_round(q: Array, p: Array, qp: Array, pqp: Array) -> Array:
    for t in range(p.shape[1]):
        step = (pqp - qp[:, t]) / q[:, t, t]
        pqp = (pqp + step * (step * q[:, t, t] + 2 * qp[:, t])) / ((1 + step) * (1 + step))
        qp = (qp + step[:, np.newaxis] * q[:, t]) / (1 + step)[:, np.newaxis]
        p[:, t] += step
        p = p / (1 + step)[:, np.newaxis]
    return p


def _sum(x: Array, axis: int) -> Any:
    return np.add.reduce(x, axis=axis)


def _tree_sum(x: Array, axis: int) -> Array:
    return tree_sum(x, (axis,))


_OF_NUMPY = Functions(np.matmul, np.power, np.tanh, np.exp, _sum)
_EXACT = Functions(product, POWER, TANH, EXP, _tree_sum)

maker("SVMRegressor", domain=ML, grade="reference")(svm_regressor_by(_OF_NUMPY))
maker("SVMRegressor", domain=ML, grade="exact")(svm_regressor_by(_EXACT))
maker("SVMClassifier", domain=ML, grade="reference")(svm_classifier_by(_OF_NUMPY))
maker("SVMClassifier", domain=ML, grade="exact")(svm_classifier_by(_EXACT))
