"""Cast, CastLike and BitCast, and `convert`, the conversion between any two element types.

    source -> a type NumPy itself computes, without loss -> target

Narrow floats other than bfloat16 widen to float32 first, sub-byte integers to 8 bits. Values a
float target cannot hold become infinities, NaN or the greatest value as ONNX's tables say;
integers that do not fit an integer target lose their higher bits. A float that does not fit an
integer is undefined in ONNX; here it is what NumPy makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foldline.kernels.half import HALF, SINGLE, round_to_half, widen_half
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE, BY_NAME, BY_NUMPY

_BFLOAT16 = BY_NAME["bfloat16"].numpy
_SCALE = BY_NAME["float8e8m0"].numpy
_STRING = BY_NAME["string"].numpy

_LARGEST: dict[np.dtype[Any], float] = {
    BY_NAME["float8e4m3fn"].numpy: 448.0,
    BY_NAME["float8e4m3fnuz"].numpy: 240.0,
    BY_NAME["float8e5m2"].numpy: 57344.0,
    BY_NAME["float8e5m2fnuz"].numpy: 57344.0,
}
"""The types `saturate` is about, and their greatest value; float8e8m0 has rules of its own."""

_WIDER: dict[np.dtype[Any], np.dtype[Any]] = {
    **{BY_NAME[name].numpy: np.dtype(np.int8) for name in ("int4", "int2")},
    **{BY_NAME[name].numpy: np.dtype(np.uint8) for name in ("uint4", "uint2")},
    **{BY_NAME[name].numpy: np.dtype(np.float32) for name in ("float4e2m1", "float6e2m3")},
    **{dtype: np.dtype(np.float32) for dtype in (BY_NAME["float6e3m2"].numpy, _SCALE, *_LARGEST)},
}
"""For types without casts between each other: the one that holds every value and has them all."""


@kernel("Cast", since=6, until=19)
def cast(x: Array, *, to: int, out: Array | None = None) -> Array:
    """Cast 6, 9 and 13: `to` is a code of TensorProto.DataType."""
    return convert(x, BY_CODE[to].numpy, out=out)


@kernel("Cast", until=6)
def cast_to_name(x: Array, *, to: str, out: Array | None = None) -> Array:
    """Cast 1: `to` is a name of TensorProto.DataType, such as FLOAT."""
    return convert(x, BY_NAME[to.lower()].numpy, out=out)


@kernel("Cast", since=19, until=24)
def cast_saturating(x: Array, *, to: int, saturate: int = 1, out: Array | None = None) -> Array:
    """Cast 19..23: adds `saturate`, which concerns float8 targets only."""
    return convert(x, BY_CODE[to].numpy, bool(saturate), out=out)


@kernel("Cast", since=24)
def cast_rounding(
    x: Array, *, to: int, saturate: int = 1, round_mode: str = "up", out: Array | None = None
) -> Array:
    """Cast 24+: adds `round_mode` (up, down or nearest), which concerns float8e8m0 only."""
    return convert(x, BY_CODE[to].numpy, bool(saturate), round_mode, out)


@kernel("CastLike", until=19)
def cast_like(x: Array, target: Array, *, out: Array | None = None) -> Array:
    """CastLike 15: Cast to the element type of `target`."""
    return convert(x, target.dtype, out=out)


@kernel("CastLike", since=19, until=24)
def cast_like_saturating(
    x: Array, target: Array, *, saturate: int = 1, out: Array | None = None
) -> Array:
    """CastLike 19..23: adds `saturate`."""
    return convert(x, target.dtype, bool(saturate), out=out)


@kernel("CastLike", since=24)
def cast_like_rounding(
    x: Array,
    target: Array,
    *,
    saturate: int = 1,
    round_mode: str = "up",
    out: Array | None = None,
) -> Array:
    """CastLike 24+: adds `round_mode`."""
    return convert(x, target.dtype, bool(saturate), round_mode, out)


@kernel("BitCast", exact=True)
def bit_cast(x: Array, *, to: int) -> Array:
    """BitCast 26+: the bits of `x` as another type of the same width; a copy.

    Any byte but 0 becomes True. ValueError when the widths differ or one type is string.
    """
    source, target = BY_NUMPY[x.dtype], BY_CODE[to]
    if source.bits != target.bits or not target.bits:
        raise ValueError(
            f"BitCast from {source.name} ({source.bits} bits) to {target.name} "
            f"({target.bits} bits): the widths must be equal, and not strings"
        )
    if target.numpy == np.bool_:
        return np.asarray(x.view(np.uint8) != 0)
    return x.view(target.numpy).copy()


def convert(
    x: Array,
    dtype: np.dtype[Any],
    saturate: bool = True,
    round_mode: str = "up",
    out: Array | None = None,
) -> Array:
    """`x` converted to `dtype` as ONNX's Cast does; always a new array, or `out`.

    `saturate`: values out of the range of a float8 type become its greatest value instead of NaN
    or infinity. `round_mode`: how float8e8m0, which holds powers of two, rounds. ValueError for
    an unknown `round_mode` or a string that is no number.
    """
    source = _castable(x, dtype, saturate, round_mode)
    if (source.dtype, dtype) == (SINGLE, HALF):
        return round_to_half(source, out)
    if (source.dtype, dtype) == (HALF, SINGLE):
        return widen_half(source, out)
    if out is None:
        return source.astype(dtype, copy=source is x)
    np.copyto(out, source, casting="unsafe")
    return out


def _castable(x: Array, dtype: np.dtype[Any], saturate: bool, round_mode: str) -> Array:
    """`x` in a form that NumPy's own cast to `dtype` converts as ONNX wants."""
    if x.dtype == dtype:
        return x
    if x.dtype == _STRING:
        return _castable(_parsed(x, dtype), dtype, saturate, round_mode)
    if dtype == _STRING:
        return _formatted(x)
    if x.dtype in _WIDER:
        x = x.astype(_WIDER[x.dtype])
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = np.real(x).copy()
    if dtype == _SCALE:
        return _power_of_two(x, saturate, round_mode)
    if _WIDER.get(dtype) == np.float32 and x.dtype.kind in "iub":
        x = x.astype(np.float32)
    if saturate and dtype in _LARGEST:
        limit = np.array(_LARGEST[dtype]).astype(x.dtype)
        return np.asarray(np.minimum(np.maximum(x, -limit), limit))
    if dtype.kind == "c" and x.dtype == _BFLOAT16:
        return x.astype(np.float32)
    return x


