"""What the attentions of ONNX Runtime share: their heads, masks and caches.

They are made of an attention of ONNX on arrays, `Attend`; which one decides the mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from foldline.kernels.attention_fast import attention
from foldline.kernels.registry import Array, Operand, run_once

Attend: TypeAlias = Callable[..., Any]
"""Attention 24 of ONNX: queries, keys, values, bias, past keys and past values, if any."""

FILTER = -10000.0
"""What is added to hidden scores unless the node says otherwise."""
BIASED_SCORES = 2
"""The mode in which Attention of ONNX gives the scores before the softmax."""


@dataclass(frozen=True)
class Scores:
    """How scores are made."""

    heads: int
    scale: float | None
    """0 and None both mean the default."""
    unidirectional: int
    hidden: float
    """What is added to the score of a key that the mask hides."""


def attend_in_tiles(
    q: Array, k: Array, v: Array, *optional: Array | None, **attributes: Any
) -> Any:
    """Attention of ONNX by the kernel of fast mode."""
    made = attention(
        *(Operand(x.shape, x.dtype) for x in (q, k, v)),
        *(None if x is None else Operand(x.shape, x.dtype) for x in optional),
        **attributes,
    )
    return run_once(made, [q, k, v, *optional])


def past_of_beams(past: Array, indirection: Array | None) -> Array:
    """The past of each beam, `(batch * beams, heads, positions, size)`."""
    if indirection is None:
        return past
    batch, beams, _ = indirection.shape
    length = past.shape[2]
    firsts = np.arange(0, batch * beams, beams, dtype=np.intp)
    rows = (firsts[:, None, None] + indirection[:, :, :length]).reshape(-1, length)
    chosen = past[rows, :, np.arange(length, dtype=np.intp)]
    return np.ascontiguousarray(chosen.transpose(0, 2, 1, 3))


def self_attention(
    attend: Attend,
    projected: Array,
    sizes: Sequence[int],
    past: Array | None,
    scores: Scores,
    mask: Array | None,
    bias: Array | None,
    output_count: int,
) -> Array | tuple[Array, ...]:
    """The results of Attention; `projected` are queries, keys and values of `sizes`."""
    parts = np.split(projected, ends_of(sizes), axis=-1)
    caches = (None, None) if past is None else (past[0], past[1])
    if output_count == 1:
        return attended(attend, parts, caches, scores, mask, bias, 1)[0]
    y, k, v = attended(attend, parts, caches, scores, mask, bias, 3)
    return y, np.stack((k, v))


def ends_of(sizes: Sequence[int]) -> list[int]:
    """Where queries and keys end that lie beside values."""
    return list(itertools.accumulate(sizes[:2]))


def parts_of(query: Array, key: Array | None, value: Array | None) -> list[Array]:
    """Queries, keys and values; packed ones taken apart."""
    if key is None:
        return [_packed(query, n) for n in range(3)]
    if value is None:
        return [query, *(_packed(key, n) for n in range(2))]
    return [query, key, value]


def _packed(x: Array, which: int) -> Array:
    part = x[:, :, :, which]
    return part.reshape(*x.shape[:2], -1)


def attended(
    attend: Attend,
    parts: Sequence[Array],
    past: Sequence[Array | None],
    scores: Scores,
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
    results = attend(
        *(q, k, v, bias, *past),
        is_causal=is_causal,
        q_num_heads=scores.heads,
        kv_num_heads=scores.heads,
        scale=scores.scale or None,
        qk_matmul_output_mode=BIASED_SCORES,
        output_count=output_count,
    )
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


def refuse(do_rotary: int, share_buffer: int, past: Array | Operand | None) -> None:
    """ValueError for the forms that are not served."""
    if do_rotary:
        raise ValueError("do_rotary is not supported")
    if share_buffer and past is not None:
        raise ValueError("past_present_share_buffer is not supported")
