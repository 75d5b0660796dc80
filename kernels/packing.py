"""Matrices packed for products, and products with them.

B, of k rows and n columns, is stored in blocks of 256 rows, a block in strips of `nr` columns, a
strip row by row; columns that the last strip lacks are +0. With S strips:

    element (r, c):  pc S nr + s kc nr + (r - pc) nr + (c - s nr)
    pc = 256 floor(r / 256), kc = min(256, k - pc), s = floor(c / nr)

BLAS packs by itself and wants one strip of all columns: that is B in C order. The layout hangs on
the path only; neither the rows of A nor threads nor the mode matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from foldline.kernels.epilogue import Apply
from foldline.kernels.exact_products import product
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.tiled_products import Tile, by_rows, flat_product, flat_tiles

Span: TypeAlias = "slice[int, int, None]"

BLOCK_ROWS = 256
TILE_ROWS = 64
TILE_STRIPS = 4
"""A tile of the exact path."""


@dataclass(frozen=True)
class Path:
    """A way to compute products, which wants its matrices in a layout."""

    name: str
    width: int | None
    """Columns of a strip; None: one strip of all."""

    def strips(self, n: int) -> tuple[int, int]:
        """How many strips there are, and of how many columns."""
        width = n if self.width is None else self.width
        return (-(-n // width) if width else 0), width


TRANSPOSABLE = {("", "Gemm"): (1, "transB"), ("foldline", "Linear"): (1, "transB")}
"""Operators that transpose a matrix if an attribute says so: which input, and the attribute. The
matrix may be handed over transposed instead, and a constant one is."""

BLAS = Path("blas", None)
EXACT = {width: Path(f"exact-{width}", width) for width in (32, 16, 12, 8, 4)}
"""Products in the order of exact mode, by the width of their strips."""


def packed_b_length(path: Path, n: int, k: int) -> int:
    """Elements of a packed matrix of k rows and n columns."""
    count, width = path.strips(n)
    return k * count * width


def pack_b(path: Path, b: Array, transposed: bool = False) -> Array:
    """A matrix packed as a vector; of its transpose if `transposed`.

    A view where that is what memory holds already.
    """
    b = b.T if transposed else b
    k, n = b.shape
    if path.width is None:
        return np.ascontiguousarray(b).reshape(-1)
    packed = np.zeros(packed_b_length(path, n, k), b.dtype)
    for strip, block, columns in _parts(path, packed, n, k):
        strip[:, : columns.stop - columns.start] = b[block, columns]
    return packed


def unpack_b(path: Path, packed: Array, n: int, k: int) -> Array:
    """The matrix that was packed, in C order."""
    if path.width is None:
        return packed.reshape(k, n)
    b = np.empty((k, n), packed.dtype)
    for strip, block, columns in _parts(path, packed, n, k):
        b[block, columns] = strip[:, : columns.stop - columns.start]
    return b


def tiles_of(path: Path, m: int, k: int, n: int) -> tuple[Tile, ...]:
    """The tiles of a product; k matters to BLAS only, where it says how large a tile should be."""
    if path.width is None:
        return flat_tiles(m, k, n)
    side = TILE_STRIPS * path.width
    return tuple(
        Tile(row, column, min(TILE_ROWS, m - row), min(side, n - column))
        for row in range(0, m, TILE_ROWS)
        for column in range(0, n, side)
    )


def run(path: Path, a: Array, b: Array, out: Array, apply: Apply | None = None) -> None:
    """`out = a @ b` with a matrix as it is; see `foldline.kernels.epilogue` for `apply`."""
    if path.width is None:
        _by_blas(a, b, out, apply)
        return

    def compute(tile: Tile) -> Array:
        return product(a[_rows(tile)], b[:, tile.col0 : tile.col0 + tile.cols])

    _in_tiles(path, a.shape[1], out, compute, apply)


def run_packed(path: Path, a: Array, packed: Array, out: Array, apply: Apply | None = None) -> None:
    """`run` with a packed matrix; the same bits."""
    k, n = a.shape[1], out.shape[1]
    if path.width is None:
        _by_blas(a, packed.reshape(k, n), out, apply)
        return
    width = path.width
    strips: list[list[Array]] = [list[Array]() for _ in range(path.strips(n)[0])]
    for strip, _, columns in _parts(path, packed, n, k):
        strips[columns.start // width].append(strip)

    def compute(tile: Tile) -> Array:
        first = tile.col0 // width
        last = first + -(-tile.cols // width)
        wide = [np.concatenate(parts) for parts in strips[first:last] if parts]
        if not wide:
            return np.zeros((tile.rows, tile.cols), out.dtype)
        # What the padding makes, NaN if A holds an infinity, is dropped here.
        return product(a[_rows(tile)], np.concatenate(wide, axis=1))[:, : tile.cols]

    _in_tiles(path, k, out, compute, apply)


def _parts(path: Path, packed: Array, n: int, k: int) -> Iterator[tuple[Array, Span, Span]]:
    """The strips of every block as matrices, and the rows and columns they stand for."""
    count, width = path.strips(n)
    for pc in range(0, k, BLOCK_ROWS):
        kc = min(BLOCK_ROWS, k - pc)
        for s in range(count):
            base = pc * count * width + s * kc * width
            strip = packed[base : base + kc * width].reshape(kc, width)
            yield strip, slice(pc, pc + kc), slice(s * width, min((s + 1) * width, n))


def _by_blas(a: Array, b: Array, out: Array, apply: Apply | None) -> None:
    (m, k), n = a.shape, b.shape[1]
    is_vector = 1 in (m, n)
    flat_product(m, k, n, a.dtype)(by_rows(a, is_vector), by_rows(b, is_vector), out, apply)


def _in_tiles(
    path: Path, k: int, out: Array, compute: Callable[[Tile], Array], apply: Apply | None
) -> None:
    tiles = tiles_of(path, out.shape[0], k, out.shape[1])

    def body(index: int) -> None:
        tile = tiles[index]
        part = out[_rows(tile), tile.col0 : tile.col0 + tile.cols]
        np.copyto(part, compute(tile))
        if apply is not None:
            apply(part, *tile)

    parallel_for(len(tiles), body)


def _rows(tile: Tile) -> slice:
    return slice(tile.row0, tile.row0 + tile.rows)
