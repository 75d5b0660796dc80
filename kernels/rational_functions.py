"""Sigmoid and Tanh of float32 as ONNX Runtime computes them, to the last bit.

    Sigmoid(x) = x P(x^2) / Q(x^2) + 1/2        Tanh(x) = x P(x^2) / Q(x^2)

Each step `p * x^2 + c` of a polynomial is rounded once, as a fused multiply-add does. That matters
where the result is quantised next: a last bit before that rounding moves a whole step after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldline.kernels.registry import Array


@dataclass(frozen=True)
class _Quotient:
    """`x P(x^2) / Q(x^2)` for x within a bound; coefficients from the highest degree down."""

    bound: float
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]

    def __call__(self, x: Array) -> Array:
        x = np.clip(x, np.float32(-self.bound), np.float32(self.bound))
        squares = (x * x).astype(np.float64)
        numerator = _polynomial(self.numerator, squares)
        numerator *= x
        return np.divide(numerator, _polynomial(self.denominator, squares), out=numerator)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """By Horner's rule. A product of two float32 is exact in float64, so a step rounds once."""
    first, *others = (np.float64(np.float32(c)) for c in coefficients)
    value = np.full(x.shape, first, np.float32)
    wide = np.empty_like(x)
    for coefficient in others:
        np.multiply(value, x, out=wide)
        np.add(wide, coefficient, out=value, casting="same_kind")
    return value


_SIGMOID = _Quotient(
    18.0,
    (
        4.37031012579801e-11,
        1.15627324459942e-07,
        6.08574864600143e-05,
        8.51377133304701e-03,
        2.48287947061529e-01,
    ),
    (
        6.10247389755681e-13,
        5.76102136993427e-09,
        6.29106785017040e-06,
        1.70198817374094e-03,
        1.16817656904453e-01,
        9.93151921023180e-01,
    ),
)
_TANH = _Quotient(
    9.0,
    (
        -2.76076847742355e-16,
        2.00018790482477e-13,
        -8.60467152213735e-11,
        5.12229709037114e-08,
        1.48572235717979e-05,
        6.37261928875436e-04,
        4.89352455891786e-03,
    ),
    (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03),
)


def rational_sigmoid(x: Array) -> Array:
    """Sigmoid of float32, within 3e-7 of the exact value."""
    y = _SIGMOID(x)
    np.add(y, np.float32(0.5), out=y)
    return np.clip(y, np.float32(0), np.float32(1), out=y)


def rational_tanh(x: Array) -> Array:
    """Tanh of float32, within 5e-7 of the exact value."""
    return _TANH(x)
