"""MatMul 1/9/13 and Gemm 1/6/7/9/11/13.

A large product is cut into tiles chosen from its shape alone. The cut follows the longer side of
the result, because BLAS packs the other operand anew for every tile. MatMul, Gemm and the fused
Linear are one function of the same tiles, so they agree bit for bit.

BLAS sums in another order where an operand is given column by column, so that the last bits would
hang on how an operand came to be. Such operands are copied first: only shapes decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from foldline.kernels.epilogue import Apply
from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import rounded, widening, widening_maker
from foldline.kernels.registry import Array, Operand, kernel, maker
from foldline.kernels.windows import even_spans

TILE_WORK = 24 << 20
"""Multiply-adds worth a tile of their own: about half a millisecond. Two tiles cost one thread
2 to 4 % more than a single product."""
MOST_TILES = 8
LEAST_TILE_SIDE = 128
BLOCK = 16
"""Columns that BLAS takes at once when it multiplies a row with a matrix."""


class Tile(NamedTuple):
    """A part of a matrix."""

    row0: int
    col0: int
    rows: int
    cols: int


class Product(Protocol):
    """Computes `out[m, n] = a[m, k] @ b[k, n]`; `out` and tiles of it may be strided."""

    def __call__(self, a: Array, b: Array, out: Array, apply: Apply | None = None) -> None:
        """`apply` is called for each tile once it is finished, see `foldline.kernels.epilogue`."""
        ...


def product_tiles(m: int, k: int, n: int) -> tuple[Tile, ...]:
    """The tiles of a product: k decides what a tile is worth, m and n are cut accordingly."""
    if not m or not n:
        return ()
    tiles = min(MOST_TILES, m * k * n // TILE_WORK, max(m, n) // LEAST_TILE_SIDE)
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


@kernel("MatMul")
@widening
def matmul_reference(a: Array, b: Array, *, out: Array | None = None) -> Array:
    """MatMul 1/9/13: NumPy's matmul; integers exactly, wrapping like their type."""
    return np.asarray(np.matmul(a, b, out=out))


@maker("MatMul")
@widening_maker
def matmul(a: Operand, b: Operand, *, out: Array | None = None) -> Callable[..., Array]:
    """MatMul 1/9/13, tiled; a stack of matrices times one matrix is a single product."""
    if a.dtype.kind != "f":
        return _integer_matmul
    if len(b.shape) < 2:
        return _contiguous_matmul
    if len(b.shape) == 2:
        k, n = b.shape
        rows = math.prod(a.shape[:-1])
        shape = (*a.shape[:-1], n)
        multiply = matrix_product(rows, k, n)
        is_vector = 1 in (rows, n)

        def run_flat(a: Array, b: Array, *, out: Array | None = None) -> Array:
            out = np.empty(shape, a.dtype) if out is None else out
            left, right = by_rows(a.reshape(rows, k), is_vector), by_rows(b, is_vector)
            multiply(left, right, out.reshape(rows, n))
            return out

        return run_flat
    if len(a.shape) < 2:
        return _contiguous_matmul
    return _stacked_matmul(a, b)


