"""Cores of log, log1p, log2, pow, softplus and the inverse hyperbolic functions.

    x = 2^k m,  sqrt(1/2) <= m < sqrt(2)                the bits of x
    f = m - 1,  s = f / (2 + f)
    log m = 2 atanh s = 2 s + 2 s^3 (1/3 + s^2 / 5 + …)  minimax (Remez exchange in 60 digits)

The order of the sums is that of fdlibm's logarithms (Sun Microsystems 1993).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from foldline.kernels.exact_exponential import (
    LN2,
    LN2_HIGH,
    LN2_LOW,
    exp2_of_pair,
    exp2_single,
    exp_double,
    exp_single,
    within,
)
from foldline.kernels.exact_steps import (
    Floats,
    Integers,
    Pair,
    coefficients,
    fast_two_sum,
    polynomial,
    quotient,
    two_product,
    two_sum,
)

_LEAST_NORMAL = 2.0**-1022
_SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)

_SHORT = coefficients(
    0.1958518885289265,
    0.22176125102825213,
    0.28572110445986814,
    0.39999995612385288,
    0.66666666675817988,
    2.0,
)
"""2 atanh(s) / s in s^2, to 45 bits."""
_LONG = coefficients(
    0.13252335425706923,
    0.13250013373811503,
    0.15387095079631214,
    0.18181775576144087,
    0.22222222647754779,
    0.28571428569081026,
    0.40000000000006253,
    0.6666666666666666,
)
"""(2 atanh(s) / s - 2) / s^2 in s^2, to 66 bits."""
_FIFTH = coefficients(
    0.05985938593745291,
    0.058385509767112584,
    0.06668095643936753,
    0.07692280297123515,
    0.09090909403662659,
    0.11111111109070813,
    0.14285714285721046,
    0.19999999999999993,
)
"""1/5 + s^2 / 7 + … in s^2, to 73 bits of atanh(s)."""
_THIRD: tuple[float, float] = (1 / 3, 1.850371707708594e-17)
_PER_LN2: tuple[float, float] = (1.4426950408889634, 2.0355273740931033e-17)


def _mantissa(x: Floats) -> tuple[Floats, Floats]:
    """m and k of positive finite numbers; something finite for others."""
    is_small = x < _LEAST_NORMAL
    bits = np.where(is_small, x * 2.0**54, x).view(np.int64)
    exponent: Integers = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = (bits - (exponent << 52)).view(np.float64)
    return mantissa, exponent.astype(np.float64) - np.where(is_small, 54.0, 0.0)


def _log_of_sum(x: Floats, more: Any) -> Floats:
    """Log of `x + more`, where `more` is below an ulp of `x`, for positive finite `x`."""
    mantissa, exponent = _mantissa(x)
    above = mantissa - 1.0
    ratio = above / (above + 2.0)
    square = ratio * ratio
    half = above * above * 0.5
    curve = ratio * (half + square * polynomial(square, _LONG))
    low = curve + (exponent * LN2_LOW + more / x)
    return exponent * LN2_HIGH - ((half - low) - above)


def _at_the_ends(result: Floats, x: Floats) -> Floats:
    """-inf for 0, +inf for +inf, NaN for negative numbers and NaN."""
    result = np.where((x > 0) & (x < math.inf), result, math.nan)
    result = np.where(x == math.inf, math.inf, result)
    return np.where(x == 0, -math.inf, result)


def log(x: Floats) -> Floats:
    """The natural logarithm."""
    return _at_the_ends(_log_of_sum(x, 0.0), x)


def log1p(x: Floats) -> Floats:
    """Log of 1 + x."""
    total, lost = two_sum(x, 1.0)
    return np.where(x == 0, x, _at_the_ends(_log_of_sum(total, lost), total))


def _log1p_of_sum(x: Floats, more: Floats) -> Floats:
    """Log of 1 + x + more for x of 0 and more, infinity included."""
    total, lost = two_sum(x, 1.0)
    return _at_the_ends(_log_of_sum(total, lost + more), total)


def log2(x: Floats) -> Floats:
    """The logarithm to base 2; that of a power of two is exact."""
    high, low = _log2_pair(x)
    return _at_the_ends(high + low, x)


def _log2_pair(x: Floats) -> Pair:
    """Log to base 2 of positive finite numbers, to 64 bits."""
    mantissa, exponent = _mantissa(x)
    above = mantissa - 1.0
    ratio, rest = quotient((above, np.zeros_like(above)), two_sum(2.0, above))
    square, lost = two_product(ratio, ratio)
    lost = lost + 2.0 * ratio * rest
    third, third_lost = two_sum(_THIRD[0], square * polynomial(square, _FIFTH))
    third_lost = third_lost + _THIRD[1]
    curve, curve_lost = two_product(square, third)
    curve_lost = curve_lost + (square * third_lost + lost * third)
    term, term_lost = two_product(ratio, curve)
    high, low = fast_two_sum(ratio, term)
    low = low + (term_lost + (ratio * curve_lost + rest * curve) + rest)
    scaled, scaled_lost = two_product(2.0 * high, _PER_LN2[0])
    scaled_lost = scaled_lost + 2.0 * (high * _PER_LN2[1] + low * _PER_LN2[0])
    total, total_lost = two_sum(exponent, scaled)
    return fast_two_sum(total, total_lost + scaled_lost)


def power_single(x: Floats, y: Floats) -> Floats:
    """x^y to 33 bits."""
    mantissa, exponent = _mantissa(np.abs(x))
    above = mantissa - 1.0
    ratio = above / (above + 2.0)
    logarithm = exponent + ratio * polynomial(ratio * ratio, _SHORT) * _PER_LN2[0]
    return _with_special_powers(exp2_single(within(y, -(2.0**70), 2.0**70) * logarithm), x, y)


def power_double(x: Floats, y: Floats) -> Floats:
    """x^y, with the logarithm to 64 bits and its product with y as a pair."""
    high, low = _log2_pair(np.abs(x))
    bounded = within(y, -(2.0**70), 2.0**70)
    exponent, lost = two_product(bounded, high)
    lost = lost + bounded * low
    inside = within(exponent, -1100.0, 1100.0)
    lost = np.where(inside == exponent, lost, 0.0)
    return _with_special_powers(exp2_of_pair((inside, lost)), x, y)


def _with_special_powers(result: Floats, x: Floats, y: Floats) -> Floats:
    """What IEEE 754's pow gives; `result` is |x|^y where |x| is positive and finite."""
    size = np.abs(x)
    is_limit = (size == 0) | (size == math.inf)
    result = np.where(is_limit, np.where((size == 0) == (y < 0), math.inf, 0.0), result)
    is_whole = np.rint(y) == y
    half = y * 0.5
    is_odd = is_whole & (np.rint(half) != half)
    result = np.where(is_odd & (np.copysign(1.0, x) < 0), -result, result)
    is_undefined = (x < 0) & ~is_whole & ~is_limit | (x != x) | (y != y)
    result = np.where(is_undefined, math.nan, result)
    return np.where((y == 0) | (x == 1), 1.0, result)


