"""Cores of exp, expm1, exp2, sigmoid, tanh, sinh and cosh.

    x = k ln 2 + r,  |r| <= ln 2 / 2       ln 2 in two parts (Cody and Waite 1980)
    exp(r) = 1 + r + r^2 Q(r)              Q minimax (Remez exchange in 60 digits)
    exp(x) = 2^k exp(r)                    2^k made of its bits

Q of degree 5 has a relative error of 2^-34, of degree 10 one of 2^-64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foldline.kernels.exact_steps import (
    DOUBLE,
    Floats,
    Integers,
    Pair,
    coefficients,
    fast_two_sum,
    nearest_integer,
    polynomial,
    power_of_two,
    quotient,
    scaled,
    two_product,
    two_sum,
)
from foldline.kernels.ufuncs import CLIP, constant

_ONE, _TWO = constant(1.0, DOUBLE), constant(2.0, DOUBLE)
_PER_LN2 = constant(1.4426950408889634, DOUBLE)
LN2 = 0.6931471805599453
LN2_REST = 2.3190468138462996e-17
"""What the float64 nearest to ln 2 misses of it."""
LN2_HIGH = 6.93147180369123816490e-01
"""The first 33 bits of ln 2: its product with a number of 20 bits is exact."""
LN2_LOW = 1.90821492927058770002e-10
_LN2_HIGH, _LN2_LOW = constant(LN2_HIGH, DOUBLE), constant(LN2_LOW, DOUBLE)

_SHORT = (
    0.0001991853304047059,
    0.0013946147508911218,
    0.008333264086491413,
    0.04166626903195683,
    0.16666666861859197,
    0.5000000078108737,
)
_SHORT_EXP = coefficients(*_SHORT, 1.0, 1.0)
_SHORT_SLOPE = coefficients(*_SHORT, 1.0)
_LONG = coefficients(
    2.0926970132612838e-09,
    2.5112327586749862e-08,
    2.7557233296599704e-07,
    2.7557233997647602e-06,
    2.4801587373771243e-05,
    0.00019841269897282515,
    0.0013888888888858467,
    0.008333333333316657,
    0.04166666666666673,
    0.16666666666666685,
    0.5,
)


def within(x: Any, low: float, high: float) -> Any:
    """`x` between `low` and `high`, neither of them 0; NaN stays."""
    return CLIP(x, constant(low, DOUBLE), constant(high, DOUBLE))


def exp_single(x: Floats) -> Floats:
    """e^x to 33 bits; 0 below -709 and infinity above 709.4."""
    rest, exponent = _reduced_short(within(x, -709.0, 709.9))
    result = polynomial(rest, _SHORT_EXP)
    result *= power_of_two(exponent)
    return result


def expm1_single(x: Floats) -> Floats:
    """e^x - 1 to 33 bits up to 709."""
    rest, exponent = _reduced_short(within(x, -45.0, 709.0))
    scale = power_of_two(exponent)
    result = polynomial(rest, _SHORT_SLOPE)
    result *= rest
    result *= scale
    scale -= _ONE
    result += scale
    return np.copysign(result, x, result)


def exp2_single(x: Floats) -> Floats:
    """2^x to 33 bits; 0 below -1022.5 and infinity above 1023.5."""
    whole, exponent = nearest_integer(within(x, -1023.0, 1024.0))
    rest = (within(x, -1023.0, 1024.0) - whole) * LN2
    return polynomial(rest, _SHORT_EXP) * power_of_two(exponent)


def _reduced_short(x: Floats) -> tuple[Floats, Integers]:
    whole, exponent = nearest_integer(x * _PER_LN2)
    rest = x - whole * _LN2_HIGH
    whole *= _LN2_LOW
    rest -= whole
    return rest, exponent


def sigmoid_single(x: Floats) -> Floats:
    """1 / (1 + e^-x) to 33 bits; subnormal numbers are the least."""
    below = exp_single(-x)
    below += _ONE
    return _ONE / below


def tanh_single(x: Floats) -> Floats:
    """Tanh to 32 bits."""
    twice = expm1_single(within(x, -22.0, 22.0) * _TWO)
    twice /= twice + _TWO
    return np.copysign(twice, x, twice)


def exp_double(x: Floats) -> Floats:
    """e^x, with subnormal results rounded twice."""
    high, low, exponent = _exp_parts(within(x, -746.0, 710.0))
    return scaled(high + low, exponent)


def expm1_double(x: Floats) -> Floats:
    """e^x - 1."""
    high, low, exponent = _expm1_parts(within(x, -45.0, 710.0))
    return np.copysign(scaled(high + low, exponent), x)


def exp2_double(x: Floats) -> Floats:
    """2^x."""
    return exp2_of_pair((within(x, -1100.0, 1100.0), np.zeros_like(x)))


def exp2_of_pair(x: Pair) -> Floats:
    """2^x of a pair whose first number is within -1100 and 1100."""
    whole, exponent = nearest_integer(x[0])
    fraction = x[0] - whole
    rest, lost = two_product(fraction, LN2)
    high, low = _exp_of_rest(*fast_two_sum(rest, lost + (fraction * LN2_REST + x[1] * LN2)))
    return scaled(high + low, exponent)


def _reduced(x: Floats) -> tuple[Floats, Floats, Integers]:
    """r as a pair, and k."""
    whole, exponent = nearest_integer(x * _PER_LN2)
    near, less = x - whole * LN2_HIGH, whole * LN2_LOW
    rest = near - less
    return rest, (near - rest) - less, exponent


def _exp_of_rest(rest: Floats, lost: Floats) -> Pair:
    high, low = fast_two_sum(1.0, rest)
    curve = rest * rest * polynomial(rest, _LONG) + (lost + lost * rest)
    return fast_two_sum(high, low + curve)


def _exp_parts(x: Floats) -> tuple[Floats, Floats, Integers]:
    """e^x as `(high + low) * 2^exponent`, `high` near 1."""
    rest, lost, exponent = _reduced(x)
    return *_exp_of_rest(rest, lost), exponent


def _expm1_parts(x: Floats) -> tuple[Floats, Floats, Integers]:
    """e^x - 1 as `(high + low) * 2^exponent`, for x of -45 and more."""
    rest, lost, exponent = _reduced(x)
    # Beyond 2^1000 the 1 that is subtracted has long been lost.
    unit = power_of_two(-np.minimum(exponent, 1000))
    offset, low = two_sum(1.0, -unit)
    high, more = two_sum(offset, rest)
    curve = rest * rest * polynomial(rest, _LONG) + (lost + lost * rest)
    return *fast_two_sum(high, more + (low + curve)), exponent


def sigmoid_double(x: Floats) -> Floats:
    """1 / (1 + e^-x), from e^-|x|, which cannot overflow."""
    high, low, exponent = _exp_parts(np.maximum(-np.abs(x), -746.0))
    power, rest = scaled(high, exponent), scaled(low, exponent)
    above = np.where(x < 0, power, 1.0), np.where(x < 0, rest, 0.0)
    below, lost = two_sum(1.0, power)
    ratio, rest = quotient(above, (below, lost + rest))
    return ratio + rest


def tanh_double(x: Floats) -> Floats:
    """Tanh: t / (t + 2) where t = e^2|x| - 1."""
    high, low, exponent = _expm1_parts(np.minimum(np.abs(x), 22.0) * 2.0)
    scale = power_of_two(exponent)
    high, low = high * scale, low * scale
    below, lost = two_sum(high, 2.0)
    ratio, rest = quotient((high, low), (below, lost + low))
    return np.copysign(ratio + rest, x)


def sinh(x: Floats) -> Floats:
    """(t + t / (t + 1)) / 2 where t = e^|x| - 1; t / 2 where that is the same."""
    size = np.minimum(np.abs(x), 711.0)
    high, low, exponent = _expm1_parts(size)
    scale = power_of_two(np.minimum(exponent, 64))
    power, rest = high * scale, low * scale
    near = (power + (power / (power + 1.0) + rest)) * 0.5
    return np.copysign(np.where(size < 40, near, scaled(high + low, exponent - 1)), x)


def cosh(x: Floats) -> Floats:
    """(t + 1 / t) / 2 where t = e^|x|; t / 2 where that is the same."""
    size = np.minimum(np.abs(x), 711.0)
    high, low, exponent = _exp_parts(size)
    scale = power_of_two(np.minimum(exponent, 64))
    high_power, rest = high * scale, low * scale
    near = (high_power + (1.0 / high_power + rest)) * 0.5
    return np.where(size < 40, near, scaled(high + low, exponent - 1))
