"""BatchNormalization 1/6/7/9/14/15."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.channels_last import pixels
from foldline.kernels.exact_sums import tree_mean
from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import rounded, widened, working_dtype
from foldline.kernels.registry import Array, Operand, Step, computes_in_single, kernel, maker
from foldline.kernels.windows import even_spans

TILE_BYTES = 256 << 10

Results = Array | tuple[Array, ...]


@kernel("BatchNormalization", until=7)
def batch_normalization_6(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    consumed_inputs: Sequence[int] | None = None,
    epsilon: float = 1e-5,
    is_test: int = 0,
    momentum: float = 0.9,
    spatial: int = 1,
) -> Results:
    """BatchNormalization 1/6: trains unless `is_test` is set; see `batch_normalization_9`."""
    parameters = (scale, bias, mean, variance)
    if is_test:
        return _normalise(x, *parameters, epsilon, spatial)
    return _train(x, *parameters, epsilon, momentum, spatial)


@kernel("BatchNormalization", since=7, until=14)
def batch_normalization_9(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    output_count: int = 1,
) -> Results:
    """BatchNormalization 7/9: trains if the node has more outputs than the first.

    Outputs then are Y, running mean and variance, and mean and variance of this batch. Without
    `spatial` (only up to 7) every element of an image has statistics of its own.
    """
    parameters = (scale, bias, mean, variance)
    if output_count == 1:
        return _normalise(x, *parameters, epsilon, spatial)
    return _train(x, *parameters, epsilon, momentum, spatial)


@kernel("BatchNormalization", since=14)
def batch_normalization_reference(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Results:
    """BatchNormalization 14/15: outputs Y and, in training mode, running mean and variance."""
    if not training_mode:
        return _normalise(x, scale, bias, mean, variance, epsilon, 1)
    return _train(x, scale, bias, mean, variance, epsilon, momentum, 1)[:3]


def _normalise(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    epsilon: float,
    spatial: int,
) -> Array:
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias`, widened and rounded once."""
    wide = working_dtype(x.dtype)
    shape = _parameter_shape(x.shape, spatial)
    factor, shift, centre, spread = (
        v.astype(wide).reshape(shape) for v in (scale, bias, mean, variance)
    )
    inverse = 1 / np.sqrt(spread + wide.type(epsilon))
    result = widened(x) - centre
    result *= inverse * factor
    result += shift
    return rounded(result, x.dtype)


def _train(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    epsilon: float,
    momentum: float,
    spatial: int,
) -> tuple[Array, ...]:
    """Y, running mean and variance in the dtype of the old ones, and those of this batch."""
    wide = working_dtype(x.dtype)
    values = widened(x)
    axes = tuple(a for a in range(x.ndim) if a == 0 or (spatial and a > 1))
    centre = tree_mean(values, axes, True)
    centred = values - centre
    spread = tree_mean(centred * centred, axes, True)
    now = [centre.reshape(mean.shape), spread.reshape(mean.shape)]
    y = _normalise(x, scale, bias, now[0], now[1], epsilon, spatial)
    keep, take = wide.type(momentum), wide.type(1) - wide.type(momentum)
    running = [
        (old.astype(wide) * keep + new * take).astype(old.dtype)
        for old, new in zip((mean, variance), now, strict=True)
    ]
    return (y, *running, *(new.astype(mean.dtype) for new in now))


def _parameter_shape(x: tuple[int, ...], spatial: int) -> tuple[int, ...]:
    if len(x) == 1:  # a single axis is the batch of one channel
        return (1,)
    return (1, x[1], *(1,) * (len(x) - 2)) if spatial else (1, *x[1:])


@maker("BatchNormalization", since=7, until=14, inplace=(0,), any_order=True)
@computes_in_single
def batch_normalization_9_fast(
    x: Operand,
    scale: Operand,
    bias: Operand,
    mean: Operand,
    variance: Operand,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    output_count: int = 1,
    out: Array | None = None,
) -> Callable[..., Results] | Step:
    """BatchNormalization 7/9 at inference as one multiply and one add; else the reference."""
    parameters = (scale, bias, mean, variance)
    if output_count == 1 and spatial and len(x.shape) > 1:
        return _affine(x, parameters, epsilon)
    return _with_out(
        lambda *arrays: batch_normalization_9(
            *arrays, epsilon=epsilon, momentum=momentum, spatial=spatial, output_count=output_count
        )
    )


