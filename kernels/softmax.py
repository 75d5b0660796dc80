"""Softmax, LogSoftmax and Hardmax 1/11/13.

Below version 13 the input is seen as a matrix, cut at `axis`, and a row is normalised; from 13 on
a single axis is. Softmax of narrow floats is rounded after each step of its function body, which
is what the backend tests of ONNX expect; LogSoftmax, where that would cancel digits, only once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import NARROW, rounded, stepped, widened, widening, widening_maker
from foldline.kernels.registry import Array, Operand, kernel, maker
from foldline.kernels.windows import even_spans

TILE_BYTES = 256 << 10
LONGEST_DOT = 4096
"""Up to this length the sum of a row is its product with ones, several times faster than a sum."""

FEW = 4096
"""Elements of which the maxima take less time than the four calls of a way round them."""

Shape3 = tuple[int, int, int]


def one_axis(shape: tuple[int, ...], axis: int) -> Shape3:
    """Extents before, along and after `axis`."""
    axis += len(shape) if axis < 0 else 0
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def matrix_of(shape: tuple[int, ...], axis: int) -> Shape3:
    """The same for the matrix that versions below 13 see."""
    axis += len(shape) if axis < 0 else 0
    return math.prod(shape[:axis]), math.prod(shape[axis:]), 1


@kernel("Softmax", until=13)
def softmax_11_reference(x: Array, *, axis: int = 1) -> Array:
    """Softmax 1/11: over each row of X seen as a matrix."""
    return _exp_shares(x.reshape(matrix_of(x.shape, axis))).reshape(x.shape)


@kernel("Softmax", since=13)
def softmax_reference(x: Array, *, axis: int = -1) -> Array:
    """Softmax 13: `exp(x - max) / sum(exp(x - max))` along `axis`."""
    return _exp_shares(x.reshape(one_axis(x.shape, axis))).reshape(x.shape)


def _exp_shares(x: Array) -> Array:
    dtype, x = x.dtype, widened(x)
    powers = stepped(np.exp(stepped(x - _max(x), dtype)), dtype)
    totals = stepped(np.add.reduce(powers, axis=1, keepdims=True), dtype)
    return rounded(powers / totals, dtype)


@kernel("LogSoftmax", until=13)
@widening
def log_softmax_11_reference(x: Array, *, axis: int = 1) -> Array:
    """LogSoftmax 1/11: over each row of X seen as a matrix."""
    return _log_shares(x.reshape(matrix_of(x.shape, axis))).reshape(x.shape)


@kernel("LogSoftmax", since=13)
@widening
def log_softmax_reference(x: Array, *, axis: int = -1) -> Array:
    """LogSoftmax 13: `x - max - log(sum(exp(x - max)))` along `axis`."""
    return _log_shares(x.reshape(one_axis(x.shape, axis))).reshape(x.shape)


def _log_shares(x: Array) -> Array:
    shifted = x - _max(x)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis=1, keepdims=True))


def _max(x: Array) -> Array:
    return np.maximum.reduce(x, axis=1, keepdims=True, initial=-math.inf)


@maker("Softmax", until=13, inplace=(0,))
def softmax_11(x: Operand, *, axis: int = 1, out: Array | None = None) -> Callable[..., Array]:
    """Softmax 1/11, in place and tiled."""
    return _tiled(x, matrix_of(x.shape, axis), _softmax_body(x))


@maker("Softmax", since=13, inplace=(0,))
def softmax(x: Operand, *, axis: int = -1, out: Array | None = None) -> Callable[..., Array]:
    """Softmax 13, in place and tiled."""
    return _tiled(x, one_axis(x.shape, axis), _softmax_body(x))


@maker("LogSoftmax", until=13, inplace=(0,))
@widening_maker
def log_softmax_11(x: Operand, *, axis: int = 1, out: Array | None = None) -> Callable[..., Array]:
    """LogSoftmax 1/11, in place and tiled."""
    return _tiled(x, matrix_of(x.shape, axis), _log_softmax_tile)


@maker("LogSoftmax", since=13, inplace=(0,))
@widening_maker
def log_softmax(x: Operand, *, axis: int = -1, out: Array | None = None) -> Callable[..., Array]:
    """LogSoftmax 13, in place and tiled."""
    return _tiled(x, one_axis(x.shape, axis), _log_softmax_tile)


def _tiled(
    x: Operand,
    shape: Shape3,
    body: Callable[[Array, Array], None],
) -> Callable[..., Array]:
    size = math.prod(shape) * x.dtype.itemsize
    spans = even_spans(shape[0], -(-size // TILE_BYTES))

    def run(x: Array, *, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        source, result = x.reshape(shape), out.reshape(shape)

        def tile(index: int) -> None:
            start, stop = spans[index]
            body(source[start:stop], result[start:stop])

        if out.size:
            parallel_for(len(spans), tile)
        return out

    return run


def _softmax_body(x: Operand) -> Callable[[Array, Array], None]:
    return _narrow_softmax_tile if x.dtype in NARROW else _softmax_tile


def _narrow_softmax_tile(x: Array, out: Array) -> None:
    out[...] = _exp_shares(x)


def _softmax_tile(x: Array, out: Array) -> None:
    np.subtract(x, _maxima(x), out=out)
    np.exp(out, out=out)
    np.divide(out, _sums(out), out=out)


def _log_softmax_tile(x: Array, out: Array) -> None:
    np.subtract(x, _maxima(x), out=out)
    np.subtract(out, np.log(_sums(np.exp(out))), out=out)


def _maxima(x: Array) -> Array:
    rows, length, inner = x.shape
    if inner > 1 or x.size <= FEW:
        return np.maximum.reduce(x, axis=1, keepdims=True)
    # argmax runs on vectors of the CPU also when rows are short; the maximum of rows does not.
    flat = x.reshape(-1)
    starts = np.arange(len(x)) * length
    return flat[starts + np.argmax(x.reshape(rows, length), axis=1)].reshape(rows, 1, 1)


def _sums(x: Array) -> Array:
    rows, length, inner = x.shape
    if inner == 1 and length <= LONGEST_DOT:
        return np.matmul(x.reshape(rows, length), _ones(length, x.dtype)).reshape(rows, 1, 1)
    return np.add.reduce(x, axis=1, keepdims=True)


@lru_cache(maxsize=64)
def _ones(length: int, dtype: np.dtype[np.generic]) -> Array:
    return np.ones(length, dtype)


@kernel("Hardmax", until=13, exact=True)
def hardmax_11(x: Array, *, axis: int = 1) -> Array:
    """Hardmax 1/11: 1 at the first maximum of each row of X seen as a matrix, else 0."""
    return _hardmax(x, matrix_of(x.shape, axis))


@kernel("Hardmax", since=13, exact=True)
def hardmax(x: Array, *, axis: int = -1) -> Array:
    """Hardmax 13: 1 at the first maximum along `axis`, else 0."""
    return _hardmax(x, one_axis(x.shape, axis))


def _hardmax(x: Array, shape: Shape3) -> Array:
    out = np.zeros(shape, x.dtype)
    if out.size:
        first = np.argmax(x.reshape(shape), axis=1, keepdims=True)
        np.put_along_axis(out, first, np.ones((), x.dtype), axis=1)
    return out.reshape(x.shape)
