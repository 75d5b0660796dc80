"""Products of rows with one matrix, which is cut into strips of columns.

Where OpenBLAS multiplies small matrices where they lie, see `foldline.kernels.small_products`, that
is 1.1 to 2 times as fast as one call. Strips of a constant matrix are made once for all products
with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from foldline.kernels.epilogue import Apply
from foldline.kernels.packed_weights import kept_with
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.small_products import (
    SMALL_WORK,
    block_product,
    in_strips,
    multiplies_in_place,
)
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
LEAST_BLOCK = 4
"""Rows of a block from which a strip is worth reading."""
LEAST_TILE_ROWS = 128
"""Rows of a tile at least, where rows are cut: each goes through all strips."""
BLOCK = 16
"""Columns that BLAS takes at once."""

_SINGLE = np.dtype(np.float32)


class Tile(NamedTuple):
    """A part of a matrix."""

    row0: int
    col0: int
    rows: int
    cols: int


def tiles_worth(work: int) -> int:
    """Into how many tiles so many multiply-adds are worth cutting."""
    return max(1, min(FEW_TILES, work // TILE_WORK), min(MOST_TILES, work // LARGE_TILE_WORK))


def suits_strips(rows: int, k: int, n: int, dtype: np.dtype[Any] = _SINGLE) -> bool:
    """Whether strips are faster: a single row is a product of its own kind in BLAS."""
    return (
        dtype == _SINGLE
        and rows > 1
        and n >= WIDTH
        and LEAST_BLOCK * k * WIDTH <= SMALL_WORK < rows * k * n
        and multiplies_in_place()
    )


class Strips:
    """A matrix `(k, n)` in strips: copies, which do not keep it alive."""

    def __init__(self, b: Array):
        n = b.shape[1]
        rest = n % WIDTH
        self.whole = in_strips(b[:, : n - rest], WIDTH)
        """`(count, k, WIDTH)`"""
        self.last = b[None, :, n - -(-rest // BLOCK) * BLOCK :].copy()
        """A strip that ends with the matrix: BLAS sums in another order for parts of a block."""


def strips_of(b: Array) -> Strips:
    """The strips of a constant matrix, kept as long as its memory lives."""
    return kept_with(b, "strips", lambda: Strips(b))


def strip_tiles(rows: int, k: int, n: int) -> tuple[Tile, ...]:
    """The tiles of a product in strips: whole rows, or strips with all their rows."""
    tiles = tiles_worth(rows * k * n)
    if rows > n:
        spans = even_spans(rows, min(tiles, rows // LEAST_TILE_ROWS))
        return tuple(Tile(top, 0, bottom - top, n) for top, bottom in spans)
    edges = [first * WIDTH for first, _ in even_spans(n // WIDTH, tiles)]
    return tuple(Tile(0, start, rows, stop - start) for start, stop in pairwise([*edges, n]))


class StripProduct:
    """Computes `out[rows, n] = a[rows, k] @ b[k, n]` where `suits_strips` says so."""

    def __init__(self, rows: int, k: int, n: int):
        self._tiles = strip_tiles(rows, k, n)

    def __call__(self, a: Array, b: Strips, out: Array, apply: Apply | None = None) -> None:
        """`apply` is called for each tile once it is finished, see `foldline.kernels.epilogue`."""
        self.bound(a, b, out, apply)()

    def bound(self, a: Array, b: Strips, out: Array, apply: Apply | None) -> Callable[[], None]:
        """What computes on arrays that do not move: views of them take 10 to 20 µs to make."""
        parts = [_tile(a, b, out, apply, tile) for tile in self._tiles]
        return lambda: parallel_for(len(parts), lambda index: parts[index]())


def _tile(a: Array, b: Strips, out: Array, apply: Apply | None, tile: Tile) -> Callable[[], None]:
    top, start, rows, columns = tile
    stop, rest = start + columns, columns % WIDTH
    left, part = a[top : top + rows], out[top : top + rows, start:stop]
    strips = b.whole[start // WIDTH : stop // WIDTH]
    calls = block_product(left, strips, part[:, : columns - rest])
    if rest:
        calls.append(partial(_rest, left, b.last, part[:, -rest:]))

    def compute() -> None:
        for call in calls:
            call()
        if apply is not None:
            apply(part, *tile)

    return compute


def _rest(a: Array, last: Array, out: Array) -> None:
    """The columns that are no strip of their own."""
    strip = np.empty((len(a), last.shape[-1]), a.dtype)
    for call in block_product(a, last, strip):
        call()
    np.copyto(out, strip[:, -out.shape[1] :])
