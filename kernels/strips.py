"""Products of a few rows with one matrix, which is cut into strips of columns.

OpenBLAS multiplies small matrices where they lie; larger ones it packs first, at every call, which
for a few rows costs about as much as the product. So B is cut into strips of columns, each in
memory of its own, and A into blocks of rows, so that every pair is small: 1.2 to 2 times as fast as
one call. Strips of a constant matrix are made once for all products with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Any

import numpy as np

from foldline.kernels.epilogue import Apply
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.windows import even_spans

TILE_WORK = 6 << 20
"""Multiply-adds worth a tile of their own, up to FEW_TILES: about 0.15 ms. A cut into four costs
one thread up to a tenth, because an operand is packed for every tile."""
FEW_TILES = 4
LARGE_TILE_WORK = 24 << 20
"""Multiply-adds worth a tile where there are more, up to MOST_TILES."""
MOST_TILES = 8

WIDTH = 64
"""Columns of a strip: four vectors of 16."""
SMALL_WORK = 1_000_000
"""So many multiply-adds a product has at most that OpenBLAS takes for small."""
LEAST_BLOCK = 4
"""Rows of a block from which a strip is worth reading."""
MOST_ROWS = 64
"""With more rows packing matters less than the calls."""

_SINGLE = np.dtype(np.float32)


def tiles_worth(work: int) -> int:
    """Into how many tiles so many multiply-adds are worth cutting."""
    return max(1, min(FEW_TILES, work // TILE_WORK), min(MOST_TILES, work // LARGE_TILE_WORK))


def suits_strips(rows: int, k: int, n: int, dtype: np.dtype[Any] = _SINGLE) -> bool:
    """Whether strips are faster: a single row is a product of its own kind in BLAS."""
    return (
        dtype == _SINGLE
        and 1 < rows <= MOST_ROWS
        and n >= WIDTH
        and LEAST_BLOCK * k * WIDTH <= SMALL_WORK < rows * k * n
    )


class Strips:
    """A matrix `(k, n)` in strips: copies, which do not keep it alive."""

    def __init__(self, b: Array):
        k, n = b.shape
        count = n // WIDTH
        by_strip = b[:, : count * WIDTH].reshape(k, count, WIDTH).transpose(1, 0, 2)
        self.whole = by_strip.copy()
        """`(count, k, WIDTH)`"""
        self.last = b[:, n - WIDTH :].copy()
        """The strip that ends with the matrix: BLAS sums in another order for fewer columns."""


_kept: dict[Hashable, tuple[weakref.ref[Array], Strips]] = {}


def strips_of(b: Array) -> Strips:
    """The strips of a constant matrix, kept as long as its memory lives."""
    owner = b
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    key = (b.ctypes.data, b.shape, b.strides)
    found = _kept.get(key)
    if found is not None and found[0]() is owner:
        return found[1]
    strips = Strips(b)
    _kept[key] = weakref.ref(owner, lambda _: _kept.pop(key, None)), strips
    return strips


class StripProduct:
    """Computes `out[rows, n] = a[rows, k] @ b[k, n]` where `suits_strips` says so."""

    def __init__(self, rows: int, k: int, n: int):
        count = -(-rows // (SMALL_WORK // (k * WIDTH)))
        # Of equal size up to one row, for BLAS sums in another order for one row alone.
        edges = [rows * block // count for block in range(count + 1)]
        self._spans = list(pairwise(edges))
        self._tiles = even_spans(n // WIDTH, tiles_worth(rows * k * n))

    def __call__(self, a: Array, b: Strips, out: Array, apply: Apply | None = None) -> None:
        """`apply` is called for each tile once it is finished, see `foldline.kernels.epilogue`."""
        self.bound(a, b, out, apply)()

    def bound(self, a: Array, b: Strips, out: Array, apply: Apply | None) -> Callable[[], None]:
        """What computes on arrays that do not move: views of them take 10 to 20 µs to make."""
        parts = [self._tile(a, b, out, apply, *tile) for tile in self._tiles]
        if out.shape[1] % WIDTH:
            parts.append(self._rest(a, b, out, apply))
        return lambda: parallel_for(len(parts), lambda index: parts[index]())

    def _tile(
        self, a: Array, b: Strips, out: Array, apply: Apply | None, first: int, last: int
    ) -> Callable[[], None]:
        start, stop = first * WIDTH, last * WIDTH
        part, strips = out[:, start:stop], b.whole[first:last]
        products: list[tuple[Array, Array]] = []
        for top, bottom in self._spans:
            by_strip = part[top:bottom].reshape(bottom - top, last - first, WIDTH)
            products.append((a[top:bottom], by_strip.transpose(1, 0, 2)))

        def compute() -> None:
            for rows, result in products:
                np.matmul(rows, strips, result)
            if apply is not None:
                apply(part, 0, start, len(part), stop - start)

        return compute

    def _rest(self, a: Array, b: Strips, out: Array, apply: Apply | None) -> Callable[[], None]:
        """The columns that are no strip of their own."""
        rows, n = out.shape
        width = n % WIDTH
        part = out[:, n - width :]

        def compute() -> None:
            for top, bottom in self._spans:
                part[top:bottom] = np.matmul(a[top:bottom], b.last)[:, -width:]
            if apply is not None:
                apply(part, 0, n - width, rows, width)

        return compute