@maker("BatchNormalization", since=14, inplace=(0,), any_order=True)
@computes_in_single
def batch_normalization(
    x: Operand,
    scale: Operand,
    bias: Operand,
    mean: Operand,
    variance: Operand,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    out: Array | None = None,
) -> Callable[..., Results] | Step:
    """BatchNormalization 14/15 at inference as one multiply and one add; else the reference."""
    parameters = (scale, bias, mean, variance)
    if not training_mode and len(x.shape) > 1:
        return _affine(x, parameters, epsilon)
    return _with_out(
        lambda *arrays: batch_normalization_reference(
            *arrays, epsilon=epsilon, momentum=momentum, training_mode=training_mode
        )
    )


def _with_out(function: Callable[..., Results]) -> Callable[..., Results]:
    def run(*arrays: Array, out: Array | None = None) -> Results:
        results = function(*arrays)
        if isinstance(results, tuple):
            return (rounded(results[0], results[0].dtype, out), *results[1:])
        return rounded(results, results.dtype, out)

    return run


def _affine(
    x: Operand, parameters: Sequence[Operand], epsilon: float
) -> Callable[..., Array] | Step:
    """`x * factor + shift`; the two numbers a channel are found once if all inputs are constant.

    Narrow floats are widened and rounded tile by tile.
    """
    shape = (x.shape[0], x.shape[1], math.prod(x.shape[2:]))
    wide = working_dtype(x.dtype)
    constants = [p.value for p in parameters if p.value is not None]
    known = _coefficients(constants, epsilon, wide) if len(constants) == 4 else None
    if x.channels_last and wide == x.dtype:
        return Step(_affine_pixels(known, x, epsilon), channels_last=True)
    tiles = _tiles(shape, -(-math.prod(shape) * wide.itemsize // TILE_BYTES))

    def run(x: Array, *arrays: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        factor, shift = known or _coefficients(arrays, epsilon, wide)
        source, result = x.reshape(shape), out.reshape(shape)

        def tile(index: int) -> None:
            images, channels = tiles[index]
            target = result[images, channels]
            part = target if wide == x.dtype else widened(source[images, channels])
            values = source[images, channels] if part is target else part
            np.multiply(values, factor[channels], out=part)
            np.add(part, shift[channels], out=part)
            if part is not target:
                rounded(part, x.dtype, target)

        parallel_for(len(tiles), tile)
        return out

    return run


def _affine_pixels(
    known: tuple[Array, Array] | None, x: Operand, epsilon: float
) -> Callable[..., Array]:
    """The same where channels are innermost: a tile is some rows."""
    spans = even_spans(x.shape[2], -(-math.prod(x.shape) * x.dtype.itemsize // TILE_BYTES))

    def run(x: Array, *arrays: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        factor, shift = known or _coefficients(arrays, epsilon, x.dtype)
        source, result = pixels(x), pixels(out)

        def tile(index: int) -> None:
            rows = slice(*spans[index])
            part = result[:, rows]
            np.multiply(source[:, rows], factor[:, 0], out=part)
            np.add(part, shift[:, 0], out=part)

        parallel_for(len(spans), tile)
        return out

    return run


def _tiles(shape: tuple[int, ...], wanted: int) -> list[tuple[slice, slice]]:
    """Images and channels of each tile; small tensors are one."""
    if wanted <= 1:
        return [(slice(None), slice(None))]
    spans = even_spans(shape[1], -(-wanted // shape[0]))
    return [(slice(n, n + 1), slice(*span)) for n in range(shape[0]) for span in spans]


def _coefficients(
    parameters: Sequence[Array], epsilon: float, dtype: np.dtype[np.generic]
) -> tuple[Array, Array]:
    """Factor and shift, each `(channels, 1)`, from float64 so that the shift rounds once."""
    scale, bias, mean, variance = (p.astype(np.float64)[:, None] for p in parameters)
    factor = scale / np.sqrt(variance + epsilon)
    return factor.astype(dtype), (bias - mean * factor).astype(dtype)
