"""The fused Attention: softmax of scaled, masked products of queries and keys, times values.

    scores = scale * (Q @ K') + M, or `mask_value` where a boolean M hides the score
    Y      = softmax(scores) @ V

Q, K, V are stored in any order of axes and read where they are; `query_perm` and so on bring them
to `(…, heads, length, size)`, and `output_perm` brings the result to the order it is stored in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from foldline.kernels.attention_fast import TILED
from foldline.kernels.attention_tiles import AttentionCase, keys_first, keys_second
from foldline.kernels.pixel_parts import MOST_BOUND, MakePart, Part, bound_parts
from foldline.kernels.precision import rounded, stepped, widened, working_dtype
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.ufuncs import constant
from foldline.kernels.windows import for_lanes, lanes_for

Perm: TypeAlias = "Sequence[int] | None"


@kernel("Attention", domain="foldline")
def fused_attention_reference(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    groups: int = 1,
    guarded: int = 0,
    key_perm: Perm = None,
    kv_heads: int = 0,
    mask_keeps: int = 1,
    mask_value: float = -math.inf,
    output_perm: Perm = None,
    query_perm: Perm = None,
    scale: float = 1.0,
    value_perm: Perm = None,
    out: Array | None = None,
) -> Array:
    """Attention of the fused dialect, as the operators it stands for compute it.

    `groups` neighbouring heads of queries share one of the `kv_heads` heads of keys and values. A
    mask of numbers is added; of a boolean one, scores are kept where it is `mask_keeps`. Rows
    without a number are NaN, as Softmax has them, or share nothing when `guarded`.
    """
    del kv_heads
    dtype = q.dtype
    q, k, v = _ordered(q, query_perm), _ordered(k, key_perm), _ordered(v, value_perm)
    if groups > 1:
        k, v = np.repeat(k, groups, axis=-3), np.repeat(v, groups, axis=-3)
    scores = widened(stepped(widened(q) * widened(np.array(scale, dtype)), dtype))
    scores = stepped(scores @ widened(k).swapaxes(-1, -2), dtype)
    if mask is not None and mask.dtype == np.bool_:
        hidden = widened(np.array(mask_value, dtype))
        scores = np.where(mask == bool(mask_keeps), scores, hidden)
    elif mask is not None:
        scores = stepped(scores + widened(mask), dtype)
    greatest = np.maximum.reduce(scores, axis=-1, keepdims=True, initial=-np.inf)
    powers = stepped(np.exp(stepped(scores - greatest, dtype)), dtype)
    totals = stepped(np.add.reduce(powers, axis=-1, keepdims=True), dtype)
    shares = stepped(powers / totals, dtype)
    if guarded:
        shares = np.where(np.isnan(shares), shares.dtype.type(0), shares)
    return rounded(_ordered(shares @ widened(v), output_perm), dtype, out)


@maker("Attention", domain="foldline")
def fused_attention(
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None = None,
    *,
    groups: int = 1,
    guarded: int = 0,
    key_perm: Perm = None,
    kv_heads: int = 0,
    mask_keeps: int = 1,
    mask_value: float = -math.inf,
    output_perm: Perm = None,
    query_perm: Perm = None,
    scale: float = 1.0,
    value_perm: Perm = None,
    out: Array | None = None,
) -> Callable[..., Any] | Step:
    """Attention of the fused dialect in tiles whose scores stay in cache.

    Scores are kept keys first, before heads, so that maxima and sums run along whole vectors of all
    heads and queries; the scale goes into the queries, and the division by the sums comes last.
    Narrow floats are computed in float32 and rounded once. The reference where a mask enlarges the
    scores.
    """
    work = working_dtype(q.dtype)
    case = AttentionCase.of(
        _ordered_shape(q.shape, query_perm),
        _ordered_shape(k.shape, key_perm),
        _ordered_shape(v.shape, value_perm),
        () if mask is None else mask.shape,
        groups,
        work.itemsize,
    )
    if case is None or work not in TILED:
        return partial(
            fused_attention_reference,
            groups=groups,
            guarded=guarded,
            key_perm=key_perm,
            kv_heads=kv_heads,
            mask_keeps=mask_keeps,
            mask_value=mask_value,
            output_perm=output_perm,
            query_perm=query_perm,
            scale=scale,
            value_perm=value_perm,
        )
    tiles = list(case.tiles())
    lane_bytes = max((case.tile_bytes(tile) for tile in tiles), default=0)
    inverse = None if output_perm is None else tuple(np.argsort(output_perm).tolist())
    stored = _ordered_shape(case.output, output_perm)
    factor = None if scale == 1.0 else constant(scale, work)
    is_boolean = mask is not None and mask.dtype == np.bool_

    def prepared(mask: Array) -> Array:
        if is_boolean:
            return case.spread(~mask if mask_keeps else mask)
        return case.spread(_queries_last(mask.astype(work, copy=False)))

    static = None if mask is None or mask.value is None else prepared(mask.value)

    def parts(
        q: Array, k: Array, v: Array, mask: Array | None, target: Array, scratch: Array
    ) -> MakePart:
        queries = case.grouped(_ordered(q.astype(work, copy=False), query_perm))
        keys = case.shared(_ordered(k.astype(work, copy=False), key_perm))
        values = case.shared(_ordered(v.astype(work, copy=False), value_perm))
        results = case.grouped(_ordered(target, inverse))
        extra = static if static is not None or mask is None else prepared(mask)

        def part(item: int, lane: int) -> Part:
            tile = tiles[item]
            result = results[tile.own]
            if not result.size or not case.keys:
                return partial(result.fill, 0)
            scores, turned = case.memory(tile, work, scratch, lane * lane_bytes)
            source, some_keys = queries[tile.own].swapaxes(-1, -2), keys[tile.shared]
            products = keys_second(scores)
            given = None if extra is None else keys_first(extra[tile.own])
            share = _share(scores, values[tile.shared], result, bool(guarded))

            def compute() -> None:
                if factor is None:
                    np.copyto(turned, source)
                else:
                    np.multiply(source, factor, turned)
                np.matmul(some_keys, turned, products)
                if given is not None and is_boolean:
                    np.copyto(scores, work.type(mask_value), where=given)
                elif given is not None:
                    np.add(scores, given, scores)
                share()

            return compute

        return part

    def run(
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None = None,
        *,
        out: Array | None = None,
        scratch: Array | None = None,
    ) -> Array:
        y = np.empty(stored, q.dtype) if out is None else out
        target = y if q.dtype == work else np.empty(stored, work)
        part = parts(q, k, v, mask, target, np.empty(0, np.uint8) if scratch is None else scratch)

        def compute(item: int, lane: int) -> None:
            part(item, lane)()

        for_lanes(len(tiles), compute)
        return y if target is y else rounded(target, q.dtype, y)

    def bind(
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None = None,
        *,
        out: Array,
        scratch: Array,
    ) -> Callable[[], Any]:
        return bound_parts(len(tiles), parts(q, k, v, mask, out, scratch))

    # What is copied before it is used has to be copied in every run.
    is_seen = q.dtype == work and (mask is None or static is not None or _is_seen(mask, work))
    can_bind = is_seen and lane_bytes > 0 and len(tiles) <= MOST_BOUND
    return Step(run, lanes_for(len(tiles)) * lane_bytes, bind=bind if can_bind else None)


def _share(scores: Array, values: Array, result: Array, guarded: bool) -> Part:
    """`softmax(scores) @ values` in `result`; `scores` `(keys, …, queries)` are overwritten."""
    rows = scores.reshape(len(scores), -1)
    shares = keys_second(scores).swapaxes(-1, -2)
    # In the order of the result in memory, so that many rows are divided at once.
    divisors = np.empty_like(result[..., 0])

    def compute() -> None:
        np.subtract(rows, np.maximum.reduce(rows, axis=0), rows)
        np.exp(rows, rows)
        totals = np.add.reduce(rows, axis=0)
        if guarded and np.isnan(totals).any():
            np.copyto(rows, 0, where=np.isnan(totals))
            totals[np.isnan(totals)] = 1
        np.matmul(shares, values, result)
        np.copyto(divisors, totals.reshape(divisors.shape))
        np.divide(result, divisors[..., None], result)

    return compute


def _is_seen(mask: Operand, work: np.dtype[Any]) -> bool:
    """Whether a mask that is not constant is read where it is."""
    return mask.dtype == work and (len(mask.shape) < 2 or mask.shape[-2] == 1)


def _queries_last(mask: Array) -> Array:
    """The same values; in memory, queries lie side by side, as they do in the scores."""
    if mask.ndim < 2 or mask.shape[-2] == 1:
        return mask
    return np.ascontiguousarray(mask.swapaxes(-1, -2)).swapaxes(-1, -2)


def _ordered(x: Array, perm: Perm) -> Array:
    return x if perm is None else x.transpose(tuple(perm))


def _ordered_shape(shape: Sequence[int], perm: Perm) -> tuple[int, ...]:
    return tuple(shape) if perm is None else tuple(shape[axis] for axis in perm)
