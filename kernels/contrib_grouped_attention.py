"""GroupQueryAttention and RotaryEmbedding of ONNX Runtime, as decoders with a cache use them.

Domain com.microsoft; version 1 of each operator. What the rows of a batch have in the cache may
differ: row `n` has `seqlens_k[n] + 1` keys with the new ones, which come last.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels.attention import unpacked
from foldline.kernels.contrib_heads import Attend, attend_in_tiles
from foldline.kernels.normalisation import rms_normalization_reference
from foldline.kernels.registry import Array, kernel
from foldline.kernels.rotary_embedding import rotary_embedding

DOMAIN = "com.microsoft"


@kernel("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding_of_positions(
    x: Array,
    position_ids: Array,
    cos_cache: Array,
    sin_cache: Array,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Array:
    """RotaryEmbedding: RotaryEmbedding 23 of ONNX at positions `(batch, length)`.

    One position is that of the first element of each sequence. The size of a head is twice the
    number of angles unless `num_heads` is given. ValueError for another `scale` than 1.
    """
    if scale != 1.0:
        raise ValueError(f"scale is {scale}, only 1 is supported")
    batch, length = x.shape[0], x.shape[1 if x.ndim == 3 else 2]
    if position_ids.size == 1 and position_ids.ndim < 2:
        places = np.add(position_ids.reshape(1), np.arange(length, dtype=np.int64))
        position_ids = np.broadcast_to(places, (batch, length))
    heads = num_heads or x.shape[-1] // (2 * cos_cache.shape[1])
    return rotary_embedding(
        x,
        cos_cache,
        sin_cache,
        position_ids,
        interleaved=interleaved,
        num_heads=heads if x.ndim == 3 else None,
        rotary_embedding_dim=rotary_embedding_dim,
    )


def group_query_attention_by(
    attend: Attend, normalise: Callable[..., Array]
) -> Callable[..., tuple[Array, Array, Array]]:
    """The kernel of GroupQueryAttention, given its attention and the norm of its heads."""

    def group_query_attention(
        query: Array,
        key: Array | None,
        value: Array | None,
        past_key: Array | None,
        past_value: Array | None,
        seqlens_k: Array,
        total_sequence_length: Array,
        cos_cache: Array | None = None,
        sin_cache: Array | None = None,
        position_ids: Array | None = None,
        attention_bias: Array | None = None,
        head_sink: Array | None = None,
        k_scale: Array | None = None,
        v_scale: Array | None = None,
        q_norm_weight: Array | None = None,
        k_norm_weight: Array | None = None,
        query_seqlens: Array | None = None,
        *,
        num_heads: int,
        kv_num_heads: int,
        causal: int = 1,
        do_rotary: int = 0,
        k_norm_epsilon: float | None = None,
        k_quant_type: str = "NONE",
        kv_cache_bit_width: int = 0,
        local_window_size: int = -1,
        q_norm_epsilon: float | None = None,
        qk_norm_epsilon: float = 1e-6,
        qk_output: int = 0,
        rotary_interleaved: int = 0,
        scale: float | None = None,
        sliding_window_cache: int = 0,
        smooth_softmax: int = -1,
        softcap: float = 0.0,
        v_quant_type: str = "NONE",
    ) -> tuple[Array, Array, Array]:
        """GroupQueryAttention: queries `(batch, length, heads * size)`, or all three side by side.

        Gives the result and the cache, `(batch, kv heads, positions, size)`. A query sees the keys
        up to its own position, the last `local_window_size` of them if that is positive, or, if
        the node is not causal, all. Norms are over each head, before the rotation. ValueError for
        quantised and sliding caches, padded queries and `qk_output`.
        """
        refused = (k_scale, v_scale, query_seqlens)
        if any(x is not None for x in refused) or qk_output or sliding_window_cache:
            raise ValueError("only attention with a plain cache is supported")
        batch, length = query.shape[:2]
        parts = _split(query, num_heads, kv_num_heads) if key is None else (query, key, value)
        heads = (num_heads, kv_num_heads, kv_num_heads)
        q, k, v = (unpacked(x, n) for x, n in zip(parts, heads, strict=True) if x is not None)
        if q_norm_weight is not None and k_norm_weight is not None:
            q_epsilon, k_epsilon = (
                q_norm_epsilon or qk_norm_epsilon,
                k_norm_epsilon or qk_norm_epsilon,
            )
            q = normalise(q, q_norm_weight, epsilon=q_epsilon)
            k = normalise(k, k_norm_weight, epsilon=k_epsilon)
        total = int(total_sequence_length.item())
        starts = seqlens_k.reshape(-1).astype(np.int64) + 1 - length
        starts = np.zeros_like(starts) if length == total else starts
        places = starts[:, None] + np.arange(length, dtype=np.int64)
        if do_rotary and cos_cache is not None and sin_cache is not None:
            q, k = (
                rotary_embedding(
                    np.ascontiguousarray(x),
                    cos_cache,
                    sin_cache,
                    places if position_ids is None else position_ids,
                    interleaved=rotary_interleaved,
                    rotary_embedding_dim=2 * cos_cache.shape[1],
                )
                for x in (q, k)
            )
        count = max(total, 0 if past_key is None else past_key.shape[2])
        keys, values = _cached(past_key, k, starts, count), _cached(past_value, v, starts, count)
        last_seen = places if causal else np.broadcast_to(places[:, -1:], places.shape)
        bias = _hiding(last_seen, count, local_window_size).astype(q.dtype)
        if attention_bias is not None:
            unbiased = ((0, 0), (0, 0), (0, 0), (0, count - attention_bias.shape[-1]))
            bias = bias + np.pad(attention_bias, unbiased)
        if head_sink is None and smooth_softmax == 1:
            head_sink = np.zeros(num_heads, q.dtype)
        y = _attended(attend, q, keys, values, bias, head_sink, scale or None, softcap)
        return y.transpose(0, 2, 1, 3).reshape(batch, length, -1), keys, values

    return group_query_attention


def _split(query: Array, heads: int, kv_heads: int) -> list[Array]:
    """Queries, keys and values that lie side by side."""
    size = query.shape[2] // (heads + 2 * kv_heads)
    ends = (size * heads, size * (heads + kv_heads))
    return [np.ascontiguousarray(part) for part in np.split(query, ends, axis=2)]


def _attended(
    attend: Attend,
    q: Array,
    keys: Array,
    values: Array,
    bias: Array,
    sinks: Array | None,
    scale: float | None,
    softcap: float,
) -> Array:
    """Attention of ONNX. A sink is a score that a head has beside those of its keys.

    It is that of one key and value more, of zeros, whose bias it is.
    """
    seen, content = keys, values
    if sinks is not None:
        end = ((0, 0), (0, 0), (0, 1), (0, 0))
        seen, content = np.pad(keys, end), np.pad(values, end)
        shape = (len(q), len(sinks), q.shape[2], bias.shape[3])
        last = np.broadcast_to(sinks[:, None, None], (*shape[:3], 1))
        bias = np.concatenate((np.broadcast_to(bias, shape), last), axis=3)
    return attend(np.ascontiguousarray(q), seen, content, bias, scale=scale, softcap=softcap)


def _hiding(places: Array, count: int, window: int) -> Array:
    """-inf, `(batch, 1, queries, count)`, where a query at a place does not see a key."""
    behind = np.subtract(places[:, None, :, None], np.arange(count, dtype=np.int64))
    limit = window if window > 0 else np.iinfo(np.int64).max
    return np.where((behind >= 0) & (behind < limit), 0, -np.inf)


def _cached(past: Array | None, new: Array, starts: Array, count: int) -> Array:
    """The cache with the new entries of each row of the batch from its start on."""
    batch, heads, length, size = new.shape
    cache = np.zeros((batch, heads, count, size), new.dtype)
    for row, start in enumerate(starts.tolist()):
        if past is not None:
            cache[row, :, :start] = past[row, :, :start]
        cache[row, :, start : start + length] = new[row, :, : count - start]
    return cache


kernel("GroupQueryAttention", domain=DOMAIN)(
    group_query_attention_by(attend_in_tiles, rms_normalization_reference)
)
