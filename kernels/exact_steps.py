"""What exact functions are made of: error-free steps, powers of two, and a loop over tiles.

A function is written as a core: float64 vectors in, a float64 vector out, made of operations whose
bits IEEE 754 fixes: + - * / sqrt rint, comparisons, selections, integer and bit operations. No
sum, no product of matrices, no function of libm, and nothing that a fused multiply-add could
change, for each NumPy call rounds once. So a result is the same on every machine.

float32 results are those of a float64 core, rounded once; they may come from a shorter core, whose
error stays far below that rounding. float64 results need the longer ones, which carry the error of
a step along as a second number (double-double: Dekker 1971, Knuth's two-sum).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.exact_bits import canonical
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.ufuncs import constant

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Pair = tuple[Floats, Floats]
"""A number as the unevaluated sum of a float64 and a much smaller one."""

TILE = 8192
"""Elements at a time: the dozen intermediate vectors of a core stay in the cache."""

DOUBLE = np.dtype(np.float64)
_SPLITTER = constant(2.0**27 + 1, DOUBLE)
_WHOLE = np.dtype(np.int64)
_BIAS, _FRACTION_BITS = constant(1023, _WHOLE), constant(52, _WHOLE)


@dataclass(frozen=True)
class Elementwise:
    """A function of float32 or float64 arrays that broadcast; a NaN result is the quiet NaN.

    Arrays have one dtype, which the result has too. `parameters` go to the core.
    """

    single: Callable[..., Any]
    """The core of float32; its vectors are float64 all the same."""
    double: Callable[..., Any]
    """The core of float64."""

    def __call__(self, *arrays: Array, out: Array | None = None, **parameters: Any) -> Array:
        """The function of `arrays`, in `out` when given: C-contiguous, it may be an input."""
        core = self.double if arrays[0].dtype == DOUBLE else self.single
        if len(arrays) == 1:
            shape, vectors = arrays[0].shape, [arrays[0].reshape(-1)]
        else:
            shape = np.broadcast_shapes(*(array.shape for array in arrays))
            vectors = [_vector(array, shape) for array in arrays]
        result = np.empty(shape, arrays[0].dtype) if out is None else out
        flat = result.reshape(-1)

        def tile(index: int) -> None:
            part = slice(index * TILE, (index + 1) * TILE)
            compute(flat[part], [x if x.size == 1 else x[part] for x in vectors])

        def compute(into: Array, parts: list[Array]) -> None:
            into[...] = core(*[x.astype(DOUBLE, copy=False) for x in parts], **parameters)
            canonical(into)

        if flat.size > TILE:
            parallel_for(-(-flat.size // TILE), tile)
        elif flat.size:
            compute(flat, vectors)
        return result


def _vector(array: Array, shape: tuple[int, ...]) -> Array:
    if array.size == 1:
        return array.reshape(1)
    return np.broadcast_to(array, shape).reshape(-1)


def two_sum(a: Any, b: Any) -> Any:
    """`a + b` rounded, and what rounding lost (Knuth)."""
    total = a + b
    taken = total - a
    return total, (a - (total - taken)) + (b - taken)


def fast_two_sum(a: Any, b: Any) -> Any:
    """The same where |a| >= |b| or `a` is 0 (Dekker)."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Any, b: Any) -> Any:
    """`a * b` rounded, and what rounding lost (Dekker); for sizes below 2^990."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low) + a_low * b_high
    return product, lost + a_low * b_low


def _halves(a: Any) -> Any:
    """Two numbers of 26 bits each whose sum is `a` (Veltkamp)."""
    scaled = a * _SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def quotient(numerator: Pair, denominator: Pair) -> Pair:
    """The quotient of two pairs: rounded, and a first-order correction."""
    rounded = numerator[0] / denominator[0]
    product, lost = two_product(rounded, denominator[0])
    rest = ((numerator[0] - product) - lost) + (numerator[1] - rounded * denominator[1])
    return rounded, rest / denominator[0]


def coefficients(*values: float) -> tuple[Array, ...]:
    """Coefficients for `polynomial`, from the highest power down."""
    return tuple(constant(value, DOUBLE) for value in values)


def polynomial(x: Floats, terms: tuple[Array, ...]) -> Floats:
    """Horner's rule."""
    result = x * terms[0]
    np.add(result, terms[1], result)
    for term in terms[2:]:
        np.multiply(result, x, result)
        np.add(result, term, result)
    return result


def power_of_two(exponent: Integers) -> Floats:
    """2^exponent for exponents in -1022 … 1023; -1023 gives 0 and 1024 infinity."""
    bits = exponent + _BIAS
    bits <<= _FRACTION_BITS
    return bits.view(DOUBLE)


def scaled(x: Floats, exponent: Integers) -> Floats:
    """`x * 2^exponent` for `x` near 1 and exponents in -2000 … 2000, rounded at most once."""
    half = exponent >> 1
    return x * power_of_two(half) * power_of_two(exponent - half)


ROUNDER = constant(1.5 * 2.0**52, DOUBLE)
"""Added to a number below 2^51 in size, it leaves the nearest integer in the lowest bits."""
_ROUNDER_BITS = constant(0x4338000000000000, _WHOLE)


def nearest_integer(x: Floats) -> tuple[Floats, Integers]:
    """`x` rounded to the nearest integer, as float and as integer; any integer for NaN."""
    shifted = x + ROUNDER
    whole, bits = shifted - ROUNDER, shifted.view(_WHOLE)
    bits -= _ROUNDER_BITS
    return whole, bits
