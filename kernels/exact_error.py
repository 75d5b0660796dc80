"""Cores of erf.

float32   x P(x^2), which differs from erf by 2^-32 at most, up to where that rounds to 1
float64   x + x R(x^2) up to 1, then 1 - exp(-x^2) F((x - 5/2) / (x + 3)), F for exp(x^2) erfc x

P, R and F are minimax (Remez exchange in 60 digits); R is good to 62 bits, F to 60.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.exact_exponential import exp_double, within
from foldline.kernels.exact_steps import Floats, coefficients, polynomial

_SINGLE_END = 3.9192059
"""Where erf is 1 - 2^-25."""
_DOUBLE_END = 6.0

_SINGLE = coefficients(
    5.691278341531052e-21,
    -9.247400590959797e-19,
    7.053302615789654e-17,
    -3.3673589658741314e-15,
    1.1334673012588545e-13,
    -2.8776490983961916e-12,
    5.768070799622949e-11,
    -9.454120072805106e-10,
    1.3041009005506341e-08,
    -1.5496397887627563e-07,
    1.6129418945520363e-06,
    -1.4828767088759528e-05,
    0.00012034454205033344,
    -0.0008545122839587721,
    0.0052236462737345855,
    -0.026865958430402445,
    0.1128378436600388,
    -0.3761263788455026,
    1.1283791668529373,
)
_NEAR = coefficients(
    5.960420180171173e-11,
    -1.1374802647216501e-09,
    1.4660290092015828e-08,
    -1.6350390628508324e-07,
    1.6461007964547664e-06,
    -1.492559574111015e-05,
    0.00012055331131702389,
    -0.0008548326981392295,
    0.005223977624827872,
    -0.02686617064507782,
    0.11283791670954885,
    -0.3761263890318375,
    0.1283791670955126,
)
_FAR = coefficients(
    -8.231958150493311e-07,
    1.004169566147403e-07,
    4.7732354056475566e-06,
    1.1732681342374209e-06,
    -2.6905598907992824e-05,
    -8.216080713552597e-06,
    0.00017235421639627427,
    -3.81139736914744e-05,
    -0.0012215036610315967,
    0.0021134709876493986,
    0.006200459800814793,
    -0.041056453907596165,
    0.11792238659657385,
    -0.2314226895482846,
    0.3454640045275007,
    -0.4089104073438707,
    0.2108063640611436,
)


def erf_single(x: Floats) -> Floats:
    """Erf to 32 bits; 1 exactly where float32 rounds to it."""
    inside = within(np.abs(x), -1.0, _SINGLE_END)
    result = inside * polynomial(inside * inside, _SINGLE)
    np.copyto(result, 1.0, where=inside == _SINGLE_END)
    return np.copysign(result, x)


def erf_double(x: Floats) -> Floats:
    """Erf."""
    size = np.minimum(np.abs(x), _DOUBLE_END)
    square = size * size
    near = size + size * polynomial(square, _NEAR)
    far = np.maximum(size, 1.0)
    rest = exp_double(-(far * far)) * polynomial((far - 2.5) / (far + 3.0), _FAR)
    return np.copysign(np.where(size < 1.0, near, 1.0 - rest), x)
