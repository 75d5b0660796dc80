"""Which sums of products of 8-bit integers float32 takes exactly.

A float32 holds every integer up to 2^24, so a sum of products is exact, in whatever order it is
taken, as long as the absolute values of its terms add up to no more. Types and constants prove
that for blocks of a sum.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.registry import Array, Operand
from foldline.kernels.windows import even_spans

EXACT_SUM = 1 << 24
"""Every integer up to here is a float32."""

SUMMED_COLUMNS = 64

Spans = list[tuple[int, int]]


def largest(x: Operand, zero: Operand | None) -> int:
    """The greatest absolute value that the centred operand may have."""
    info = np.iinfo(x.dtype)
    points = (0,) if zero is None else (info.min, info.max)
    if zero is not None and zero.value is not None and zero.value.size:
        points = int(zero.value.min()), int(zero.value.max())
    return max(info.max - points[0], points[-1] - info.min)


def most_of(count: int, left: int, right: int, sizes: Array | None) -> int:
    """The greatest absolute value that a sum may have; see `exact_spans`."""
    per_sum = count * right if sizes is None else int(np.abs(sizes).sum(axis=0).max(initial=0))
    return left * per_sum


def exact_spans(
    count: int, left: int, right: int, sizes: Array | None = None, zero: Array | None = None
) -> Spans | None:
    """Blocks of `range(count)`, one or more, within which sums are exact.

    None when one item is too much for that.

    An item adds at most `left * right`, or, where they are known, `left` times the greatest of
    its `sizes` `(count, n)`, from which `zero`, one or n, is taken before their absolute values.
    """
    if sizes is None:
        longest = EXACT_SUM // (left * right)
        return (even_spans(count, -(-count // longest)) or [(0, 0)]) if longest else None
    spans: Spans = []
    start = 0
    while start < count:
        reached = _greatest_sums(sizes[start:], zero) * left
        stop = start + int(np.searchsorted(reached, EXACT_SUM, side="right"))
        if stop == start:
            return None
        spans.append((start, stop))
        start = stop
    return spans or [(0, 0)]


def _greatest_sums(sizes: Array, zero: Array | None) -> Array:
    """The greatest of the columns' sums of absolute values, up to each row.

    Some columns at a time: sums of all of large weights would take ten times their memory.
    """
    most = np.zeros(len(sizes))
    points = None if zero is None else np.broadcast_to(zero.reshape(-1), sizes.shape[1])
    for start in range(0, sizes.shape[1], SUMMED_COLUMNS):
        some = slice(start, start + SUMMED_COLUMNS)
        part = sizes[:, some].astype(np.float32)
        if points is not None:
            np.subtract(part, points[some], out=part, dtype=np.float32)
        sums = np.cumsum(np.abs(part), axis=0, dtype=np.float64)
        np.maximum(most, sums.max(axis=1), out=most)
    return most
