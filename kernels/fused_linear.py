"""Linear of the fused dialect: a product with a matrix, a bias and an activation in one go.

    activation(A @ B + C), or with transB activation(A @ B^T + C)

The product is that of MatMul and Gemm, tile for tile; the bias is one rounded addition, and the
activation is the kernel of its operator. So the bits are those of the operators one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels.epilogue import (
    Activation,
    Epilogue,
    activation_of,
    activation_of_halves,
    exactly_activated,
)
from foldline.kernels.exact_bits import canonical
from foldline.kernels.exact_matmul import matmul as exact_matmul
from foldline.kernels.matmul import matmul, matmul_reference
from foldline.kernels.packing import BLAS, pack_b
from foldline.kernels.precision import NARROW, rounded, stepped, widened, working_dtype
from foldline.kernels.registry import (
    Array,
    Operand,
    Step,
    computes_in_single,
    kernel,
    maker,
)
from foldline.kernels.tiled_products import bound_product, by_rows, flat_product

DOMAIN = "foldline"


@kernel("Linear", domain=DOMAIN)
def linear_reference(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    product: str = "MatMul",
    transB: int = 0,
    out: Array | None = None,
) -> Array:
    """The operators one by one; `product` says what files get and does not matter here."""
    y = matmul_reference(a, b.T if transB else b, out=out)
    if c is not None:
        np.add(y, c.reshape(-1), out=y)
    if activation:
        run = activation_of(activation, activation_params or (), y.dtype).run
        np.copyto(y, run(y, out=np.empty_like(y)))
    return y


def linear(
    a: Operand,
    b: Operand,
    c: Operand | None = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    product: str = "MatMul",
    transB: int = 0,
    out: Array | None = None,
) -> Callable[..., Array] | Step:
    """Linear in tiles, each of which is finished while it is in cache."""
    params = tuple(activation_params or ())
    activate = activation_of(activation, params, a.dtype) if activation else None
    if a.dtype in NARROW:
        return _narrow(a, _transposed(b) if transB else b, bool(transB), activate)
    return _tiled(a, b, c, partial(Epilogue, activation=activate), transB)


def linear_of_halves(
    a: Operand,
    b: Operand,
    c: Operand | None = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    product: str = "MatMul",
    transB: int = 0,
) -> Callable[..., Array] | Step:
    """Linear of float16 held in float32."""
    activate = activation_of_halves(activation, activation_params or ()) if activation else None
    finish = partial(Epilogue, activation=activate, of_halves=True)
    return _tiled(a, b, c, finish, transB)


maker("Linear", domain=DOMAIN)(computes_in_single(linear, linear_of_halves))


def _tiled(
    a: Operand,
    b: Operand,
    c: Operand | None,
    epilogue: Callable[[Array | None], Epilogue],
    transB: int,
) -> Callable[..., Array] | Step:
    rows, k, n = math.prod(a.shape[:-1]), a.shape[-1], b.shape[0 if transB else 1]
    shape = (*a.shape[:-1], n)
    is_vector = 1 in (rows, n)
    kept = None if b.value is None else pack_b(BLAS, b.value, bool(transB)).reshape(k, n)
    multiply = flat_product(rows, k, n, a.dtype, kept)
    fixed = epilogue(None if c is None else c.value).apply
    is_fixed = c is None or c.value is not None

    def run(a: Array, b: Array, c: Array | None = None, *, out: Array | None = None) -> Array:
        out = np.empty(shape, a.dtype) if out is None else out
        left = by_rows(a.reshape(rows, k), is_vector)
        right = kept if kept is not None else by_rows(b.T if transB else b, is_vector)
        apply = fixed if is_fixed else epilogue(c).apply
        multiply(left, right, out.reshape(rows, n), apply)
        return out

    if kept is None or not is_fixed:
        return run

    def bind(a: Array, b: Array, c: Array | None = None, *, out: Array) -> Callable[[], Any]:
        if not a.flags.c_contiguous or not out.flags.c_contiguous:
            return partial(run, a, b, c, out=out)
        return bound_product(multiply, a.reshape(rows, k), kept, out.reshape(rows, n), fixed)

    return Step(run, bind=bind)


def _transposed(b: Operand) -> Operand:
    return Operand(b.shape[::-1], b.dtype, None if b.value is None else b.value.T)


def _narrow(
    a: Operand, b: Operand, transposed: bool, activate: Activation | None
) -> Callable[..., Array]:
    """The operators one by one, as each of them rounds."""
    dtype = a.dtype
    kept = None if b.value is None else widened(b.value)
    multiply: Callable[..., Array] = matmul(
        Operand(a.shape, working_dtype(dtype)), Operand(b.shape, working_dtype(b.dtype), kept)
    )

    def run(a: Array, b: Array, c: Array | None = None, *, out: Array | None = None) -> Array:
        right = kept if kept is not None else widened(b.T if transposed else b)
        y = multiply(widened(a), right)
        if c is not None:
            y = stepped(y, dtype)
            np.add(y, widened(c.reshape(-1)), out=y)
        if activate is None:
            return rounded(y, dtype, out)
        y = rounded(y, dtype)
        return activate.run(y, out=np.empty_like(y) if out is None else out)

    return run


@kernel("Linear", domain=DOMAIN, grade="exact")
def exact_linear(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    product: str = "MatMul",
    transB: int = 0,
) -> Array:
    """The operators of exact mode one by one; NaN is made one before each of them."""
    y = exact_matmul(a, b.T if transB else b)
    if c is not None:
        y = canonical(np.add(y, c.reshape(-1)))
    return exactly_activated(y, activation or "", activation_params or ())
