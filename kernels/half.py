"""float16 to float32 and back, bit for bit as NumPy's casts, in vectorised integer steps.

NumPy casts one element at a time: 2 ns to widen and 4.5 ns to round, which is most of what a half
model would cost. Widening takes a third of that here, rounding half.

    wide    the bits moved to their places, times 2^112; the exponent of infinity would not do
    round   |x| + 2^(e + 13), where e is its exponent, but at least -14, rounds to the last place
            of a half; the low bits of the sum are the significand, the high ones the exponent
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.ufuncs import clip
from foldline.kernels.windows import even_spans

HALF = np.dtype(np.float16)
SINGLE = np.dtype(np.float32)

LEAST_SIZE = 8192
"""Elements from which the calls cost less than they save."""
TILE = 32 << 10
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
_MIDDLE = _word((13 << 23) + (1 << 22))
"""Takes 2^e to 1.5 times 2^(e + 13): sums with that keep their exponent, whatever their sign."""
_OFFSET = np.array((-(126 << 10)) % (1 << 16), np.uint16)
"""Takes the exponents of the sum to those of a half."""


def widen_half(x: Array, out: Array | None = None) -> Array:
    """float16 as float32, in `out` if given."""
    out = np.empty(x.shape, SINGLE) if out is None else out
    if x.size < LEAST_SIZE or not out.flags.c_contiguous:
        np.copyto(out, x)
        return out
    source, target = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    spans = even_spans(x.size, -(-x.size // TILE))
    parallel_for(len(spans), lambda i: _widen(source[slice(*spans[i])], target[slice(*spans[i])]))
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
    out = np.empty(x.shape, HALF) if out is None else out
    if x.size < LEAST_SIZE or not out.flags.c_contiguous:
        np.copyto(out, x, casting="unsafe")
        return out
    source, target = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    spans = even_spans(x.size, -(-x.size // TILE))
    parallel_for(len(spans), lambda i: _round(source[slice(*spans[i])], target[slice(*spans[i])]))
    return out


def _round(x: Array, out: Array) -> None:
    size = np.absolute(x)
    if not np.maximum.reduce(size) < _LARGEST:  # Infinities to be, and NaN.
        np.copyto(out, x, casting="unsafe")
        return
    total = clip(size, _LEAST_NORMAL, _LARGEST)
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


def onto_halves(x: Array) -> Array:
    """float32 rounded to values of float16, as float32: both casts in half the time."""
    if x.size < LEAST_SIZE:
        return x.astype(HALF).astype(SINGLE)
    out = np.empty(x.shape, SINGLE)
    source, target = np.ascontiguousarray(x).reshape(-1), out.reshape(-1)
    spans = even_spans(x.size, -(-x.size // TILE))
    parallel_for(len(spans), lambda i: _settle(source[slice(*spans[i])], target[slice(*spans[i])]))
    return out


def _settle(x: Array, out: Array) -> None:
    size = np.absolute(x)
    if not np.maximum.reduce(size) < _LARGEST:
        np.copyto(out, x.astype(HALF))
        return
    middle = clip(size, _LEAST_NORMAL, _LARGEST, size)
    bits = middle.view(np.uint32)
    np.bitwise_and(bits, _EXPONENT, out=bits)
    np.add(bits, _MIDDLE, out=bits)
    np.add(x, middle, out=out)
    np.subtract(out, middle, out=out)
    np.bitwise_and(x.view(np.uint32), _SIGN, out=bits)
    signed = out.view(np.uint32)
    np.bitwise_or(signed, bits, out=signed)  # What becomes zero keeps its sign.