def _stacked_matmul(a: Operand, b: Operand) -> Callable[..., Array]:
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    (m, k), n = a.shape[-2:], b.shape[-1]
    shape = (*stack, m, n)
    count = math.prod(stack)
    tiles = min(MOST_TILES, count * m * k * n // TILE_WORK, count)
    is_vector = 1 in (m, n)
    if tiles <= 1:

        def run_whole(a: Array, b: Array, *, out: Array | None = None) -> Array:
            return np.asarray(np.matmul(by_rows(a, is_vector), by_rows(b, is_vector), out=out))

        return run_whole
    spans = even_spans(count, tiles)

    def run(a: Array, b: Array, *, out: Array | None = None) -> Array:
        out = np.empty(shape, a.dtype) if out is None else out
        left, right = by_rows(a, is_vector), by_rows(b, is_vector)
        lhs = np.broadcast_to(left, (*stack, m, k)).reshape(count, m, k)
        rhs = np.broadcast_to(right, (*stack, k, n)).reshape(count, k, n)
        flat = out.reshape(count, m, n)

        def tile(index: int) -> None:
            start, stop = spans[index]
            np.matmul(lhs[start:stop], rhs[start:stop], out=flat[start:stop])

        parallel_for(len(spans), tile)
        return out

    return run


def _integer_matmul(a: Array, b: Array, *, out: Array | None = None) -> Array:
    """Exact and wrapping. NumPy has no BLAS for integers; float64 does when no sum can round."""
    largest = a.shape[-1] * _magnitude(a) * _magnitude(b)
    if largest >= 1 << 53:
        return _plain_matmul(a, b, out=out)
    exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
    return rounded(np.asarray(exact).astype(np.int64), a.dtype, out)


def _magnitude(array: Array) -> int:
    return max(abs(int(array.min())), abs(int(array.max()))) if array.size else 0


def _plain_matmul(a: Array, b: Array, *, out: Array | None = None) -> Array:
    return np.asarray(np.matmul(a, b, out=out))


def _contiguous_matmul(a: Array, b: Array, *, out: Array | None = None) -> Array:
    left, right = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return np.asarray(np.matmul(left, right, out=out))


@kernel("Gemm", until=7)
@widening
def gemm_6(
    a: Array,
    b: Array,
    c: Array,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,
    transB: int = 0,
    out: Array | None = None,
) -> Array:
    """Gemm 1/6: C must have the shape of the result unless `broadcast` is set."""
    shape = (a.shape[1 if transA else 0], b.shape[0 if transB else 1])
    if not broadcast and c.shape != shape:
        raise ValueError(f"C has shape {c.shape}, not {shape}, and broadcast is 0")
    return gemm_reference(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB, out=out)


@kernel("Gemm", since=7)
@widening
def gemm_reference(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    out: Array | None = None,
) -> Array:
    """Gemm 7/9/11/13: `alpha * A' @ B' + beta * C`, C broadcast to the result.

    For integers a factor other than 1 is applied in float64 and the result truncated.
    """
    result = _scaled(np.matmul(a.T if transA else a, b.T if transB else b), alpha)
    if c is not None:
        result = result + _scaled(c, beta)
    return rounded(result, a.dtype, out)


def _scaled(array: Array, factor: float) -> Array:
    if factor == 1.0:
        return array
    if array.dtype.kind == "f":
        return array * array.dtype.type(factor)
    return (array * factor).astype(array.dtype)


@maker("Gemm", since=7)
@widening_maker
def gemm(
    a: Operand,
    b: Operand,
    c: Operand | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    out: Array | None = None,
) -> Callable[..., Array]:
    """Gemm 7/9/11/13, tiled; a constant B is transposed and scaled once."""
    if a.dtype.kind != "f":

        def run_plain(*arrays: Array, out: Array | None = None) -> Array:
            return gemm_reference(
                *arrays, alpha=alpha, beta=beta, transA=transA, transB=transB, out=out
            )

        return run_plain
    m, k = reversed(a.shape) if transA else a.shape
    n = b.shape[0 if transB else 1]
    multiply = matrix_product(m, k, n)
    kept = None if b.value is None else np.ascontiguousarray(b.value.T if transB else b.value)
    addend = None if c is None or c.value is None else _scaled(c.value, beta)
    is_vector = 1 in (m, n)

    def run(a: Array, b: Array, c: Array | None = None, *, out: Array | None = None) -> Array:
        out = np.empty((m, n), a.dtype) if out is None else out
        left = by_rows(a.T if transA else a, is_vector)
        right = kept if kept is not None else by_rows(b.T if transB else b, is_vector)
        multiply(left, right, out)
        if alpha != 1.0:
            np.multiply(out, out.dtype.type(alpha), out=out)
        if c is not None:
            np.add(out, addend if addend is not None else _scaled(c, beta), out=out)
        return out

    return run
