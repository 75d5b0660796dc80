"""Attention 23..25: scaled dot products of queries and keys, softmax, times values.

    scores = softcap(Q sqrt(scale) @ (K sqrt(scale))') + bias
    Y      = softmax(scores) @ V

The reference follows ONNX's function body: what it computes for a narrow float is computed in
float32 and rounded after each of its steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from foldline.kernels.attention_bias import Visibility, attention_bias, fully_masked
from foldline.kernels.precision import stepped, widened, working_dtype
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE

Function: TypeAlias = Callable[..., Array]


def attention_by(
    product: Function, tanh: Function, softmax: Function
) -> Callable[..., Array | tuple[Array, ...]]:
    """The kernel of Attention, given what computes its products, its caps and its shares."""

    def attention(
        q: Array,
        k: Array,
        v: Array,
        attn_mask: Array | None = None,
        past_key: Array | None = None,
        past_value: Array | None = None,
        nonpad_kv_seqlen: Array | None = None,
        *,
        is_causal: int = 0,
        kv_num_heads: int | None = None,
        left_window_size: int = -1,
        q_num_heads: int | None = None,
        qk_matmul_output_mode: int = 0,
        right_window_size: int = -1,
        scale: float | None = None,
        softcap: float = 0.0,
        softmax_precision: int | None = None,
        output_count: int = 1,
    ) -> Array | tuple[Array, ...]:
        """Attention 23/24/25: `(batch, heads, length, size)` or, packed, `(batch, length, hidden)`.

        Gives Y, the present keys and values, and the scores that `qk_matmul_output_mode` asks for.
        A query that sees no key gives zeros. ValueError when inputs do not fit together.
        """
        dtype, packed = q.dtype, q.ndim == 3
        q, k, v = unpacked(q, q_num_heads), unpacked(k, kv_num_heads), unpacked(v, kv_num_heads)
        check_caches(past_key, past_value, nonpad_kv_seqlen)
        past = 0 if past_key is None else past_key.shape[2]
        k, v = present(past_key, k), present(past_value, v)
        visibility = Visibility.of(
            q.shape[2], k.shape[2], is_causal, left_window_size, right_window_size
        )
        work = working_dtype(dtype)
        bias = attention_bias(visibility, attn_mask, past, nonpad_kv_seqlen, work)

        root = widened(np.array(math.sqrt(score_scale(scale, q.shape[-1]))).astype(dtype))
        keys = np.repeat(k, q.shape[1] // k.shape[1], axis=1).swapaxes(-1, -2)
        raw = stepped(
            product(stepped(widened(q) * root, dtype), stepped(widened(keys) * root, dtype)), dtype
        )
        capped = raw
        if softcap > 0:
            cap = work.type(softcap)
            capped = stepped(tanh(raw / cap) * cap, dtype)
        biased = capped if bias is None else stepped(capped + bias, dtype)
        precision = BY_CODE[softmax_precision].numpy if softmax_precision else dtype
        shares = softmax(biased.astype(precision, copy=False))
        masked = fully_masked(bias)
        if masked is not None:
            shares = np.where(masked, shares.dtype.type(0), shares)
        shares = shares.astype(dtype, copy=False)
        values = np.repeat(widened(v), q.shape[1] // v.shape[1], axis=1)
        y = product(widened(shares), values).astype(dtype)
        if packed:
            y = y.transpose(0, 2, 1, 3).reshape(*y.shape[::2], y.shape[1] * y.shape[3])
        if output_count == 1:
            return y
        shown = (raw, capped, biased, shares)[qk_matmul_output_mode]
        k, v = (x.copy() if past_key is None else x for x in (k, v))
        return (y, k, v, shown.astype(dtype))[:output_count]

    return attention


def unpacked(x: Array, heads: int | None) -> Array:
    """A view `(batch, heads, length, size)` of that or of `(batch, length, heads * size)`."""
    if x.ndim == 4:
        return x
    if not heads:
        raise ValueError(f"an input of shape {x.shape} needs the number of heads")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def present(past: Array | None, x: Array) -> Array:
    """Keys or values after those of the past, if any."""
    return x if past is None else np.concatenate((past, x), axis=2)


def check_caches(past_key: Any, past_value: Any, lengths: Any) -> None:
    """ValueError when the two kinds of cache are mixed, or one has only keys or values."""
    if (past_key is None) != (past_value is None):
        raise ValueError("past_key and past_value must be given together")
    if past_key is not None and lengths is not None:
        raise ValueError("nonpad_kv_seqlen cannot be combined with past_key and past_value")


def score_scale(scale: float | None, head_size: int) -> float:
    """`scale`, by default `1 / sqrt(head_size)`."""
    return 1 / math.sqrt(head_size) if scale is None else scale


def softmax_rows(scores: Array) -> Array:
    """Softmax of the last axis in the dtype of `scores`, rounded after each step of its body.

    Zeros for a row that is -inf throughout, or empty.
    """
    dtype = scores.dtype
    scores = widened(scores)
    greatest = np.maximum.reduce(scores, axis=-1, keepdims=True, initial=-np.inf)
    greatest[np.isneginf(greatest)] = 0
    powers = stepped(np.exp(stepped(scores - greatest, dtype)), dtype)
    totals = stepped(np.add.reduce(powers, axis=-1, keepdims=True), dtype)
    totals[totals == 0] = 1
    return (powers / totals).astype(dtype, copy=False)


attention_reference = kernel("Attention")(attention_by(np.matmul, np.tanh, softmax_rows))