def _power_of_two(x: Array, saturate: bool, round_mode: str) -> Array:
    """float8e8m0 of the size of each element: the exponent plus 127, 255 for NaN.

    Saturating, 0 and what lies below the range gives 2^-127 and infinity 2^127; else both NaN.
    """
    if round_mode not in ("up", "down", "nearest"):
        raise ValueError(f"round_mode is {round_mode!r}, expected 'up', 'down' or 'nearest'")
    if x.dtype.kind in "iub":
        size = np.abs(x.astype(np.float64))
    else:
        size = np.abs(x.astype(np.float32) if x.dtype == _BFLOAT16 else x)
    fraction, exponent = np.frexp(size)  # size = fraction * 2^exponent, 0.5 <= fraction < 1
    if round_mode == "up":
        exponent = exponent + (fraction > 0.5)
    elif round_mode == "nearest":
        exponent = exponent + (fraction >= 0.75)
    code = np.where(size == 0, -1, np.where(np.isinf(size), 255, exponent - 1 + 127))
    valid = ~np.isnan(size)
    if not saturate:
        valid &= (code >= 0) & (code <= 254)
    return np.where(valid, np.clip(code, 0, 254), 255).astype(np.uint8).view(_SCALE)


def _formatted(x: Array) -> Array:
    """Strings of numbers: the shortest that reads back as the same value."""
    if x.dtype in _WIDER or x.dtype == _BFLOAT16:
        x = x.astype(_WIDER.get(x.dtype, np.float32))
    if x.dtype == np.bool_:
        x = x.astype(np.uint8)
    result = np.empty(x.shape, object)
    # `tolist` would widen float32, whose shortest string is then that of another number.
    result.ravel()[:] = [_spelling(str(value)) for value in x.ravel()]
    return result


def _spelling(text: str) -> str:
    """The literals ONNX reserves for what is not finite; any other text as it is."""
    return {"nan": "NaN", "inf": "INF", "-inf": "-INF"}.get(text, text)


def _parsed(x: Array, dtype: np.dtype[Any]) -> Array:
    """The numbers strings stand for, as int64/uint64 for integer targets, else as float64."""
    parse, parsed_dtype = _parser(dtype)
    return np.array([parse(text) for text in x.ravel()], parsed_dtype).reshape(x.shape)


def _parser(dtype: np.dtype[Any]) -> tuple[Callable[[str], Any], Any]:
    if dtype.kind == "c":
        return complex, np.complex128
    if dtype.kind in "iu" or _WIDER.get(dtype) in (np.dtype(np.int8), np.dtype(np.uint8)):
        return (lambda text: _integer(text) % (1 << 64)), np.uint64
    return float, np.float64


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return int(float(text))
