"""Cores of sin, cos and tan: right for every finite argument.

x = n pi/2 + r,  |r| <= pi/4     pi/2 in parts (Cody and Waite 1980) up to 2^20, beyond that
                                 the product with 2/pi in integers (Payne and Hanek 1983)
sin r = r + r^3 S(r^2)           minimax (Remez exchange in 60 digits), 38 or 58 bits
cos r = 1 - r^2 / 2 + r^4 C(r^2)
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.exact_steps import (
    Floats,
    Integers,
    Pair,
    coefficients,
    fast_two_sum,
    nearest_integer,
    polynomial,
    quotient,
    two_product,
    two_sum,
)

_NEAR = 2.0**20
_TWO_PER_PI = 0.6366197723675814
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
"""Pi/2: three parts of 33 bits, whose product with a number of 20 bits is exact, and a rest."""
_SECOND_AND_ON = 6.077100506506192e-11

_SHORT_SINE = coefficients(
    2.7182783630780476e-06, -0.0001983933149194528, 0.008333329376084449, -0.16666666641550423, 1.0
)
_SHORT_COSINE = coefficients(
    -2.7210091308161934e-07,
    2.4799518635754644e-05,
    -0.0013888883750131952,
    0.041666666622819634,
    -0.5,
    1.0,
)
_SINE = coefficients(
    1.589668517110609e-10,
    -2.5050756322186612e-08,
    2.7557313681305206e-06,
    -0.00019841269829780166,
    0.008333333333322384,
    -0.16666666666666632,
)
_COSINE = coefficients(
    -1.1359655626528411e-11,
    2.087572365393438e-09,
    -2.7557314357179546e-07,
    2.480158728950785e-05,
    -0.0013888888888874183,
    0.0416666666666666,
)


def sin_single(x: Floats) -> Floats:
    """Sine to 37 bits."""
    rest, quadrant = _reduced_short(x)
    return _turned(_sine_short(rest), _cosine_short(rest), quadrant)


def cos_single(x: Floats) -> Floats:
    """Cosine to 37 bits: the sine a quadrant further."""
    rest, quadrant = _reduced_short(x)
    return _turned(_sine_short(rest), _cosine_short(rest), quadrant + 1)


def _sine_short(rest: Floats) -> Floats:
    return rest * polynomial(rest * rest, _SHORT_SINE)


def _cosine_short(rest: Floats) -> Floats:
    return polynomial(rest * rest, _SHORT_COSINE)


def _reduced_short(x: Floats) -> tuple[Floats, Integers]:
    whole, quadrant = nearest_integer(x * _TWO_PER_PI)
    rest = (x - whole * _PARTS[0]) - whole * _SECOND_AND_ON
    is_far = np.abs(x) > _NEAR
    if is_far.any():
        rest[is_far], _, quadrant[is_far] = _reduced_far(x[is_far])
    return rest, quadrant


def sin_double(x: Floats) -> Floats:
    """Sine."""
    rest, lost, quadrant = _reduced(x)
    sine = _turned(_total(_sine(rest, lost)), _total(_cosine(rest, lost)), quadrant)
    return np.where(x == 0, x, sine)


def cos_double(x: Floats) -> Floats:
    """Cosine."""
    rest, lost, quadrant = _reduced(x)
    return _turned(_total(_sine(rest, lost)), _total(_cosine(rest, lost)), quadrant + 1)


def tan(x: Floats) -> Floats:
    """Tangent: the sine divided by the cosine, as pairs."""
    rest, lost, quadrant = _reduced(x)
    sine, cosine = _sine(rest, lost), _cosine(rest, lost)
    is_odd = (quadrant & 1) == 1
    above = np.where(is_odd, -cosine[0], sine[0]), np.where(is_odd, -cosine[1], sine[1])
    below = np.where(is_odd, sine[0], cosine[0]), np.where(is_odd, sine[1], cosine[1])
    return np.where(x == 0, x, _total(quotient(above, below)))


def _turned(sine: Floats, cosine: Floats, quadrant: Integers) -> Floats:
    """The sine of the argument from those of the rest."""
    result = np.where((quadrant & 1) == 1, cosine, sine)
    return np.where((quadrant & 2) == 2, -result, result)


def _total(pair: Pair) -> Floats:
    return pair[0] + pair[1]


def _sine(rest: Floats, lost: Floats) -> Pair:
    square = rest * rest
    curve = rest * square * polynomial(square, _SINE)
    return fast_two_sum(rest, curve + (lost - lost * square * 0.5))


def _cosine(rest: Floats, lost: Floats) -> Pair:
    square = rest * rest
    high, low = fast_two_sum(1.0, -(square * 0.5))
    curve = square * square * polynomial(square, _COSINE) - rest * lost
    return fast_two_sum(high, low + curve)


def _reduced(x: Floats) -> tuple[Floats, Floats, Integers]:
    """r as a pair, and n."""
    whole, quadrant = nearest_integer(x * _TWO_PER_PI)
    rest, lost = x - whole * _PARTS[0], np.zeros_like(x)
    for part in _PARTS[1:]:
        rest, more = two_sum(rest, -(whole * part))
        lost = lost + more
    is_far = np.abs(x) > _NEAR
    if is_far.any():
        rest[is_far], lost[is_far], quadrant[is_far] = _reduced_far(x[is_far])
    return *fast_two_sum(rest, lost), quadrant


_LIMBS, _LIMB_BITS = 6, 32
_LIMB_MASK = np.uint64(0xFFFFFFFF)
_HALF_WORD = np.uint64(_LIMB_BITS)
_TWO_PER_PI_BITS = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424d"
    "d2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639"
    "835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f46"
    "3f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)
"""2/pi times 2^1216."""


def _reduced_far(x: Floats) -> tuple[Floats, Floats, Integers]:
    """r as a pair, and n modulo 4, for sizes from 2^20; NaN for infinity and NaN.

    With x = m 2^e, only those 192 bits of 2/pi count that give the last two bits of the integral
    part, and 190 after the point: those before add multiples of 4, those behind less than 2^-137.
    """
    bits = np.abs(x).view(np.uint64)
    exponent = (bits >> np.uint64(52)).astype(np.int64)
    window = _windows()[np.minimum(exponent, 2046) - _LEAST_EXPONENT]
    mantissa = bits & np.uint64((1 << 52) - 1) | np.uint64(1 << 52)
    low, high = mantissa & _LIMB_MASK, mantissa >> _HALF_WORD
    limbs: list[Any] = []
    carry: Any = np.zeros_like(bits)
    for index in range(_LIMBS):
        product = window[:, index] * low
        total = carry + (product & _LIMB_MASK)
        if index:
            before = window[:, index - 1]
            total = total + (before * low >> _HALF_WORD) + before * high
        limbs.append((total & _LIMB_MASK).astype(np.int64))
        carry = total >> _HALF_WORD
    quadrant: Integers = (limbs[-1] + (1 << 29)) >> 30
    limbs[-1] = limbs[-1] - (quadrant << 30)
    rest, lost = np.zeros_like(x), np.zeros_like(x)
    for index in reversed(range(_LIMBS)):
        rest, more = two_sum(
            rest, limbs[index].astype(np.float64) * math.ldexp(1.0, 32 * index - 190)
        )
        lost = lost + more
    rest, lost = fast_two_sum(rest, lost)
    high_angle, low_angle = two_product(rest, _HALF_PI[0])
    low_angle = low_angle + (rest * _HALF_PI[1] + lost * _HALF_PI[0])
    sign = np.copysign(1.0, x)
    undefined = x - x
    return high_angle * sign + undefined, low_angle * sign, np.where(x < 0, -quadrant, quadrant)


_LEAST_EXPONENT = 1023


@functools.cache
def _windows() -> npt.NDArray[np.uint64]:
    """For each biased exponent from `_LEAST_EXPONENT`, the limbs of 2/pi, from the lowest."""
    rows: list[list[int]] = []
    for exponent in range(_LEAST_EXPONENT, 2047):
        shift = 1216 - (exponent - 1023 - 52 + 190)
        window = _TWO_PER_PI_BITS >> shift
        rows.append([window >> (_LIMB_BITS * limb) & 0xFFFFFFFF for limb in range(_LIMBS)])
    return np.array(rows, np.uint64)
