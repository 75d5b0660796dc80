"""Products of rows with a matrix of weights in strips, see `foldline.kernels.small_products`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels.epilogue import Apply
from foldline.kernels.packed_weights import packed
from foldline.kernels.registry import Array
from foldline.kernels.small_products import (
    SMALL_WORK,
    Call,
    block_product,
    in_strips,
    multiplies_in_place,
)
from foldline.kernels.tiled_products import BLOCK, Product

STRIPS = ((64, 32), (32, 12))
"""Columns of a strip, four vectors of 16 or two, and the least rows of a block for each."""
MOST_COLUMNS, LEAST_ROWS = 128, 32
"""So many columns are one strip where a block has so many rows."""
MOST_TWICE = 10
"""One in so many columns may be computed twice, for a last strip that ends with the matrix."""

_SINGLE = np.dtype(np.float32)


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
