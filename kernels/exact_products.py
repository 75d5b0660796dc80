"""Matrix products of floats in exact mode.

    out[i, j] = (((0 + a[i, 0] b[0, j]) + a[i, 1] b[1, j]) + …),  every step rounded once

k ascends, nothing is fused and the sum starts from +0, so that an element hangs on its row and its
column alone: slices, tiles and threads cannot change it. Two formulations have this order: updates
of rank 1, which are the definition, and NumPy's einsum without optimisation, four times as fast,
which is used only where a trial at the first product proves that it rounds every step.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy._core.multiarray import c_einsum  # pyright: ignore[reportPrivateUsage]

from foldline.kernels.exact_bits import canonical
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.windows import even_spans

TILE_WORK = 2 << 20
"""Multiply-adds worth a tile of their own."""
MOST_TILES = 8
LEAST_COLUMNS = 2048
"""Of a tile cut across the columns: narrow ones take three times as long."""
STRIP = 16
"""Columns of a matrix turned round at a time, a line of the cache: four to seven times as fast as
all at once."""
STRIPPED = 128 << 10
"""Elements of a matrix worth it."""
FEW_ROWS = 2
VAST = 2 << 20
"""So few rows are multiplied with the strips of so large a matrix one by one: to write it whole
takes half as long again."""
UPDATE_ELEMENTS = 16 << 10
"""Elements of a result updated at a time: they and the products stay in cache."""
LEAST_WIDTH = 32
"""A narrower result is computed as its transpose, if that is wider."""
GOOD_WIDTH = 128
"""So is one that is narrower than this, if that is twice as wide."""


def product(a: Array, b: Array) -> Array:
    """`a @ b` as `numpy.matmul` has it, of two arrays of one type.

    float32 and float64 in the order above; integers wrap around.
    """
    if a.dtype.kind in "iu":
        return integer_product(a, b)
    if a.ndim == 1:
        return product(a[None, :], b)[..., 0, :] if b.ndim > 1 else _dot(a, b)
    if b.ndim == 1:
        return product(a, b[:, None])[..., 0]
    m, n = a.shape[-2], b.shape[-1]
    if n < m and (n < LEAST_WIDTH or (n < GOOD_WIDTH and 2 * n <= m)):
        return np.ascontiguousarray(
            product(b.swapaxes(-1, -2), a.swapaxes(-1, -2)).swapaxes(-1, -2)
        )
    if b.ndim == 2:
        rows = math.prod(a.shape[:-1])
        return _stacked(a.reshape(1, rows, a.shape[-1]), b[None]).reshape(*a.shape[:-1], n)
    stack = a.shape[:-2]
    if stack != b.shape[:-2]:
        stack = np.broadcast_shapes(stack, b.shape[:-2])
        a = np.broadcast_to(a, (*stack, *a.shape[-2:]))
        b = np.broadcast_to(b, (*stack, *b.shape[-2:]))
    count = math.prod(stack)
    lhs, rhs = a.reshape(count, *a.shape[-2:]), b.reshape(count, *b.shape[-2:])
    return _stacked(lhs, rhs).reshape(*stack, m, n)


def multiplier(b: Array) -> Callable[[Array], Array]:
    """`product` with `b`, for many: it is laid out once."""
    right = _laid_out(b)
    return lambda a: product(a, right)


def integer_product(a: Array, b: Array, most: int | None = None) -> Array:
    """`a @ b` of integers, which wraps around: the order of sums cannot matter.

    Floats are used where no sum can reach 2^24, or 2^53: every one is exact then. `b` may come
    from `prepared`, with `most`; its integers are of the type of `a`.
    """
    if a.dtype.kind not in "iu" or (b.dtype.kind not in "iu" and most is None):
        raise TypeError(f"integers are wanted, not {a.dtype} and {b.dtype}")
    dtype = np.result_type(a, b) if most is None else a.dtype
    bound = a.shape[-1] * _magnitude(a) * (_magnitude(b) if most is None else most)
    if bound >= 1 << 53:
        return np.asarray(np.matmul(a, b.astype(dtype)))
    wide = np.dtype(np.float32 if bound < 1 << 24 and b.dtype != np.float64 else np.float64)
    whole = np.asarray(np.matmul(a.astype(wide), b.astype(wide, copy=False)))
    return whole.astype(np.int64).astype(dtype)


def prepared(b: Array) -> tuple[Array, int]:
    """A matrix of integers as floats, for many products with integers of 8 bits, and its most."""
    most = _magnitude(b)
    is_short = b.shape[0] * 255 * most < 1 << 24
    return b.astype(np.float32 if is_short else np.float64), most


def _magnitude(array: Array) -> int:
    return max(abs(int(array.min())), abs(int(array.max()))) if array.size else 0


def _dot(a: Array, b: Array) -> Array:
    """One number. An accumulation gives every partial sum, so its order is no choice."""
    terms = np.zeros(len(a) + 1, a.dtype)
    np.multiply(a, b, out=terms[1:])
    return canonical(np.add.accumulate(terms)[-1:].copy()).reshape(())


def _stacked(a: Array, b: Array) -> Array:
    """`(count, m, k) @ (count, k, n)`, tiles of which are computed side by side."""
    (count, m, k), n = a.shape, b.shape[-1]
    out = np.zeros((count, m, n), a.dtype)
    if not out.size or not k:
        return out
    if count == m == n == 1:
        out[0, 0, 0] = _dot(a[0, 0], b[0, :, 0])
        return out
    a = np.ascontiguousarray(a)
    if m <= FEW_ROWS and b.size >= VAST and _is_turned(b):
        return _by_strips(a, b, out)
    b = _laid_out(b)
    multiply = _by_einsum if n > 1 and einsum_is_exact(a.dtype) else _by_updates
    tiles = min(MOST_TILES, out.size * k // TILE_WORK)
    # All of `b` is read for each row, so rows are cut where there are any.
    side = 2 if count == m == 1 else int(m > count)
    size = n // LEAST_COLUMNS if side == 2 else out.shape[side]
    if min(tiles, size) < 2:
        multiply(a, b, out)
        return canonical(out)
    spans = even_spans(out.shape[side], min(tiles, size))

    def tile(index: int) -> None:
        span = slice(*spans[index])
        left = a[span] if side == 0 else a[:, span] if side == 1 else a
        right = b[span] if side == 0 else b[:, :, span] if side == 2 else b
        into = out[span] if side == 0 else out[:, span] if side == 1 else out[:, :, span]
        multiply(left, right, into)
        canonical(into)

    parallel_for(len(spans), tile)
    return out


def _is_turned(b: Array) -> bool:
    """Whether the rows of a large matrix do not lie side by side."""
    return b.size >= STRIPPED and b.strides[-1] != b.itemsize


def _by_strips(a: Array, b: Array, out: Array) -> Array:
    """The product of few rows with a matrix that is turned round while it is multiplied."""
    n = b.shape[-1]
    starts = range(0, max(1, n - STRIP + 1), STRIP)

    def strip(index: int) -> None:
        start = starts[index]
        span = slice(start, start + STRIP if index + 1 < len(starts) else n)
        into = out[..., span]
        right = np.ascontiguousarray(b[..., span])
        exact = into.shape[-1] > 1 and einsum_is_exact(a.dtype)
        (_by_einsum if exact else _by_updates)(a, right, into)

    parallel_for(len(starts), strip)
    return canonical(out)


def _laid_out(b: Array) -> Array:
    """`b`, a matrix or a stack of them, C-contiguous."""
    if not _is_turned(b):
        return np.ascontiguousarray(b)
    laid = np.empty(b.shape, b.dtype)
    for start in range(0, b.shape[-1], STRIP):
        laid[..., start : start + STRIP] = b[..., start : start + STRIP]
    return laid


def _by_einsum(a: Array, b: Array, out: Array) -> None:
    c_einsum("bik,bkn->bin", a, b, out=out)


def _by_updates(a: Array, b: Array, out: Array) -> None:
    """Add, for each k in turn, the product of a column and a row to `out`, which is zero."""
    count, m, n = out.shape
    rows = min(m, max(1, UPDATE_ELEMENTS // n))
    stack = max(1, UPDATE_ELEMENTS // (rows * n))
    for first in range(0, count, stack):
        right = b[first : first + stack]
        for top in range(0, m, rows):
            at = slice(first, first + stack), slice(top, top + rows)
            left, into = a[at], out[at]
            terms = np.empty(into.shape, out.dtype)
            for k in range(a.shape[2]):
                np.multiply(left[:, :, k : k + 1], right[:, k : k + 1], out=terms)
                np.add(into, terms, out=into)


@functools.cache
def einsum_is_exact(dtype: np.dtype[np.generic]) -> bool:
    """Whether einsum gives the bits of rank 1 updates on this machine, tried once in a process.

    It does not where NumPy is built to fuse multiplications and additions. The trial has every
    remainder of vector loops, and values whose sums round in nearly every step.
    """
    numbers = np.random.Generator(np.random.PCG64(7))
    for count, m, k, n in ((1, 3, 37, 67), (2, 5, 19, 2), (3, 1, 64, 33), (1, 17, 5, 7)):
        for width in (n, n + 5):  # whole, and as a slice
            a = (numbers.random((count, m, k)) - 0.5).astype(dtype)
            b = (numbers.random((count, k, width)) - 0.5).astype(dtype)[:, :, :n]
            expected, found = np.zeros((2, count, m, width), dtype)[..., :n]
            _by_updates(a, b, expected)
            _by_einsum(a, b, found)
            if not np.array_equal(expected, found):
                return False
    return True
