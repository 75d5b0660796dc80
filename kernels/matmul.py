"""MatMul 1/9/13 and Gemm 1/6/7/9/11/13, see `foldline.kernels.tiled_products` for how."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import rounded, widening, widening_maker
from foldline.kernels.registry import Array, Operand, kernel, maker
from foldline.kernels.strips import tiles_worth
from foldline.kernels.tiled_products import by_rows, flat_product
from foldline.kernels.windows import even_spans


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
        multiply = flat_product(rows, k, n, a.dtype, b.value)
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
    tiles = min(tiles_worth(count * m * k * n), count)
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
    kept = None if b.value is None else np.ascontiguousarray(b.value.T if transB else b.value)
    multiply = flat_product(m, k, n, a.dtype, kept)
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
