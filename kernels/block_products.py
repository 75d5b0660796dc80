"""Products with a matrix of weights, in blocks that OpenBLAS multiplies where they lie.

Built for AVX-512, OpenBLAS multiplies small matrices without packing them first. Weights are cut
into strips of columns, each in memory of its own, and rows into blocks, so that every pair is
small: all together take 0.75 to 0.95 of the time of one call, whatever its size. Other builds pack
at every call, and there one call is best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from foldline.kernels.blas import architectures
from foldline.kernels.epilogue import Apply
from foldline.kernels.packed_weights import packed
from foldline.kernels.registry import Array
from foldline.kernels.tiled_products import BLOCK, Product

SMALL_WORK = 1_000_000
"""So many multiply-adds a product has at most that OpenBLAS takes for small."""
STRIPS = ((64, 32), (32, 12))
"""Columns of a strip, four vectors of 16 or two, and the least rows of a block for each."""
MOST_COLUMNS, LEAST_ROWS = 128, 32
"""So many columns are one strip where a block has so many rows."""
MOST_TWICE = 10
"""One in so many columns may be computed twice, for a last strip that ends with the matrix."""
IN_PLACE = frozenset(("SkylakeX", "Cooperlake", "SapphireRapids"))

Call: TypeAlias = Callable[[], object]

_SINGLE = np.dtype(np.float32)


@lru_cache(maxsize=1)
def multiplies_in_place() -> bool:
    """Whether the OpenBLAS at work has kernels for small matrices."""
    return IN_PLACE.issuperset(architectures()) and bool(architectures())


def strip_width(rows: int, k: int, n: int, dtype: np.dtype[Any]) -> int:
    """Columns of the strips for a product of these sizes; 0 where one call is as good.

    A single row is a product of its own kind in BLAS, and so are columns beyond the last full block
    of a small product: a strip of a large one has none.
    """
    if dtype != _SINGLE or rows < 2 or not k or not n or not multiplies_in_place():
        return 0
    if rows * k * n <= SMALL_WORK:
        return n
    can_be_one = n % BLOCK == 0 and LEAST_ROWS * k * n <= SMALL_WORK
    if can_be_one and n <= MOST_COLUMNS:
        return n
    for width, rows_of_block in STRIPS:
        twice = -n % width
        if n >= width and rows_of_block * k * width <= SMALL_WORK and twice * MOST_TWICE <= n:
            return width
    return n if can_be_one else 0


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


def block_product(a: Array, strips: Array, out: Array) -> list[Call]:
    """The calls that compute `out[..., m, n] = a[..., m, k] @ b[..., k, n]`."""
    k, width = strips.shape[-2:]
    m, n = out.shape[-2:]
    count = n // width
    blocks = max(1, -(-m * k * width // SMALL_WORK))
    rows, longer = divmod(m, blocks)
    edge, calls = longer * (rows + 1), list[Call]()
    for start, number, size in ((0, longer, rows + 1), (edge, blocks - longer, rows)):
        if number:
            place = np.s_[..., start : start + number * size, :]
            calls.append(_blocks(a[place], strips[..., :count, :, :], out[place], number, size))
    if count < strips.shape[-3]:
        calls += block_product(a, strips[..., count:, :, :], out[..., n - width :])
    return calls


def _blocks(a: Array, strips: Array, out: Array, number: int, rows: int) -> Call:
    """A call for some blocks of so many rows."""
    *stack, count, k, width = strips.shape
    left = a.reshape(*stack, 1, number, rows, k)
    result = out[..., : count * width].reshape(*stack, number, rows, count, width)
    by_strip = np.moveaxis(result, -2, -4)
    return partial(np.matmul, left, strips[..., None, :, :], out=by_strip)


@dataclass(frozen=True)
class WeightProducts:
    """Products of some rows with one matrix of weights."""

    width: int
    """Of the strips the weights are cut into; 0 for none."""
    whole: Product
    """What computes it without strips."""

    def pack(self, matrix: Array) -> Array:
        """The weights `(k, n)` as the products read them."""
        return in_strips(matrix, self.width) if self.width else matrix

    def packed(self, weights: Array | None, matrix: Callable[[Array], Array]) -> Array | None:
        """The same for constant weights, of which all such products share one copy."""
        if weights is None:
            return None
        purpose = matrix.__name__ + (f" in strips of {self.width}" if self.width else "")
        return packed(weights, purpose, lambda weights: self.pack(matrix(weights)))

    def bound(self, left: Array, weights: Array, result: Array, apply: Apply) -> Call:
        """What computes and finishes one product of arrays that will not move."""
        if not self.width:
            return partial(self.whole, left, weights, result, apply)
        calls = block_product(left, weights, result)
        rows, columns = result.shape

        def compute() -> None:
            for call in calls:
                call()
            apply(result, 0, 0, rows, columns)

        return compute
