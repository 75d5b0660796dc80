"""Attention 23..25 for float32 and float64, in tiles whose scores stay in cache.

A tile is some heads of one batch and some queries. Its scores are kept transposed, keys first,
so that maxima and sums run along whole vectors; the scale is folded into the queries, and the
division by the sums comes last. Keys that no query of a tile sees are not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels.attention import (
    attention_reference,
    check_caches,
    present,
    score_scale,
    unpacked,
)
from foldline.kernels.attention_bias import Visibility, attention_bias, fully_masked
from foldline.kernels.registry import Array, Operand, Step, maker
from foldline.kernels.windows import (
    aligned_size,
    even_spans,
    for_lanes,
    lanes_for,
    row_major,
    scratch_view,
)
from foldline.support.dtypes import BY_CODE

TILE_BYTES = 1 << 20
TILED = frozenset(map(np.dtype, (np.float32, np.float64)))
LEAST_QUERIES = 32
"""Fewer queries in a tile make the products slow."""


@maker("Attention")
def attention(
    q: Operand,
    k: Operand,
    v: Operand,
    attn_mask: Operand | None = None,
    past_key: Operand | None = None,
    past_value: Operand | None = None,
    nonpad_kv_seqlen: Operand | None = None,
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
) -> Callable[..., Any] | Step:
    """Attention 23/24/25 in tiles; the reference for narrow floats and for asked scores."""
    precision = BY_CODE[softmax_precision].numpy if softmax_precision else q.dtype
    if q.dtype not in TILED or not q.dtype == v.dtype == precision or output_count > 3:
        return partial(
            attention_reference,
            is_causal=is_causal,
            kv_num_heads=kv_num_heads,
            left_window_size=left_window_size,
            q_num_heads=q_num_heads,
            qk_matmul_output_mode=qk_matmul_output_mode,
            right_window_size=right_window_size,
            scale=scale,
            softcap=softcap,
            softmax_precision=softmax_precision,
            output_count=output_count,
        )
    check_caches(past_key, past_value, nonpad_kv_seqlen)
    past = 0 if past_key is None else past_key.shape[2]
    case = _Case.of(q, k, v, q_num_heads, kv_num_heads, past)
    visibility = Visibility.of(
        case.queries, case.keys, is_causal, left_window_size, right_window_size
    )
    factor = q.dtype.type(score_scale(scale, case.size))
    is_static = attn_mask is None and nonpad_kv_seqlen is None
    static = None
    if is_static:
        static = _keys_first(attention_bias(visibility, None, past, None, q.dtype))
    tiles = case.tiles(visibility, past if nonpad_kv_seqlen is None else None)
    lane_bytes = max((case.scores_bytes(tile) for tile in tiles), default=0)

    def run(
        q: Array,
        k: Array,
        v: Array,
        attn_mask: Array | None = None,
        past_key: Array | None = None,
        past_value: Array | None = None,
        nonpad_kv_seqlen: Array | None = None,
        *,
        scratch: Array | None = None,
    ) -> Array | tuple[Array, ...]:
        keys = present(past_key, unpacked(k, kv_num_heads))
        values = present(past_value, unpacked(v, kv_num_heads))
        bias = static
        if not is_static:
            bias = attention_bias(visibility, attn_mask, past, nonpad_kv_seqlen, q.dtype)
            bias = _keys_first(bias)
        y = np.empty(case.output, q.dtype)
        queries = case.grouped(unpacked(q, q_num_heads))
        results = case.grouped(y if y.ndim == 4 else unpacked(y, q_num_heads))
        full = None if bias is None else case.spread(bias)

        def body(item: int, lane: int) -> None:
            tile = tiles[item]
            some = (tile.batch, tile.heads)
            seen = (*some, None, tile.keys)
            shape = case.scores_shape(tile)
            result = results[(*some, slice(None), tile.rows)]
            if not math.prod(shape):
                result[...] = 0
                return
            assert scratch is not None
            strides = row_major(shape, q.dtype.itemsize)
            scores = scratch_view(scratch, lane * lane_bytes, shape, q.dtype, strides)
            part = queries[(*some, slice(None), tile.rows)] * factor
            np.matmul(keys[seen], part.swapaxes(-1, -2), out=scores)
            if softcap > 0:
                np.divide(scores, q.dtype.type(softcap), out=scores)
                np.tanh(scores, out=scores)
                np.multiply(scores, q.dtype.type(softcap), out=scores)
            if full is not None:
                added = full[(*some, slice(None), tile.rows, tile.keys)]
                np.add(scores, added.swapaxes(-1, -2), out=scores)
            _shares(scores, values[seen], result)

        for_lanes(len(tiles), body)
        masked = fully_masked(bias)
        if masked is not None:
            results[np.broadcast_to(case.spread(masked, 1)[..., 0], results.shape[:-1])] = 0
        if output_count == 1:
            return y
        kept = [x.copy() if past_key is None else x for x in (keys, values)]
        return (y, *kept)[:output_count]

    return Step(run, lanes_for(len(tiles)) * lane_bytes)


def _keys_first(bias: Array | None) -> Array | None:
    """The same values; in memory, queries lie side by side, as they do in the scores."""
    if bias is None or bias.ndim < 2:
        return bias
    return np.ascontiguousarray(bias.swapaxes(-1, -2)).swapaxes(-1, -2)


def _shares(scores: Array, values: Array, result: Array) -> None:
    """`softmax(scores) @ values` in `result`; `scores` `(…, keys, queries)` are overwritten."""
    greatest = np.maximum.reduce(scores, axis=-2, keepdims=True)
    greatest[np.isneginf(greatest)] = 0
    np.subtract(scores, greatest, out=scores)
    np.exp(scores, out=scores)
    totals = np.add.reduce(scores, axis=-2, keepdims=True)
    totals[totals == 0] = 1
    np.matmul(scores.swapaxes(-1, -2), values, out=result)
    np.divide(result, totals.swapaxes(-1, -2), out=result)


@dataclass(frozen=True)
class _Tile:
    batch: int
    heads: slice
    """Heads of keys; all heads of queries that share one are in the tile."""
    rows: slice
    keys: slice


@dataclass(frozen=True)
class _Case:
    """The static facts: Q is seen as `(batch, kv_heads, group, queries, size)`."""

    batch: int
    kv_heads: int
    group: int
    queries: int
    keys: int
    size: int
    output: tuple[int, ...]
    itemsize: int

    @staticmethod
    def of(
        q: Operand,
        k: Operand,
        v: Operand,
        q_heads: int | None,
        kv_heads: int | None,
        past: int,
    ) -> _Case:
        batch, heads, queries, size = _unpacked_shape(q.shape, q_heads)
        _, kv_heads, keys, _ = _unpacked_shape(k.shape, kv_heads)
        v_size = _unpacked_shape(v.shape, kv_heads)[3]
        if heads % kv_heads:
            raise ValueError(f"{heads} heads of queries cannot share {kv_heads} heads of keys")
        packed = (batch, queries, heads * v_size)
        output = packed if len(q.shape) == 3 else (batch, heads, queries, v_size)
        group = heads // kv_heads
        return _Case(batch, kv_heads, group, queries, past + keys, size, output, q.dtype.itemsize)

    def tiles(self, visibility: Visibility, offset: int | None) -> list[_Tile]:
        """`offset`: the position of the first query, None when it is not static."""
        row_bytes = max(1, self.group * self.keys * self.itemsize)
        rows = max(LEAST_QUERIES, TILE_BYTES // row_bytes)
        heads = max(1, TILE_BYTES // (row_bytes * max(1, self.queries)))
        everything = slice(0, self.keys)
        return [
            _Tile(
                batch,
                slice(*head_span),
                slice(*row_span),
                everything if offset is None else visibility.key_range(slice(*row_span), offset),
            )
            for batch in range(self.batch)
            for head_span in even_spans(self.kv_heads, -(-self.kv_heads // heads))
            for row_span in even_spans(self.queries, -(-self.queries // rows))
        ]

    def scores_shape(self, tile: _Tile) -> tuple[int, ...]:
        """`(kv heads, group, keys, queries)` of a tile."""
        heads, keys, rows = (s.stop - s.start for s in (tile.heads, tile.keys, tile.rows))
        return heads, self.group, keys, rows

    def scores_bytes(self, tile: _Tile) -> int:
        return aligned_size(self.scores_shape(tile), self.itemsize)

    def grouped(self, x: Array) -> Array:
        """A view `(batch, kv_heads, group, …)` of `(batch, heads, …)`, of any strides."""
        strides = (x.strides[0], x.strides[1] * self.group, *x.strides[1:])
        shape = (x.shape[0], self.kv_heads, self.group, *x.shape[2:])
        return np.lib.stride_tricks.as_strided(x, shape, strides)

    def spread(self, bias: Array, keys: int | None = None) -> Array:
        """The bias seen as `(batch, kv_heads, group, queries, keys)`."""
        keys = self.keys if keys is None else keys
        shape = (self.batch, self.kv_heads * self.group, self.queries, keys)
        return self.grouped(np.broadcast_to(bias, shape))


def _unpacked_shape(shape: tuple[int, ...], heads: int | None) -> tuple[int, ...]:
    if len(shape) == 4:
        return shape
    if not heads:
        raise ValueError(f"an input of shape {shape} needs the number of heads")
    return shape[0], heads, shape[1], math.prod(shape[2:]) // heads
