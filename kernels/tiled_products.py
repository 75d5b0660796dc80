"""Products of two matrices in tiles chosen from their shapes alone.

The cut follows the longer side of the result, because BLAS packs the other operand anew for every
tile; where it packs none, `foldline.kernels.strips` does the same. MatMul, Gemm and the fused
Linear are one function of the same tiles, so they agree bit for bit.

BLAS sums in another order where an operand is given column by column, so that the last bits would
hang on how an operand came to be. Such operands are copied first: only shapes decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from foldline.kernels.epilogue import Apply
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.strips import (
    BLOCK,
    StripProduct,
    Strips,
    Tile,
    strip_tiles,
    strips_of,
    suits_strips,
    tiles_worth,
)
from foldline.kernels.windows import even_spans

LEAST_TILE_SIDE = 128

_SINGLE = np.dtype(np.float32)


class Product(Protocol):
    """Computes `out[m, n] = a[m, k] @ b[k, n]`; `out` and tiles of it may be strided."""

    def __call__(self, a: Array, b: Array, out: Array, apply: Apply | None = None) -> None:
        """`apply` is called for each tile once it is finished, see `foldline.kernels.epilogue`."""
        ...


def product_tiles(m: int, k: int, n: int) -> tuple[Tile, ...]:
    """The tiles of a product: k decides what a tile is worth, m and n are cut accordingly."""
    if not m or not n:
        return ()
    tiles = min(tiles_worth(m * k * n), max(m, n) // LEAST_TILE_SIDE)
    spans = even_spans(max(m, n), max(tiles, 1))
    if m > n:
        return tuple(Tile(start, 0, stop - start, n) for start, stop in spans)
    return tuple(Tile(0, start, m, stop - start) for start, stop in spans)


def matrix_product(m: int, k: int, n: int) -> Product:
    """The way to compute a product of these sizes."""
    tiles = product_tiles(m, k, n)
    if len(tiles) <= 1:
        return _whole

    def in_tiles(a: Array, b: Array, out: Array, apply: Apply | None = None) -> None:
        def compute(index: int) -> None:
            row0, col0, rows, cols = tile = tiles[index]
            part = out[row0 : row0 + rows, col0 : col0 + cols]
            _multiply(a[row0 : row0 + rows], b[:, col0 : col0 + cols], part)
            if apply is not None:
                apply(part, *tile)

        parallel_for(len(tiles), compute)

    return in_tiles


def flat_tiles(m: int, k: int, n: int) -> tuple[Tile, ...]:
    """The tiles of a `flat_product` in float32."""
    return strip_tiles(m, k, n) if suits_strips(m, k, n) else product_tiles(m, k, n)


def flat_product(
    m: int, k: int, n: int, dtype: np.dtype[Any] = _SINGLE, constant: Array | None = None
) -> Product:
    """`matrix_product` of a matrix that may be `constant`: what MatMul, Gemm and Linear compute."""
    if not suits_strips(m, k, n, dtype):
        return matrix_product(m, k, n)
    return _InStrips(StripProduct(m, k, n), None if constant is None else strips_of(constant))


def bound_product(
    product: Product, a: Array, b: Array, out: Array, apply: Apply | None
) -> Callable[[], None]:
    """What computes a product of arrays that do not move."""
    if isinstance(product, _InStrips) and product.kept is not None:
        return product.multiply.bound(a, product.kept, out, apply)
    return partial(product, a, b, out, apply)


@dataclass(frozen=True)
class _InStrips:
    multiply: StripProduct
    kept: Strips | None
    """Of a constant matrix."""

    def __call__(self, a: Array, b: Array, out: Array, apply: Apply | None = None) -> None:
        self.multiply(a, Strips(b) if self.kept is None else self.kept, out, apply)


def _whole(a: Array, b: Array, out: Array, apply: Apply | None = None) -> None:
    _multiply(a, b, out)
    if apply is not None and out.size:
        apply(out, 0, 0, *out.shape)


def _multiply(a: Array, b: Array, out: Array) -> None:
    """`a @ b`, equal columns of `b` giving equal results also where `a` is a single row.

    BLAS sums the columns beyond the last full block in another order; they are done once more, as
    a block that ends with them.
    """
    n = b.shape[1]
    if len(a) != 1 or n <= BLOCK or not n % BLOCK:
        np.matmul(a, b, out=out)
        return
    np.matmul(a, b[:, : n // BLOCK * BLOCK], out=out[:, : n // BLOCK * BLOCK])
    np.matmul(a, b[:, n - BLOCK :], out=out[:, n - BLOCK :])


def by_rows(array: Array, whole: bool = False) -> Array:
    """`array`, or a copy of it where its rows are not contiguous, or if `whole` it is not."""
    if array.flags.c_contiguous:
        return array
    row = array.shape[-1] * array.itemsize
    if not whole and array.strides[-1] == array.itemsize and array.strides[-2] >= row:
        return array
    return np.ascontiguousarray(array)
