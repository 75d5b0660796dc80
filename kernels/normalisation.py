"""Layer, RMS, group, instance, mean-variance and Lp normalisation.

The first four bring the rows of a matrix to mean 0 and variance 1; they differ in what a row is
and in the scale and bias that follow. Statistics are float32 at least, float64 for float64 and
where `stash_type` is double.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import (
    rounded,
    widened,
    widening,
    widening_maker,
    working_dtype,
)
from foldline.kernels.registry import Array, Operand, kernel, maker
from foldline.kernels.windows import even_spans
from foldline.support.dtypes import BY_CODE

TILE_BYTES = 256 << 10
LONGEST_DOT = 4096
"""Up to this length the sum of a row is its product with ones, several times faster than a sum."""


def centre_rows(rows: Array, epsilon: float, out: Array) -> tuple[Array, Array]:
    """Write `rows - mean` to `out`; return the mean of each row and `1 / sqrt(variance + eps)`.

    All float of one dtype; `out` may be `rows`. The variance is that of the population.
    """
    mean = row_sums(rows) / rows.dtype.type(rows.shape[1])
    np.subtract(rows, mean[:, None], out=out)
    return mean, _inverse_root(np.vecdot(out, out), rows.shape[1], epsilon)


def row_sums(rows: Array) -> Array:
    """The sum of each row of a matrix."""
    if rows.shape[1] <= LONGEST_DOT:
        return np.matmul(rows, np.ones(rows.shape[1], rows.dtype))
    return np.add.reduce(rows, axis=1)


def _inverse_root(squares: Array, count: int, epsilon: float) -> Array:
    kind = squares.dtype.type
    return kind(1) / np.sqrt(squares / kind(count) + kind(epsilon))


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
) -> Callable[..., Array | tuple[Array, ...]]:
    """LayerNormalization 17, in place and some rows at a time."""
    axis %= len(x.shape)
    rows, length = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
    spans = _row_spans(rows, length, x.dtype)
    stash = BY_CODE[stash_type].numpy
    statistics_shape = (*x.shape[:axis], *(1,) * (len(x.shape) - axis))

    def run(
        x: Array, scale: Array, bias: Array | None = None, *, out: Array | None = None
    ) -> Array | tuple[Array, ...]:
        out = np.empty(x.shape, x.dtype) if out is None else out
        source, result = x.reshape(rows, length), out.reshape(rows, length)
        factor = _spread(scale, x.shape, axis)
        shift = None if bias is None else _spread(bias, x.shape, axis)
        mean, inverse = np.empty(rows, x.dtype), np.empty(rows, x.dtype)

        def tile(index: int) -> None:
            span = slice(*spans[index])
            part = result[span]
            mean[span], inverse[span] = centre_rows(source[span], epsilon, part)
            np.multiply(part, inverse[span, None], out=part)
            np.multiply(part, _rows_of(factor, span), out=part)
            if shift is not None:
                np.add(part, _rows_of(shift, span), out=part)

        if out.size:
            parallel_for(len(spans), tile)
        if output_count == 1:
            return out
        return (
            out,
            mean.reshape(statistics_shape).astype(stash),
            inverse.reshape(statistics_shape).astype(stash),
        )

    return run


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
    spans = _row_spans(rows, length, x.dtype)

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


def _row_spans(rows: int, length: int, dtype: np.dtype[np.generic]) -> list[tuple[int, int]]:
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


@kernel("InstanceNormalization", inplace=(0,))
@widening
def instance_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    consumed_inputs: Sequence[int] | None = None,
    epsilon: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """InstanceNormalization 1/6/22: standardise each channel of each image."""
    return _normalise_groups(x, scale, bias, x.shape[1], epsilon, out)


@kernel("GroupNormalization", until=21, inplace=(0,))
@widening
def group_normalization_18(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    out: Array | None = None,
) -> Array:
    """GroupNormalization 18: scale and bias have one entry a group."""
    size = x.shape[1] // num_groups
    return _normalise_groups(
        x, np.repeat(scale, size), np.repeat(bias, size), num_groups, epsilon, out
    )


@kernel("GroupNormalization", since=21, inplace=(0,))
@widening
def group_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    out: Array | None = None,
) -> Array:
    """GroupNormalization 21: scale and bias have one entry a channel."""
    return _normalise_groups(x, scale, bias, num_groups, epsilon, out)


def _normalise_groups(
    x: Array, scale: Array, bias: Array, groups: int, epsilon: float, out: Array | None
) -> Array:
    out = np.empty(x.shape, x.dtype) if out is None else out
    if not out.size:
        return out
    batch, channels, size = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    per_group = channels // groups
    source = x.reshape(batch * groups, per_group * size)
    result = out.reshape(source.shape)
    factors = np.tile(scale.reshape(groups, per_group), (batch, 1))
    shifts = np.tile(bias.reshape(groups, per_group), (batch, 1))
    spans = _row_spans(*source.shape, x.dtype)

    def tile(index: int) -> None:
        span = slice(*spans[index])
        _, inverse = centre_rows(source[span], epsilon, result[span])
        part = result[span].reshape(-1, per_group, size)
        np.multiply(part, (factors[span] * inverse[:, None])[..., None], out=part)
        np.add(part, shifts[span, :, None], out=part)

    parallel_for(len(spans), tile)
    return out


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
