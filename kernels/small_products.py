"""Products in blocks that OpenBLAS multiplies where they lie.

Built for AVX-512, OpenBLAS multiplies small matrices without packing them first. One matrix is cut
into strips of columns, each in memory of its own, and the other into blocks of rows, so that every
pair is small: all together take 0.55 to 0.95 of the time of one call, whatever its size. Other
builds pack at every call, and there one call is best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

from foldline.kernels.blas import architectures
from foldline.kernels.registry import Array

SMALL_WORK = 1_000_000
"""So many multiply-adds a product has at most that OpenBLAS takes for small."""
ROWS_AT_ONCE = 4
"""Blocks of other numbers of rows are up to a third slower."""
IN_PLACE = frozenset(("SkylakeX", "Cooperlake", "SapphireRapids"))

Call: TypeAlias = Callable[[], object]


@lru_cache(maxsize=1)
def multiplies_in_place() -> bool:
    """Whether the OpenBLAS at work has kernels for small matrices."""
    return IN_PLACE.issuperset(architectures()) and bool(architectures())


def in_strips(weights: Array, width: int) -> Array:
    """`(..., k, n)` as `(..., strips, k, width)`, contiguous.

    Where n is no multiple of the width, the last strip ends with the matrix, and its first columns
    are those of another strip too: BLAS sums in another order for fewer columns.
    """
    *stack, k, n = weights.shape
    whole = n // width * width
    strips = weights[..., :whole].reshape(*stack, k, n // width, width).swapaxes(-3, -2)
    if whole < n:
        strips = np.concatenate((strips, weights[..., None, :, n - width :]), axis=-3)
    return np.ascontiguousarray(strips)


def row_blocks(rows: int, work: int) -> Iterator[tuple[int, int, int]]:
    """Blocks of rows that do `work` each: where some begin, how many they are, and of how many.

    BLAS sums in another order for one row alone: a block of two takes one of the rows again.
    """
    most = max(1, SMALL_WORK // max(1, work))
    count = -(-rows // (most // ROWS_AT_ONCE * ROWS_AT_ONCE or most))
    size = min(most, -(-rows // (count * ROWS_AT_ONCE)) * ROWS_AT_ONCE)
    number, rest = divmod(rows, size)
    if number:
        yield 0, number, size
    if rest:
        rest = max(rest, min(2, rows))
        yield rows - rest, 1, rest


def block_product(a: Array, strips: Array, out: Array) -> list[Call]:
    """The calls that compute `out[..., m, n] = a[..., m, k] @ b[..., k, n]`."""
    k, width = strips.shape[-2:]
    m, n = out.shape[-2:]
    count = n // width
    calls = list[Call]()
    for start, number, size in row_blocks(m, k * width):
        place = np.s_[..., start : start + number * size, :]
        calls.append(_blocks(a[place], strips[..., :count, :, :], out[place], number, size))
    if count < strips.shape[-3]:
        calls += block_product(a, strips[..., count:, :, :], out[..., n - width :])
    return calls


def _blocks(a: Array, strips: Array, out: Array, number: int, rows: int) -> Call:
    """A call for some blocks of so many rows; the longer side is gone through once."""
    *stack, count, k, width = strips.shape
    left = a.reshape(*stack, number, rows, k)
    result = out[..., : count * width].reshape(*stack, number, rows, count, width)
    if number * rows > count * width:
        outer, inner, place = -3, -4, -3
    else:
        outer, inner, place = -4, -3, -4
    return partial(
        np.matmul,
        np.expand_dims(left, outer),
        np.expand_dims(strips, inner),
        np.moveaxis(result, -2, place),
        order="C",
    )
