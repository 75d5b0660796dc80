"""Elementary functions for exact mode: the same bits on every machine.

Each is an `Elementwise`: it takes a float32 or float64 array (`POWER` two, which broadcast) and
returns the same dtype. float32 results err by 0.51 ulp at most, float64 results by 2 ulp; results
below the least normal number by one of the least. Special values are those of IEEE 754, and a NaN
is always the quiet one, 0x7FC00000 or 0x7FF8000000000000. Sine, cosine and tangent are right for
every finite argument.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.exact_error import erf_double, erf_single
from foldline.kernels.exact_exponential import (
    cosh,
    exp2_double,
    exp2_single,
    exp_double,
    exp_single,
    expm1_double,
    expm1_single,
    sigmoid_double,
    sigmoid_single,
    sinh,
    tanh_double,
    tanh_single,
)
from foldline.kernels.exact_inverse import acos, asin, atan
from foldline.kernels.exact_logarithm import (
    acosh,
    asinh,
    atanh,
    log,
    log1p,
    log2,
    power_double,
    power_single,
    softplus_double,
    softplus_single,
)
from foldline.kernels.exact_steps import Elementwise
from foldline.kernels.exact_trigonometric import (
    cos_double,
    cos_single,
    sin_double,
    sin_single,
    tan,
)

EXP = Elementwise(exp_single, exp_double)
EXPM1 = Elementwise(expm1_single, expm1_double)
EXP2 = Elementwise(exp2_single, exp2_double)
LOG = Elementwise(log, log)
LOG1P = Elementwise(log1p, log1p)
LOG2 = Elementwise(log2, log2)
SQRT = Elementwise(np.sqrt, np.sqrt)
POWER = Elementwise(power_single, power_double)
SIGMOID = Elementwise(sigmoid_single, sigmoid_double)
SOFTPLUS = Elementwise(softplus_single, softplus_double)
TANH = Elementwise(tanh_single, tanh_double)
SINH = Elementwise(sinh, sinh)
COSH = Elementwise(cosh, cosh)
ASINH = Elementwise(asinh, asinh)
ACOSH = Elementwise(acosh, acosh)
ATANH = Elementwise(atanh, atanh)
SIN = Elementwise(sin_single, sin_double)
COS = Elementwise(cos_single, cos_double)
TAN = Elementwise(tan, tan)
ASIN = Elementwise(asin, asin)
ACOS = Elementwise(acos, acos)
ATAN = Elementwise(atan, atan)
ERF = Elementwise(erf_single, erf_double)
