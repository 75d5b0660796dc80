"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.

    y = saturate(round_half_even(x / scale) + zero_point)        x = (y - zero_point) * scale

Scale and zero point are one number (per tensor), one for each index of an axis, or one for each
block of an axis. Quantising NaN to an integer is undefined in ONNX; here it is what NumPy's cast
makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from foldline.kernels.cast import convert
from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import NARROW
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import clip, constant
from foldline.kernels.windows import even_spans
from foldline.support.dtypes import BY_CODE, BY_NAME

TILE_ELEMENTS = 32 << 10
"""Elements quantised at a time, so that the passes after the first find them in cache."""

_FLOAT32 = np.dtype(np.float32)
_LONG_INTEGERS = frozenset(map(np.dtype, ("int32", "int64")))
_SCALE_ONLY = BY_NAME["float8e8m0"].numpy
_INTEGER_LIMITS: dict[np.dtype[Any], tuple[int, int]] = {
    BY_NAME[f"{kind}{bits}"].numpy: limits
    for bits in (2, 4, 8, 16)
    for kind, limits in (
        ("uint", (0, 2**bits - 1)),
        ("int", (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)),
    )
}


@kernel("QuantizeLinear")
def quantize_linear(
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
    out: Array | None = None,
) -> Array:
    """QuantizeLinear 10..28: any shape to the type of the zero point, `output_dtype` or uint8.

    The quotient has the type `precision`, else that of the scale. `saturate` concerns float8
    targets. ValueError when types or shapes do not fit together.
    """
    dtype = quantised_dtype(y_zero_point, output_dtype)
    quotient = BY_CODE[precision].numpy if precision else quotient_dtype(y_scale.dtype)
    out = np.empty(x.shape, dtype) if out is None else out
    shape, scale, zero = aligned_parameters(x.shape, axis, block_size, y_scale, y_zero_point)
    if zero is not None:
        zero = convert(zero, _FLOAT32) if zero.any() else None
    scale = convert(scale, quotient)

    def quantise(source: Array, target: Array) -> None:
        part = np.divide(source.astype(quotient, copy=False), scale)
        part = part.astype(np.float32, copy=False) if quotient in NARROW else part
        _to_target(part, zero, target, bool(saturate))

    _in_tiles(quantise, x.reshape(shape), out.reshape(shape), scale.size == 1)
    return out


def quantised_dtype(zero_point: Array | None, output_dtype: int) -> np.dtype[Any]:
    stated = BY_CODE[output_dtype].numpy if output_dtype else None
    if zero_point is None:
        return stated or np.dtype(np.uint8)
    if stated is not None and stated != zero_point.dtype:
        raise ValueError(f"output_dtype is {stated}, but the zero point is {zero_point.dtype}")
    return zero_point.dtype


def quotient_dtype(scale: np.dtype[Any]) -> np.dtype[Any]:
    if scale in _LONG_INTEGERS:  # float64 holds every integer such a scale and `x` can be
        return np.dtype(np.float64)
    return _FLOAT32 if scale == _SCALE_ONLY else scale


def _to_target(part: Array, zero: Array | None, target: Array, saturate: bool) -> None:
    """Write the quotients `part`, which may be overwritten, to `target` in its type."""
    limits = integer_limits(target.dtype)
    if limits is not None:
        np.rint(part, out=part)
    if zero is not None:
        np.add(part, zero, out=part)
    if limits is None:
        convert(part, target.dtype, saturate, out=target)
        return
    saturated(part, limits)
    np.copyto(target, part, casting="unsafe")


def quantised(total: Array, multiplier: Array, zero: Array) -> Array:
    """`saturate(round_half_even(total * multiplier) + zero)` in the type of `zero`.

    `total` are sums of products, int32 or float32, and the latter are overwritten; the product
    with `multiplier`, float32, which broadcasts to it, is float32.
    """
    out = np.empty(total.shape, zero.dtype)
    point = convert(zero, _FLOAT32) if zero.any() else None
    parts = _parts_of(total.shape)
    factors = np.broadcast_to(multiplier, total.shape) if len(parts) > 1 else multiplier

    def part(index: int) -> None:
        span = parts[index]
        source, into = np.atleast_1d(total[span]), np.atleast_1d(out[span])
        factor = factors[span] if len(parts) > 1 else factors
        target = source if source.dtype == _FLOAT32 else None
        product = np.multiply(source, factor, out=target, dtype=np.float32)
        _to_target(product, point, into, saturate=True)

    parallel_for(len(parts), part)
    return out


