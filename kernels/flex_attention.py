"""FlexAttention 1 of ai.onnx.preview: attention whose scores and shares the model's graphs change.

    Y = prob_mod(softmax(score_mod(Q sqrt(scale) @ (K sqrt(scale))'))) @ V

A query all of whose scores are -inf gives NaN, as the Softmax of ONNX does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from foldline.kernels.attention import score_scale
from foldline.kernels.control_flow import Body
from foldline.kernels.precision import widened
from foldline.kernels.registry import Array, kernel
from foldline.kernels.softmax import softmax_reference
from foldline.support.dtypes import BY_CODE


@kernel("FlexAttention", domain="ai.onnx.preview")
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
    """FlexAttention 1: `(batch, heads, length, size)`; heads of keys serve groups of queries.

    Scores and shares are float32, float64 for that, or of `softmax_precision`; the graphs take
    and give one `(batch, heads, queries, keys)` each. ValueError when they change its shape.
    """
    precision = None if softmax_precision is None else BY_CODE[softmax_precision].numpy
    return attended(q, k, v, np.matmul, softmax_reference, score_mod, prob_mod, scale, precision)


def attended(
    q: Array,
    k: Array,
    v: Array,
    multiply: Callable[[Array, Array], Array],
    softmax: Callable[[Array], Array],
    score_mod: Body | None,
    prob_mod: Body | None,
    scale: float | None,
    precision: np.dtype[Any] | None,
) -> Array:
    """FlexAttention with a given product of matrices and a given softmax of the last axis."""
    dtype = q.dtype
    heads, kv_heads = q.shape[1], k.shape[1]
    if heads % kv_heads:
        raise ValueError(f"{heads} heads of queries cannot share {kv_heads} heads of keys")
    if precision is None:
        precision = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    root = np.array(math.sqrt(score_scale(scale, q.shape[-1]))).astype(dtype)
    keys = np.repeat(k * root, heads // kv_heads, axis=1).swapaxes(-1, -2)
    scores = multiply(widened(q * root), widened(keys)).astype(dtype, copy=False)
    scores = _modified(scores.astype(precision, copy=False), score_mod, "score_mod")
    shares = _modified(softmax(scores), prob_mod, "prob_mod")
    values = np.repeat(v.astype(precision, copy=False), heads // kv_heads, axis=1)
    y = multiply(widened(shares), widened(values)).astype(precision, copy=False)
    return y.astype(v.dtype, copy=False)


def _modified(x: Array, body: Body | None, name: str) -> Array:
    if body is None:
        return x
    results: tuple[Array, ...] = body(x)
    (result,) = results
    if result.shape != x.shape:
        raise ValueError(f"{name} turned shape {x.shape} into {result.shape}")
    return result.astype(x.dtype, copy=False)
