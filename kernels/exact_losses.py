"""The losses, FlexAttention and the scattering operators in exact mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foldline.kernels import gather_scatter as movement
from foldline.kernels.control_flow import Body
from foldline.kernels.exact_bits import canonical, canonicalised, from_ordered, ordered
from foldline.kernels.exact_products import product
from foldline.kernels.exact_softmax import log_softmax, softmax
from foldline.kernels.flex_attention import attended
from foldline.kernels.losses import class_loss, negative_log_likelihood_loss
from foldline.kernels.precision import rounded, widened
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE

kernel("NegativeLogLikelihoodLoss", grade="exact")(canonicalised(negative_log_likelihood_loss))


@kernel("SoftmaxCrossEntropyLoss", grade="exact")
@canonicalised
def softmax_cross_entropy_loss(
    scores: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    output_count: int = 1,
) -> Array | tuple[Array, Array]:
    """SoftmaxCrossEntropyLoss 12/13: the loss of LogSoftmax along axis 1, which it gives too."""
    log_prob = log_softmax(widened(scores), axis=1)
    weights = None if weights is None else widened(weights)
    loss = class_loss(log_prob, labels, weights, ignore_index, reduction)
    loss = rounded(loss, scores.dtype)
    return loss if output_count == 1 else (loss, rounded(log_prob, scores.dtype))


@kernel("FlexAttention", domain="ai.onnx.preview", grade="exact")
@canonicalised
def flex_attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    prob_mod: Body | None = None,
    scale: float | None = None,
    score_mod: Body | None = None,
    softmax_precision: int | None = None,
) -> Array:
    """FlexAttention 1: `prob_mod(softmax(score_mod(Q sqrt(s) @ (K sqrt(s))'))) @ V`."""
    precision = None if softmax_precision is None else BY_CODE[softmax_precision].numpy
    return attended(q, k, v, product, softmax, score_mod, prob_mod, scale, precision)


@kernel("ScatterElements", grade="exact")
def scatter_elements(
    data: Array, indices: Array, updates: Array, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """ScatterElements 11+: updates are combined in the order of their indices."""

    def scatter(data: Array, updates: Array, reduction: str) -> Array:
        return movement.scatter_elements(data, indices, updates, axis=axis, reduction=reduction)

    return _scattered(scatter, data, updates, reduction)


@kernel("ScatterND", grade="exact")
def scatter_nd(data: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Array:
    """ScatterND 11+: updates are combined in the order of their indices."""

    def scatter(data: Array, updates: Array, reduction: str) -> Array:
        return movement.scatter_nd(data, indices, updates, reduction=reduction)

    return _scattered(scatter, data, updates, reduction)


def _scattered(
    scatter: Callable[[Array, Array, str], Array], data: Array, updates: Array, reduction: str
) -> Array:
    is_extreme = reduction in ("max", "min") and data.dtype.kind not in "biu"
    if not is_extreme:
        result = scatter(data, updates, reduction)
        return result if reduction == "none" else canonical(result)
    # Among integers in the order of the floats no two zeros, and no two NaNs, are equal.
    if reduction == "max":
        return from_ordered(scatter(ordered(data), ordered(updates), "max"), data.dtype)
    turned: Any = np.negative
    found = scatter(ordered(turned(data)), ordered(turned(updates)), "max")
    return canonical(np.asarray(turned(from_ordered(found, data.dtype))))
