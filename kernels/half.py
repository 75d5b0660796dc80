"""float16 to float32 and back, bit for bit as NumPy's casts, in vectorised integer steps.

NumPy casts one element at a time: 2 ns to widen and 4.5 ns to round, which is most of what a half
model would cost. Widening takes a third of that here, rounding half.

    wide    the bits moved to their places, times 2^112; the exponent of infinity would not do
    round   |x| + 2^(e + 13), where e is its exponent, but at least -14, rounds to the last place
            of a half; the low bits of the sum are the significand, the high ones the exponent
    settle  m - |x| with m = (2^13 + 1) |x|, but at least 3/4, has its last place where a half has
            it, and so has what is left of m without that: |x| rounded (Veltkamp)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core import umath  # pyright: ignore[reportPrivateUsage]

from foldline.kernels.channels_last import channels_last, is_channels_last, pixels
from foldline.kernels.registry import Array

_CLIP: Any = vars(umath)["clip"]

HALF = np.dtype(np.float16)
SINGLE = np.dtype(np.float32)

LEAST_SIZE = 8192
"""Elements from which the calls cost less than they save."""
TILE = 64 << 10
"""Elements at a time, so that all steps but the first find them in cache."""


def _word(value: int) -> Array:
    return np.array(value, np.uint32)


_INFINITE = 0x7C00
_PLACES = _word(13)
"""Bits that the significand of a float32 has more."""
_KEPT = np.array(0x8FFFE000 - (1 << 32), np.int32)
"""Sign, exponent and significand once a half is shifted, its sign drawn out over three bits."""
_REBIAS = np.array(2.0**112, np.float32)

_LEAST_NORMAL, _LARGEST = np.array(2.0**-14, np.float32), np.array(65520, np.float32)
"""What is as large as the second rounds to infinity."""
_EXPONENT, _UP = _word(0x7F800000), _word(13 << 23)
_SIGN, _SIGN_PLACES = _word(0x80000000), _word(16)
_SPLIT, _LEAST_SPLIT = np.array(2.0**13 + 1, np.float32), np.array(0.75, np.float32)
_UNBOUNDED = np.array(np.inf, np.float32)
_OFFSET = np.array((-(126 << 10)) % (1 << 16), np.uint16)
"""Takes the exponents of the sum to those of a half."""


def _for_tiles(function: Callable[[Array, Array], None], x: Array, out: Array) -> bool:
    """Run on parts of both arrays in the order of memory, if that is one and worth the calls."""
    if x.size < LEAST_SIZE:
        return False
    if is_channels_last(out):
        x, out = pixels(x), pixels(out)
    if not out.flags.c_contiguous:
        return False
    source, target = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    # On two threads such short calls take longer than on one: they wait for the interpreter.
    for start in range(0, x.size, TILE):
        function(source[start : start + TILE], target[start : start + TILE])
    return True


def like(x: Array, dtype: np.dtype[Any]) -> Array:
    """An uninitialised array of the shape of `x` whose channels are where those of `x` are."""
    if is_channels_last(x):
        return channels_last(np.empty(x.size, dtype), x.shape)
    return np.empty(x.shape, dtype)


def widen_half(x: Array, out: Array | None = None) -> Array:
    """float16 as float32, in `out` if given."""
    out = like(x, SINGLE) if out is None else out
    if not _for_tiles(_widen, x, out):
        np.copyto(out, x)
    return out


def _widen(x: Array, out: Array) -> None:
    signed, unsigned = x.view(np.int16), x.view(np.uint16)
    if np.maximum.reduce(signed) >= _INFINITE or np.maximum.reduce(unsigned) >= _INFINITE + 0x8000:
        np.copyto(out, x)
        return
    bits = out.view(np.int32)
    np.copyto(bits, signed)
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _KEPT, out=bits)
    np.multiply(out, _REBIAS, out=out)


def round_to_half(x: Array, out: Array | None = None) -> Array:
    """float32 rounded to float16, half to even, in `out` if given."""
    out = like(x, HALF) if out is None else out
    if not _for_tiles(_round, x, out):
        np.copyto(out, x, casting="unsafe")
    return out


def _round(x: Array, out: Array) -> None:
    size = np.absolute(x)
    if not np.maximum.reduce(size) < _LARGEST:  # Infinities to be, and NaN.
        np.copyto(out, x, casting="unsafe")
        return
    total = _CLIP(size, _LEAST_NORMAL, _LARGEST)
    bits, work = total.view(np.uint32), size.view(np.uint32)
    np.bitwise_and(bits, _EXPONENT, out=bits)
    np.add(bits, _UP, out=bits)
    np.add(total, size, out=total)
    np.right_shift(bits, _PLACES, out=work)
    np.add(bits, work, out=bits)
    np.bitwise_and(x.view(np.uint32), _SIGN, out=work)
    np.right_shift(work, _SIGN_PLACES, out=work)
    np.add(bits, work, out=bits)
    codes = out.view(np.uint16)
    np.copyto(codes, bits, casting="unsafe")
    np.add(codes, _OFFSET, out=codes)


def onto_halves(x: Array, out: Array | None = None) -> Array:
    """float32 rounded to values of float16, as float32: in `out` if given, which may be `x`."""
    out = like(x, SINGLE) if out is None else out
    if x.size < LEAST_SIZE:
        np.copyto(out, x.astype(HALF))
    elif not _for_tiles(_settle, x, out):
        np.copyto(out, onto_halves(np.array(x, order="C")))
    return out


def _settle(x: Array, out: Array) -> None:
    size = np.absolute(x)
    if not np.maximum.reduce(size) < _LARGEST:
        np.copyto(out, x.astype(HALF))
        return
    split = np.multiply(size, _SPLIT)
    _CLIP(split, _LEAST_SPLIT, _UNBOUNDED, split)
    np.subtract(split, size, out=size)
    np.subtract(split, size, out=split)
    signs = size.view(np.uint32)
    np.bitwise_and(x.view(np.uint32), _SIGN, out=signs)
    # What becomes zero keeps its sign.
    np.bitwise_or(split.view(np.uint32), signs, out=out.view(np.uint32))
