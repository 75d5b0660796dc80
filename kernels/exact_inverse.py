"""Cores of asin, acos and atan.

    asin s = s + s^3 B(s^2)  for s <= 1/2; beyond, asin x = pi/2 - 2 asin sqrt((1 - x) / 2)
    atan t = t + t^3 A(t^2)  for t <= tan(pi/8); beyond, atan x = pi/4 + atan((x - 1) / (x + 1)),
                             and beyond tan(3 pi/8), atan x = pi/2 + atan(-1 / x)

A and B are minimax (Remez exchange in 60 digits), to 64 and 60 bits.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from foldline.kernels.exact_steps import (
    Floats,
    coefficients,
    polynomial,
    quotient,
    two_product,
    two_sum,
)

_PI = (3.141592653589793, 1.2246467991473532e-16)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)
"""As a float64 and what that misses."""

_ASIN = coefficients(
    0.0326834881790472,
    -0.021085417352093985,
    0.021767359540509127,
    0.0036823134470305046,
    0.01078646635241668,
    0.01139783931462958,
    0.01398094627921539,
    0.017351602098615446,
    0.022372215497676002,
    0.030381942691715506,
    0.044642857174885725,
    0.07499999999970612,
    0.1666666666666676,
)
_ATAN = coefficients(
    0.015202901460193558,
    -0.03348267369699109,
    0.04503931841460357,
    -0.052185070213536,
    0.05877039348475868,
    -0.06666228751397528,
    0.07692282910923337,
    -0.0909090815225451,
    0.11111111088429257,
    -0.14285714285392903,
    0.1999999999999772,
    -0.33333333333333326,
)


def asin(x: Floats) -> Floats:
    """Arcsine; NaN beyond 1."""
    is_great, angle, curve = _half_angle(np.abs(x))
    high, low = two_sum(_HALF_PI[0], -2.0 * angle)
    great = high - ((2.0 * curve - _HALF_PI[1]) - low)
    return np.copysign(np.where(is_great, great, angle + curve), x)


def acos(x: Floats) -> Floats:
    """Arccosine; NaN beyond 1."""
    is_great, angle, curve = _half_angle(np.abs(x))
    high, low = two_sum(_HALF_PI[0], -x)
    small = high - ((np.copysign(curve, x) - _HALF_PI[1]) - low)
    high, low = two_sum(_PI[0], -2.0 * angle)
    opposite = high - ((2.0 * curve - _PI[1]) - low)
    return np.where(is_great, np.where(x < 0, opposite, 2.0 * (angle + curve)), small)


def _half_angle(size: Floats) -> tuple[npt.NDArray[np.bool_], Floats, Floats]:
    """Which are above 1/2, s, and what asin s adds to it."""
    is_great = size > 0.5
    square = np.where(is_great, (1.0 - size) * 0.5, size * size)
    root = np.sqrt(square)
    product, lost = two_product(root, root)
    rest = ((square - product) - lost) / np.maximum(2.0 * root, 2.0**-500)
    angle = np.where(is_great, root, size)
    curve = angle * square * polynomial(square, _ASIN) + np.where(is_great, rest, 0.0)
    return is_great, angle, curve


def atan(x: Floats) -> Floats:
    """Arctangent."""
    size = np.minimum(np.abs(x), 2.0**64)
    is_middle, is_great = size > math.sqrt(2) - 1, size > math.sqrt(2) + 1
    minus, minus_lost = two_sum(size, -1.0)
    plus, plus_lost = two_sum(size, 1.0)
    above = np.where(is_middle, minus, size), np.where(is_middle, minus_lost, 0.0)
    below = np.where(is_middle, plus, 1.0), np.where(is_middle, plus_lost, 0.0)
    above = np.where(is_great, -1.0, above[0]), np.where(is_great, 0.0, above[1])
    below = np.where(is_great, size, below[0]), np.where(is_great, 0.0, below[1])
    ratio, rest = quotient(above, below)
    square = ratio * ratio
    curve = ratio * square * polynomial(square, _ATAN)
    start, start_rest = (
        np.where(is_great, half, np.where(is_middle, quarter, 0.0))
        for half, quarter in zip(_HALF_PI, _QUARTER_PI, strict=True)
    )
    high, low = two_sum(start, ratio)
    return np.copysign(high + (low + (curve + (rest + start_rest))), x)