def softplus_single(x: Floats) -> Floats:
    """Log of 1 + e^x, from e^-|x|, which cannot overflow."""
    return np.maximum(x, 0.0) + log1p(exp_single(-np.abs(x)))


def softplus_double(x: Floats) -> Floats:
    """The same."""
    return np.maximum(x, 0.0) + log1p(exp_double(-np.abs(x)))


_HUGE = 2.0**28
"""Beyond it sqrt(x^2 + 1) rounds to x."""


def asinh(x: Floats) -> Floats:
    """Log1p of |x| + x^2 / (1 + sqrt(x^2 + 1)), or log |x| + log 2."""
    size = np.abs(x)
    near = np.minimum(size, _HUGE)
    square = near * near
    total, lost = two_sum(near, square / (np.sqrt(square + 1.0) + 1.0))
    result = np.where(size > _HUGE, log(size) + LN2, _log1p_of_sum(total, lost))
    return np.copysign(np.where(size < 2.0**-28, size, result), x)


def acosh(x: Floats) -> Floats:
    """Log1p of t + sqrt(t^2 + 2t) where t = x - 1, or log x + log 2."""
    above = np.minimum(x, _HUGE) - 1.0
    total, lost = two_sum(above, np.sqrt(above * above + above * 2.0))
    result = np.where(x > _HUGE, log(x) + LN2, _log1p_of_sum(total, lost))
    return np.where(x >= 1, result, math.nan)


def atanh(x: Floats) -> Floats:
    """Log1p of 2|x| / (1 - |x|), halved."""
    size = np.abs(x)
    inside = np.where(size < 1, size, 0.5)
    ratio, rest = quotient((inside * 2.0, np.zeros_like(x)), two_sum(1.0, -inside))
    result = np.where(size < 2.0**-28, size, _log1p_of_sum(ratio, rest) * 0.5)
    result = np.where(size == 1, math.inf, np.where(size > 1, math.nan, result))
    return np.copysign(np.where(x != x, x, result), x)
