"""Elementary functions for exact mode: the same bits on every machine.

Each takes a float32 or float64 array (`POWER` takes two, which broadcast) and returns the same
dtype, see `Elementwise`. float32 results err by 0.51 ulp at most, float64 results by 2 ulp, where
an ulp is never less than the least subnormal number. Special values are those of IEEE 754, and a
NaN is always the quiet one: 0x7FC00000, 0x7FF8000000000000. Sine, cosine and tangent are right for
every finite argument.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels import (
    exact_error,
    exact_exponential,
    exact_inverse,
    exact_logarithm,
    exact_trigonometric,
)
from foldline.kernels.exact_steps import Elementwise

EXP = Elementwise(exact_exponential.exp_single, exact_exponential.exp_double)
EXPM1 = Elementwise(exact_exponential.expm1_single, exact_exponential.expm1_double)
EXP2 = Elementwise(exact_exponential.exp2_single, exact_exponential.exp2_double)
SIGMOID = Elementwise(exact_exponential.sigmoid_single, exact_exponential.sigmoid_double)
TANH = Elementwise(exact_exponential.tanh_single, exact_exponential.tanh_double)
SINH = Elementwise(exact_exponential.sinh, exact_exponential.sinh)
COSH = Elementwise(exact_exponential.cosh, exact_exponential.cosh)

LOG = Elementwise(exact_logarithm.log, exact_logarithm.log)
LOG1P = Elementwise(exact_logarithm.log1p, exact_logarithm.log1p)
LOG2 = Elementwise(exact_logarithm.log2, exact_logarithm.log2)
POWER = Elementwise(exact_logarithm.power_single, exact_logarithm.power_double)
SOFTPLUS = Elementwise(exact_logarithm.softplus_single, exact_logarithm.softplus_double)
ASINH = Elementwise(exact_logarithm.asinh, exact_logarithm.asinh)
ACOSH = Elementwise(exact_logarithm.acosh, exact_logarithm.acosh)
ATANH = Elementwise(exact_logarithm.atanh, exact_logarithm.atanh)

SIN = Elementwise(exact_trigonometric.sin_single, exact_trigonometric.sin_double)
COS = Elementwise(exact_trigonometric.cos_single, exact_trigonometric.cos_double)
TAN = Elementwise(exact_trigonometric.tan, exact_trigonometric.tan)
ASIN = Elementwise(exact_inverse.asin, exact_inverse.asin)
ACOS = Elementwise(exact_inverse.acos, exact_inverse.acos)
ATAN = Elementwise(exact_inverse.atan, exact_inverse.atan)

ERF = Elementwise(exact_error.erf_single, exact_error.erf_double)
SQRT = Elementwise(np.sqrt, np.sqrt)
