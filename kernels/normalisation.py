"""Layer, RMS, mean-variance and Lp normalisation.

Statistics are float32 at least, float64 for float64 and where `stash_type` is double.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import (
    rounded,
    widened,
    widening,
    widening_maker,
    working_dtype,
)
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.ufuncs import constant
from foldline.kernels.windows import even_spans
from foldline.support.dtypes import BY_CODE

TILE_BYTES = 256 << 10
LONGEST_DOT = 4096
"""Up to this length the sum of a row is its product with ones, several times faster than a sum."""


def centre_rows(rows: Array, epsilon: float, out: Array) -> tuple[Array, Array]:
    """Write `rows - mean` to `out`; return the mean of each row and `1 / sqrt(variance + eps)`.

    All float of one dtype; `out` may be `rows`. The variance is that of the population.
    """
    mean = row_sums(rows)
    np.divide(mean, constant(rows.shape[1], rows.dtype), mean)
    np.subtract(rows, mean[:, None], out)
    return mean, _inverse_root(np.vecdot(out, out), rows.shape[1], epsilon)


def row_sums(rows: Array) -> Array:
    """The sum of each row of a matrix."""
    if rows.shape[1] <= LONGEST_DOT:
        return np.matmul(rows, _ones(rows.shape[1], rows.dtype))
    return np.add.reduce(rows, axis=1)


@cache
def _ones(count: int, dtype: np.dtype[np.generic]) -> Array:
    ones = np.ones(count, dtype)
    ones.flags.writeable = False
    return ones


def _inverse_root(squares: Array, count: int, epsilon: float) -> Array:
    """`1 / sqrt(squares / count + epsilon)`, written over `squares`."""
    kind = squares.dtype
    np.divide(squares, constant(count, kind), squares)
    np.add(squares, constant(epsilon, kind), squares)
    np.sqrt(squares, squares)
    return np.divide(constant(1, kind), squares, squares)


@kernel("LayerNormalization")
@widening
def layer_normalization_reference(
    x: Array,
    scale: Array,
    bias: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Array, Array, Array]:
    """LayerNormalization 17: standardise over `axis` and all after it, then scale and shift.

    Mean and InvStdDev come out in the stash type, with the axes reduced kept as 1.
    """
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(variance + x.dtype.type(epsilon))
    result = centred * inverse * scale
    stash = BY_CODE[stash_type].numpy
    result = result if bias is None else result + bias
    return np.asarray(result), np.asarray(mean, stash), np.asarray(inverse, stash)


@maker("LayerNormalization", inplace=(0,))
@widening_maker
def layer_normalization(
    x: Operand,
    scale: Operand,
    bias: Operand | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    output_count: int = 1,
    out: Array | None = None,
) -> Step:
    """LayerNormalization 17, in place and some rows at a time."""
    axis %= len(x.shape)
    rows, length = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
    spans = row_spans(rows, length, x.dtype)
    stash = BY_CODE[stash_type].numpy
    statistics_shape = (*x.shape[:axis], *(1,) * (len(x.shape) - axis))

    def parts(
        x: Array, scale: Array, bias: Array | None, out: Array, statistics: Array | None = None
    ) -> list[Callable[[], None]]:
        source, result = x.reshape(rows, length), out.reshape(rows, length)
        factor = _spread(scale, x.shape, axis)
        shift = None if bias is None else _spread(bias, x.shape, axis)

        def part(span: slice) -> Callable[[], None]:
            seen, written, factors = source[span], result[span], _rows_of(factor, span)
            shifts = None if shift is None else _rows_of(shift, span)
            kept = None if statistics is None else statistics[:, span]

            def compute() -> None:
                mean, inverse = centre_rows(seen, epsilon, written)
                np.multiply(written, inverse[:, None], written)
                np.multiply(written, factors, written)
                if shifts is not None:
                    np.add(written, shifts, written)
                if kept is not None:
                    kept[...] = mean, inverse

            return compute

        return [part(slice(*span)) for span in spans] if out.size else []

    def run(
        x: Array, scale: Array, bias: Array | None = None, *, out: Array | None = None
    ) -> Array | tuple[Array, ...]:
        out = np.empty(x.shape, x.dtype) if out is None else out
        statistics = np.empty((2, rows), x.dtype) if output_count > 1 else None
        _in_parallel(parts(x, scale, bias, out, statistics))()
        if statistics is None:
            return out
        return (out, *(row.reshape(statistics_shape).astype(stash) for row in statistics))

    def bind(x: Array, scale: Array, bias: Array | None = None, *, out: Array) -> Callable[[], Any]:
        factors = [scale] if bias is None else [scale, bias]
        if not all(factor.size == length for factor in factors) or not all(
            array.flags.c_contiguous for array in (x, out, *factors)
        ):
            # They would be copied, now and not in each run.
            return partial(run, x, scale, bias, out=out)
        return _in_parallel(parts(x, scale, bias, out))

    return Step(run, bind=bind if output_count == 1 else None)


def _in_parallel(parts: Sequence[Callable[[], None]]) -> Callable[[], None]:
    if len(parts) == 1:
        return parts[0]
    return lambda: parallel_for(len(parts), lambda index: parts[index]())


@kernel("RMSNormalization")
def rms_normalization_reference(
    x: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """RMSNormalization 23: `x / sqrt(mean(x^2) + eps) * scale` over `axis` and all after it.

    The result has the dtype of `scale`.
    """
    axes = tuple(range(axis % x.ndim, x.ndim))
    values = widened(x, stash_type)
    squares = (values * values).mean(axis=axes, keepdims=True)
    normalised = values / np.sqrt(squares + values.dtype.type(epsilon))
    return rounded(normalised * widened(scale, stash_type), scale.dtype)


@maker("RMSNormalization", inplace=(0,))
def rms_normalization(
    x: Operand,
    scale: Operand,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    out: Array | None = None,
) -> Callable[..., Array]:
    """RMSNormalization 23, in place and some rows at a time."""
    if not x.dtype == scale.dtype == working_dtype(x.dtype, stash_type):

        def run_plain(x: Array, scale: Array, *, out: Array | None = None) -> Array:
            result = rms_normalization_reference(
                x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type
            )
            return rounded(result, result.dtype, out)

        return run_plain
    axis %= len(x.shape)
    rows, length = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
    spans = row_spans(rows, length, x.dtype)

    def run(x: Array, scale: Array, *, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        source, result = x.reshape(rows, length), out.reshape(rows, length)
        factor = _spread(scale, x.shape, axis)

        def tile(index: int) -> None:
            span = slice(*spans[index])
            part, seen = result[span], source[span]
            inverse = _inverse_root(np.vecdot(seen, seen), length, epsilon)
            np.multiply(seen, inverse[:, None], out=part)
            np.multiply(part, _rows_of(factor, span), out=part)

        if out.size:
            parallel_for(len(spans), tile)
        return out

    return run


def row_spans(rows: int, length: int, dtype: np.dtype[np.generic]) -> list[tuple[int, int]]:
    """Spans of the rows of a matrix that are worth a tile each."""
    return even_spans(rows, -(-rows * length * dtype.itemsize // TILE_BYTES))


def _spread(factor: Array, shape: tuple[int, ...], axis: int) -> Array:
    """A factor that broadcasts to X as a matrix of one row, or of a row for each row of X."""
    if factor.size == math.prod(shape[axis:]):
        return factor.reshape(1, -1)
    lead = factor.shape[: max(0, factor.ndim - (len(shape) - axis))]
    if math.prod(lead) == 1:
        return np.broadcast_to(factor.reshape(factor.shape[len(lead) :]), shape[axis:]).reshape(
            1, -1
        )
    return np.broadcast_to(factor, shape).reshape(math.prod(shape[:axis]), -1)


def _rows_of(factor: Array, span: slice) -> Array:
    return factor if len(factor) == 1 else factor[span]


@kernel("MeanVarianceNormalization")
@widening
def mean_variance_normalization(x: Array, *, axes: Sequence[int] = (0, 2, 3)) -> Array:
    """MeanVarianceNormalization 9/13: `(x - mean) / (sqrt(variance) + 1e-9)` over `axes`."""
    centred = x - x.mean(axis=tuple(axes), keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=tuple(axes), keepdims=True))
    return np.asarray(centred / (deviation + x.dtype.type(1e-9)))


@kernel("LpNormalization")
@widening
def lp_normalization(x: Array, *, axis: int = -1, p: int = 2, out: Array | None = None) -> Array:
    """LpNormalization 1/22: X divided by its norm along `axis`; where the norm is 0, 0."""
    size = np.abs(x)
    norm = size.sum(axis=axis, keepdims=True) if p == 1 else _root_of_squares(x, axis)
    out = np.empty_like(x) if out is None else out
    out.fill(0)
    return np.divide(x, norm, out=out, where=norm != 0)


def _root_of_squares(x: Array, axis: int) -> Array:
    return np.sqrt((x * x).sum(axis=axis, keepdims=True))
