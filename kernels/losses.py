"""NegativeLogLikelihoodLoss 12..22 and SoftmaxCrossEntropyLoss 12..13."""

from __future__ import annotations

import numpy as np

from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.precision import rounded, widened
from foldline.kernels.registry import Array, kernel
from foldline.kernels.softmax import log_softmax_reference


@kernel("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    x: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """NegativeLogLikelihoodLoss 12/13/22: of log-probabilities `(N, C, …)` and classes `(N, …)`.

    `-x[class] * weight[class]`, 0 where the class is `ignore_index`; then "none", "sum", or
    "mean", which divides by the sum of the weights that count. IndexError when another class is
    not in `[0, C)`, ValueError for an unknown reduction.
    """
    loss = class_loss(
        widened(x), target, None if weight is None else widened(weight), ignore_index, reduction
    )
    return rounded(loss, x.dtype)


@kernel("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    scores: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    output_count: int = 1,
) -> Array | tuple[Array, Array]:
    """SoftmaxCrossEntropyLoss 12/13: the loss above of LogSoftmax along axis 1, which it gives too.

    Raises like NegativeLogLikelihoodLoss.
    """
    log_prob = log_softmax_reference(widened(scores), axis=1)
    loss = class_loss(
        log_prob, labels, None if weights is None else widened(weights), ignore_index, reduction
    )
    loss = rounded(loss, scores.dtype)
    return loss if output_count == 1 else (loss, rounded(log_prob, scores.dtype))


def class_loss(
    log_prob: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int | None,
    reduction: str,
) -> Array:
    counts = np.ones(target.shape, np.bool_) if ignore_index is None else target != ignore_index
    classes = np.where(counts, target, 0)
    wrong = (classes < 0) | (classes >= log_prob.shape[1])
    if wrong.any():
        raise IndexError(
            f"class {classes[wrong].flat[0]} is not one of the {log_prob.shape[1]} of the input"
        )
    picked = np.take_along_axis(log_prob, np.expand_dims(classes, 1), axis=1)[:, 0]
    weights = counts.astype(log_prob.dtype)
    if weight is not None:
        weights *= weight[classes]
    loss = np.where(counts, -picked * weights, log_prob.dtype.type(0))
    if reduction == "none":
        return loss
    if reduction not in ("sum", "mean"):
        raise ValueError(f"reduction is {reduction!r}, expected 'none', 'sum' or 'mean'")
    total = tree_sum(loss, None)
    return total if reduction == "sum" else np.asarray(total / tree_sum(weights, None))
