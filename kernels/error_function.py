"""Erf by polynomials: NumPy has none, and `math.erf` in a loop is 20 times slower.

float32   tanh(x P(x^2)), P for [-3.95, 3.95], beyond which erf rounds to 1: at most 4 ulp.
          NumPy's tanh costs as much as three products; a quotient of polynomials takes 1.8 as long
float64   x P(x^2) / Q(x^2) below 1, else 1 - exp(-x^2) P(|x|) / Q(|x|)
          (the rational functions of the Cephes library): at most 3 ulp
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foldline.kernels.precision import NARROW, rounded
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import clip, constant, destination


def _coefficients(dtype: type[np.floating[Any]], *values: float) -> tuple[Array, ...]:
    """Rank 0 arrays, from the highest power down."""
    return tuple(constant(value, np.dtype(dtype)) for value in values)


_SINGLE_LIMIT = 3.95
_SINGLE = _coefficients(
    np.float32,
    1.4185002328304108e-07,
    -5.668434823746793e-06,
    8.763706136960536e-05,
    -0.0006197838811203837,
    -0.0001918317429954186,
    0.10276905447244644,
    1.128379225730896,
)

_DOUBLE_LIMIT = 6.0
_NEAR_P = _coefficients(
    np.float64,
    9.60497373987051638749e0,
    9.00260197203842689217e1,
    2.23200534594684319226e3,
    7.00332514112805075473e3,
    5.55923013010394962768e4,
)
_NEAR_Q = _coefficients(
    np.float64,
    1.0,
    3.35617141647503099647e1,
    5.21357949780152679795e2,
    4.59432382970980127987e3,
    2.26290000613890934246e4,
    4.92673942608635921086e4,
)
_FAR_P = _coefficients(
    np.float64,
    2.46196981473530512524e-10,
    5.64189564831068821977e-1,
    7.46321056442269912687e0,
    4.86371970985681366614e1,
    1.96520832956077098242e2,
    5.26445194995477358631e2,
    9.34528527171957607540e2,
    1.02755188689515710272e3,
    5.57535335369399327526e2,
)
_FAR_Q = _coefficients(
    np.float64,
    1.0,
    1.32281951154744992508e1,
    8.67072140885989742329e1,
    3.54937778887819891062e2,
    9.75708501743205489753e2,
    1.82390916687909736289e3,
    2.24633760818710981792e3,
    1.65666309194161350182e3,
    5.57535340817727675546e2,
)


@kernel("Erf")
def erf(x: Array, *, out: Array | None = None, scratch: Array | None = None) -> Array:
    """Erf 9+ in the dtype of `x`: half types by way of float32, integers (9..12) truncated."""
    if x.dtype == np.float32:
        return erf_single(x, out, scratch)
    if x.dtype in NARROW:
        return rounded(erf_single(x.astype(np.float32)), x.dtype, out)
    return rounded(erf_double(x.astype(np.float64)), x.dtype, out)


def erf_single(x: Array, out: Array | None = None, scratch: Array | None = None) -> Array:
    """Erf of a float32 array; `out` is not `x`."""
    square = np.square(x, destination(x, scratch))
    clip(square, constant(0, x.dtype), constant(_SINGLE_LIMIT**2, x.dtype), square)
    slope = polynomial(square, _SINGLE, out)
    np.multiply(x, slope, slope)
    return np.tanh(slope, slope)


def erf_double(x: Array) -> Array:
    """Erf of a float64 array."""
    clipped = np.asarray(
        clip(x, constant(-_DOUBLE_LIMIT, x.dtype), constant(_DOUBLE_LIMIT, x.dtype))
    )
    size = np.abs(clipped)
    square = np.square(clipped)
    near = clipped * polynomial(square, _NEAR_P) / polynomial(square, _NEAR_Q)
    rest = np.exp(-square) * polynomial(size, _FAR_P) / polynomial(size, _FAR_Q)
    return np.where(size < 1, near, np.copysign(1 - rest, clipped))


def polynomial(x: Array, coefficients: Sequence[Array], out: Array | None = None) -> Array:
    """Horner's rule, highest power first, coefficients in the dtype of `x`; `out` is not `x`."""
    lead, second, *others = coefficients
    result = np.multiply(x, lead, out=destination(x, out))
    np.add(result, second, out=result)
    for coefficient in others:
        np.multiply(result, x, out=result)
        np.add(result, coefficient, out=result)
    return result
