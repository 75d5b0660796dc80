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

import numpy as np

from foldline.kernels.exact_bits import canonical
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.windows import even_spans

TILE_WORK = 2 << 20
"""Multiply-adds worth a tile of their own."""
MOST_TILES = 8
UPDATE_ELEMENTS = 16 << 10
"""Elements of a result updated at a time: they and the products stay in cache."""
LEAST_WIDTH = 32
"""A narrower result is computed as its transpose, if that is wider."""


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
    if n < LEAST_WIDTH and m > n:
        return np.ascontiguousarray(
            product(b.swapaxes(-1, -2), a.swapaxes(-1, -2)).swapaxes(-1, -2)
        )
    if b.ndim == 2:
        rows = math.prod(a.shape[:-1])
        return _stacked(a.reshape(1, rows, a.shape[-1]), b[None]).reshape(*a.shape[:-1], n)
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = math.prod(stack)
    lhs = np.broadcast_to(a, (*stack, *a.shape[-2:])).reshape(count, *a.shape[-2:])
    rhs = np.broadcast_to(b, (*stack, *b.shape[-2:])).reshape(count, *b.shape[-2:])
    return _stacked(lhs, rhs).reshape(*stack, m, n)


def integer_product(a: Array, b: Array) -> Array:
    """`a @ b` of integers, which wraps around: the order of sums cannot matter.

    float64 is used where no sum can reach 2^53: every one is exact then.
    """
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        raise TypeError(f"integers are wanted, not {a.dtype} and {b.dtype}")
    if a.shape[-1] * _magnitude(a) * _magnitude(b) >= 1 << 53:
        return np.asarray(np.matmul(a, b))
    whole = np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)))
    return whole.astype(np.int64).astype(np.result_type(a, b))


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
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    multiply = _by_einsum if n > 1 and einsum_is_exact(a.dtype) else _by_updates
    tiles = min(MOST_TILES, max(1, out.size * k // TILE_WORK))
    # Cut along whatever is longest; a tile needs two columns for the faster formulation.
    side = max(range(3), key=lambda axis: (count, m, n // 16)[axis])
    spans = even_spans(out.shape[side], min(tiles, out.shape[side] if side < 2 else n // 16 or 1))

    def tile(index: int) -> None:
        span = slice(*spans[index])
        left = a[span] if side == 0 else a[:, span] if side == 1 else a
        right = b[span] if side == 0 else b[:, :, span] if side == 2 else b
        into = out[span] if side == 0 else out[:, span] if side == 1 else out[:, :, span]
        multiply(left, right, into)
        canonical(into)

    parallel_for(len(spans), tile)
    return out


def _by_einsum(a: Array, b: Array, out: Array) -> None:
    np.einsum("bik,bkn->bin", a, b, out=out, optimize=False)


def _by_updates(a: Array, b: Array, out: Array) -> None:
    """Add, for each k in turn, the product of a column and a row to `out`, which is zero."""
    for index in range(len(a)):
        rows = max(1, UPDATE_ELEMENTS // out.shape[2])
        for top in range(0, out.shape[1], rows):
            left, into = a[index, top : top + rows], out[index, top : top + rows]
            terms = np.empty(into.shape, out.dtype)
            for k in range(a.shape[2]):
                np.multiply(left[:, k : k + 1], b[index, k], out=terms)
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
