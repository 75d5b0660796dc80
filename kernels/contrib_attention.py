"""Attention, MultiHeadAttention and QAttention of ONNX Runtime, on the Attention of ONNX.

    Y = softmax(Q K' scale + bias) @ V, for each head

`bias` is `attention_bias`, plus `mask_filter_value` where the mask hides a key; what lies after a
query is not seen at all when the node is unidirectional.

Domain com.microsoft; version 1 of each operator. The forms that ONNX Runtime has for its GPU
kernels alone (rotary embedding inside, a past of Attention in the buffer of the present) raise
ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from foldline.kernels.attention_fast import attention
from foldline.kernels.contrib_integer_matmul import matmul_integer_to_float
from foldline.kernels.precision import rounded, widened
from foldline.kernels.registry import Array, Operand, kernel, maker, run_once

DOMAIN = "com.microsoft"
FILTER = -10000.0
"""What is added to hidden scores unless the node says otherwise."""
BIASED_SCORES = 2
"""The mode in which Attention of ONNX gives the scores before the softmax."""


@dataclass(frozen=True)
class _Scores:
    """How scores are made."""

    heads: int
    scale: float | None
    """0 and None both mean the default."""
    unidirectional: int
    hidden: float
    """What is added to the score of a key that the mask hides."""


@kernel("Attention", domain=DOMAIN)
def fused_attention(
    x: Array,
    weights: Array,
    bias: Array | None = None,
    mask_index: Array | None = None,
    past: Array | None = None,
    attention_bias: Array | None = None,
    past_sequence_length: Array | None = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = FILTER,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    rotary_embedding_dim: int | None = None,
    scale: float | None = None,
    unidirectional: int = 0,
    output_count: int = 1,
) -> Array | tuple[Array, ...]:
    """Attention: queries, keys and values are `x @ weights + bias`, side by side.

    `x` is `(batch, length, size)`, `past` and `present` are `(2, batch, heads, length, size)`.
    """
    _refuse(do_rotary, past_present_share_buffer, past)
    projected = widened(x).reshape(-1, x.shape[-1]) @ widened(weights)
    projected = projected if bias is None else projected + widened(bias)
    return _self_attention(
        rounded(projected, x.dtype).reshape(*x.shape[:2], -1),
        qkv_hidden_sizes or (weights.shape[1] // 3,) * 3,
        past,
        _Scores(num_heads, scale, unidirectional, mask_filter_value),
        mask_index,
        attention_bias,
        output_count,
    )


@maker("QAttention", domain=DOMAIN)
def quantised_attention(
    x: Operand,
    weight: Operand,
    bias: Operand,
    input_scale: Operand,
    weight_scale: Operand,
    mask_index: Operand | None = None,
    input_zero_point: Operand | None = None,
    weight_zero_point: Operand | None = None,
    past: Operand | None = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = FILTER,
    past_present_share_buffer: int = 0,
    scale: float | None = None,
    unidirectional: int = 0,
    output_count: int = 1,
) -> Callable[..., Array | tuple[Array, ...]]:
    """QAttention: Attention whose projection is a MatMulIntegerToFloat.

    Scale and zero point of `weight` are one number or have one for each column.
    """
    _refuse(do_rotary, past_present_share_buffer, past)
    project = matmul_integer_to_float(
        x, weight, input_scale, weight_scale, input_zero_point, weight_zero_point, bias
    )
    sizes = (weight.shape[1] // 3,) * 3
    scores = _Scores(num_heads, scale, unidirectional, mask_filter_value)

    def run(
        x: Array,
        weight: Array,
        bias: Array,
        input_scale: Array,
        weight_scale: Array,
        mask_index: Array | None = None,
        input_zero_point: Array | None = None,
        weight_zero_point: Array | None = None,
        past: Array | None = None,
    ) -> Array | tuple[Array, ...]:
        projected = project(
            x, weight, input_scale, weight_scale, input_zero_point, weight_zero_point, bias
        )
        return _self_attention(projected, sizes, past, scores, mask_index, None, output_count)

    return run


@kernel("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention(
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bias: Array | None = None,
    key_padding_mask: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    past_sequence_length: Array | None = None,
    cache_indirection: Array | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = FILTER,
    scale: float | None = None,
    unidirectional: int = 0,
    output_count: int = 1,
) -> Array | tuple[Array, ...]:
    """MultiHeadAttention: queries `(batch, length, hidden)`, keys and values like them.

    Keys and values may be `(batch, heads, length, size)`; packed are `(batch, length, heads, 3,
    size)` in `query` or `(batch, length, heads, 2, size)` in `key`. `bias` is that of queries,
    keys and values, one after the other. Gives the result, present keys and values, and the
    biased scores.

    With `past_sequence_length` the past is the beginning of a buffer of keys or values, and the
    present the buffer with the new ones after it. `cache_indirection`, `(batch, beams, positions)`,
    then says whose past of the same batch a beam has at each position.
    """
    parts = _parts(query, key, value)
    if bias is not None:
        sizes = [
            part.shape[1] * part.shape[3] if part.ndim == 4 else part.shape[2] for part in parts
        ]
        shifts = np.split(bias, np.cumsum(sizes[:2]))
        parts = [
            part + shift if part.ndim == 3 else part
            for part, shift in zip(parts, shifts, strict=True)
        ]
    scores = _Scores(num_heads, scale, unidirectional, mask_filter_value)
    if past_sequence_length is None or past_key is None or past_value is None:
        past = past_key, past_value
        return _attend(parts, past, scores, key_padding_mask, attention_bias, output_count)
    buffers, length = (past_key, past_value), int(past_sequence_length.item())
    past = [_past_of_beams(x[:, :, :length], cache_indirection) for x in buffers]
    results = _attend(parts, past, scores, key_padding_mask, attention_bias, max(3, output_count))
    presents = [
        np.concatenate((x[:, :, :length], made[:, :, length:], x[:, :, made.shape[2] :]), axis=2)
        for x, made in zip(buffers, results[1:3], strict=True)
    ]
    return (results[0], *presents, *results[3:])[:output_count]


def _past_of_beams(past: Array, indirection: Array | None) -> Array:
    """The past of each beam, `(batch * beams, heads, positions, size)`."""
    if indirection is None:
        return past
    batch, beams, _ = indirection.shape
    length = past.shape[2]
    firsts = np.arange(0, batch * beams, beams, dtype=np.intp)
    rows = (firsts[:, None, None] + indirection[:, :, :length]).reshape(-1, length)
    chosen = past[rows, :, np.arange(length, dtype=np.intp)]
    return np.ascontiguousarray(chosen.transpose(0, 2, 1, 3))


def _self_attention(
    projected: Array,
    sizes: Sequence[int],
    past: Array | None,
    scores: _Scores,
    mask: Array | None,
    bias: Array | None,
    output_count: int,
) -> Array | tuple[Array, ...]:
    """The results of Attention; `projected` are queries, keys and values of `sizes`."""
    parts = np.split(projected, np.cumsum(sizes[:2]), axis=-1)
    caches = (None, None) if past is None else (past[0], past[1])
    if output_count == 1:
        return _attend(parts, caches, scores, mask, bias, 1)[0]
    y, k, v = _attend(parts, caches, scores, mask, bias, 3)
    return y, np.stack((k, v))


def _parts(query: Array, key: Array | None, value: Array | None) -> list[Array]:
    """Queries, keys and values; packed ones taken apart."""
    if key is None:
        return [_packed(query, n) for n in range(3)]
    if value is None:
        return [query, *(_packed(key, n) for n in range(2))]
    return [query, key, value]


def _packed(x: Array, which: int) -> Array:
    part = x[:, :, :, which]
    return part.reshape(*x.shape[:2], -1)


def _attend(
    parts: Sequence[Array],
    past: Sequence[Array | None],
    scores: _Scores,
    mask: Array | None,
    bias: Array | None,
    output_count: int,
) -> tuple[Array, ...]:
    """The results of Attention 24 of ONNX; what it does not see at all scores the least number."""
    q, k, v = parts
    before = 0 if past[0] is None else past[0].shape[2]
    keys = k.shape[1 if k.ndim == 3 else 2] + before
    is_causal = scores.unidirectional
    if is_causal and keys > before + q.shape[1]:
        # The last query sees all: ONNX Runtime takes the keys to end with it.
        is_causal, later = 0, np.triu(np.full((q.shape[1], keys), -np.inf, q.dtype), before + 1)
        later[-1:] = 0
        bias = later[None, None] if bias is None else bias + later
    if mask is not None:
        added = np.where(_shown(mask, len(q), keys), 0, scores.hidden).astype(q.dtype)
        bias = added if bias is None else bias + added
    optional = [bias, *past]
    made = attention(
        *[Operand(x.shape, x.dtype) for x in parts],
        *[None if x is None else Operand(x.shape, x.dtype) for x in optional],
        is_causal=is_causal,
        q_num_heads=scores.heads,
        kv_num_heads=scores.heads,
        scale=scores.scale or None,
        qk_matmul_output_mode=BIASED_SCORES,
        output_count=output_count,
    )
    results = run_once(made, [*parts, *optional])
    if output_count == 1:
        return (results,)
    y, k, v, *shown = results
    return (y, k, v, *(np.maximum(x, np.finfo(x.dtype).min) for x in shown))


def _shown(mask: Array, batch: int, keys: int) -> Array:
    """Which keys are seen, as `(batch, 1, queries or 1, keys)`.

    `mask` of one axis: for each batch where its keys end, and then, if as many follow, where they
    begin; of two or three: 1 for each key that is seen, in each batch, or by each query too.
    """
    if mask.ndim == 1 and len(mask) in (batch, 2 * batch, 3 * batch + 2):
        places = np.arange(keys)
        starts = mask[batch:, None] if len(mask) == 2 * batch else 0
        seen = (places < mask[:batch, None]) & (places >= starts)
        return seen[:, None, None]
    if mask.ndim == 2:
        # One column for all keys is how models say that they have no mask.
        return np.broadcast_to((mask > 0) | (mask.shape[1] == 1), (batch, keys))[:, None, None]
    if mask.ndim == 3:
        return mask[:, None] > 0
    raise ValueError(f"a mask of shape {mask.shape} is not supported")


def _refuse(do_rotary: int, share_buffer: int, past: Array | Operand | None) -> None:
    if do_rotary:
        raise ValueError("do_rotary is not supported")
    if share_buffer and past is not None:
        raise ValueError("past_present_share_buffer is not supported")
