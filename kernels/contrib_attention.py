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

import numpy as np

from foldline.kernels.contrib_heads import (
    FILTER,
    Attend,
    Scores,
    attend_in_tiles,
    attended,
    ends_of,
    parts_of,
    past_of_beams,
    refuse,
    self_attention,
)
from foldline.kernels.contrib_integer_matmul import matmul_integer_to_float
from foldline.kernels.precision import rounded, widened
from foldline.kernels.registry import Array, Operand, kernel, maker

DOMAIN = "com.microsoft"
Results = Array | tuple[Array, ...]


def attention_by(product: Callable[..., Array], attend: Attend) -> Callable[..., Results]:
    """The kernel of Attention, given its products and its attention."""

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
    ) -> Results:
        """Attention: queries, keys and values are `x @ weights + bias`, side by side.

        `x` is `(batch, length, size)`, `past` and `present` are `(2, batch, heads, length, size)`.
        """
        refuse(do_rotary, past_present_share_buffer, past)
        projected = product(widened(x).reshape(-1, x.shape[-1]), widened(weights))
        projected = projected if bias is None else projected + widened(bias)
        return self_attention(
            attend,
            rounded(projected, x.dtype).reshape(*x.shape[:2], -1),
            qkv_hidden_sizes or (weights.shape[1] // 3,) * 3,
            past,
            Scores(num_heads, scale, unidirectional, mask_filter_value),
            mask_index,
            attention_bias,
            output_count,
        )

    return fused_attention


kernel("Attention", domain=DOMAIN)(attention_by(np.matmul, attend_in_tiles))


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
) -> Callable[..., Results]:
    """QAttention: Attention whose projection is a MatMulIntegerToFloat.

    Scale and zero point of `weight` are one number or have one for each column.
    """
    refuse(do_rotary, past_present_share_buffer, past)
    project = matmul_integer_to_float(
        x, weight, input_scale, weight_scale, input_zero_point, weight_zero_point, bias
    )
    sizes = (weight.shape[1] // 3,) * 3
    scores = Scores(num_heads, scale, unidirectional, mask_filter_value)

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
    ) -> Results:
        projected = project(
            x, weight, input_scale, weight_scale, input_zero_point, weight_zero_point, bias
        )
        return self_attention(
            attend_in_tiles, projected, sizes, past, scores, mask_index, None, output_count
        )

    return run


def multi_head_attention_by(attend: Attend) -> Callable[..., tuple[Array, ...]]:
    """The kernel of MultiHeadAttention, given its attention."""

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
    ) -> tuple[Array, ...]:
        """MultiHeadAttention: queries `(batch, length, hidden)`, keys and values like them.

        Keys and values may be `(batch, heads, length, size)`; packed are `(batch, length, heads, 3,
        size)` in `query` or `(batch, length, heads, 2, size)` in `key`. `bias` is that of queries,
        keys and values, one after the other. Gives the result, present keys and values, and the
        biased scores.

        With `past_sequence_length` the past is the beginning of a buffer of keys or values, and
        the present the buffer with the new ones after it. `cache_indirection`, `(batch, beams,
        positions)`, then says whose past of the same batch a beam has at each position.
        """
        parts = parts_of(query, key, value)
        if bias is not None:
            sizes = [
                part.shape[1] * part.shape[3] if part.ndim == 4 else part.shape[2] for part in parts
            ]
            shifts = np.split(bias, ends_of(sizes))
            parts = [
                part + shift if part.ndim == 3 else part
                for part, shift in zip(parts, shifts, strict=True)
            ]
        scores = Scores(num_heads, scale, unidirectional, mask_filter_value)
        if past_sequence_length is None or past_key is None or past_value is None:
            past = past_key, past_value
            return attended(
                attend, parts, past, scores, key_padding_mask, attention_bias, output_count
            )
        buffers, length = (past_key, past_value), int(past_sequence_length.item())
        past = [past_of_beams(x[:, :, :length], cache_indirection) for x in buffers]
        results = attended(
            attend, parts, past, scores, key_padding_mask, attention_bias, max(3, output_count)
        )
        presents = [
            np.concatenate(
                (x[:, :, :length], made[:, :, length:], x[:, :, made.shape[2] :]), axis=2
            )
            for x, made in zip(buffers, results[1:3], strict=True)
        ]
        return (results[0], *presents, *results[3:])[:output_count]

    return multi_head_attention


kernel("MultiHeadAttention", domain=DOMAIN)(multi_head_attention_by(attend_in_tiles))