def _parts_of(shape: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Parts of an array that passes after the first find in cache: along its leading two axes."""
    size = math.prod(shape)
    if size <= TILE_ELEMENTS or not shape:
        return [(...,)]
    if len(shape) == 1:
        return [(slice(*span),) for span in even_spans(size, -(-size // TILE_ELEMENTS))]
    rows = even_spans(shape[1], -(-size // (shape[0] * TILE_ELEMENTS)))
    if shape[0] > 1 and len(shape) == 2:
        return [(slice(*span),) for span in even_spans(shape[0], -(-size // TILE_ELEMENTS))]
    return [(n, slice(*span)) for n in range(shape[0]) for span in rows]


def saturated(x: Array, limits: tuple[int, int]) -> Array:
    """`x`, of floats, with values beyond the limits replaced by a limit; in place."""
    return clip(x, constant(limits[0], x.dtype), constant(limits[1], x.dtype), x)


def integer_limits(dtype: np.dtype[Any]) -> tuple[int, int] | None:
    """The least and the greatest value of an integer type one may quantise to; None for floats."""
    return _INTEGER_LIMITS.get(dtype)


@kernel("DequantizeLinear")
def dequantize_linear(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    out: Array | None = None,
) -> Array:
    """DequantizeLinear 10..28: any shape to the type of the scale, or `output_dtype`.

    Computed in float32 and rounded once. ValueError when shapes do not fit together.
    """
    dtype = BY_CODE[output_dtype].numpy if output_dtype else x_scale.dtype
    out = np.empty(x.shape, dtype) if out is None else out
    shape, scale, zero = aligned_parameters(x.shape, axis, block_size, x_scale, x_zero_point)
    if zero is not None:
        zero = convert(zero, _FLOAT32) if zero.any() else None
    scale = convert(scale, _FLOAT32)

    def dequantise(source: Array, target: Array) -> None:
        part = target if dtype == _FLOAT32 else np.empty(target.shape, np.float32)
        np.copyto(part, source, casting="unsafe")
        if zero is not None:
            np.subtract(part, zero, out=part)
        np.multiply(part, scale, out=part)
        if part is not target:
            np.copyto(target, part, casting="unsafe")

    _in_tiles(dequantise, x.reshape(shape), out.reshape(shape), scale.size == 1)
    return out


def aligned_parameters(
    x: tuple[int, ...], axis: int, block_size: int, scale: Array, zero: Array | None
) -> tuple[tuple[int, ...], Array, Array | None]:
    """A shape to see `x` in, and scale and zero point in shapes that broadcast to it."""
    if zero is not None and zero.shape != scale.shape and not zero.size == scale.size == 1:
        raise ValueError(f"the scale has shape {scale.shape}, the zero point {zero.shape}")
    if scale.size == 1:
        return (math.prod(x),), scale.reshape(1), None if zero is None else zero.reshape(1)
    axis = 0 if len(x) == 1 else axis % len(x)
    if not block_size:
        expected, shape = (x[axis],), x
        spread = _along(axis, len(x))
    else:
        blocks = -(-x[axis] // block_size)
        expected = (*x[:axis], blocks, *x[axis + 1 :])
        if x[axis] % block_size:
            shape, spread = x, _repeated(block_size, axis, x[axis])
        else:
            shape = (*x[:axis], blocks, block_size, *x[axis + 1 :])
            spread = _with_axis(axis + 1)
    if scale.shape != expected:
        raise ValueError(f"the scale has shape {scale.shape}, expected {expected} for {x}")
    return shape, spread(scale), None if zero is None else spread(zero)


def _along(axis: int, rank: int) -> Callable[[Array], Array]:
    return lambda values: values.reshape(tuple(-1 if a == axis else 1 for a in range(rank)))


def _with_axis(axis: int) -> Callable[[Array], Array]:
    return lambda values: np.expand_dims(values, axis)


def _repeated(times: int, axis: int, size: int) -> Callable[[Array], Array]:
    return lambda values: values.repeat(times, axis).take(range(size), axis)


def _in_tiles(
    body: Callable[[Array, Array], None], source: Array, target: Array, per_tensor: bool
) -> None:
    if not per_tensor:
        body(source, target)
        return
    spans = even_spans(source.size, -(-source.size // TILE_ELEMENTS))
    parallel_for(len(spans), lambda i: body(source[slice(*spans[i])], target[slice(*spans[i])]))


@kernel("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    """DynamicQuantizeLinear 11: uint8, scale and zero point from the range of `x` and zero.

    The scale is 1 when all of `x` is zero.
    """
    scale, zero = dynamic_range(x)
    return quantize_linear(x, scale, zero), scale, zero


def dynamic_range(x: Array) -> tuple[Array, Array]:
    """The scale and the zero point that DynamicQuantizeLinear finds."""
    least = np.minimum.reduce(x, axis=None, initial=0)
    greatest = np.maximum.reduce(x, axis=None, initial=0)
    scale = np.asarray((greatest - least) / np.float32(255))
    if greatest == least:
        scale = np.ones((), np.float32)
    zero = saturated(np.rint(np.reshape(-least / scale, 1)), (0, 255)).astype(np.uint8).reshape(())
    return scale, zero
