"""Elementary functions in 340 digits by series and `decimal`: the oracle of exact functions.

Results are good to 30 digits at least, for arguments of 1e-30 to 1e300 in size.
"""

import decimal
import functools
from decimal import Decimal

CONTEXT = decimal.Context(prec=340, Emax=10**6, Emin=-(10**6))
WIDE = decimal.Context(prec=680, Emax=10**6, Emin=-(10**6))


@functools.cache
def pi():
    """Machin's formula, in 680 digits."""
    with decimal.localcontext(WIDE):
        return 16 * _arctan_series(Decimal(1) / 5) - 4 * _arctan_series(Decimal(1) / 239)


def _sum(term, following):
    """The sum of `term`, `following(term, 0)`, `following(that, 1)` and so on."""
    total, index = Decimal(0), 0
    while total + term != total:
        total += term
        term = following(term, index)
        index += 1
    return total


def _arctan_series(x):
    return _sum(x, lambda t, k: -t * x * x * (2 * k + 1) / (2 * k + 3))


def _circle(x, quarter):
    """The sine of `x` plus so many quarters of a turn."""
    with decimal.localcontext(WIDE):
        rest = x + pi() * quarter / 2
        rest -= (rest / (2 * pi())).to_integral_value() * 2 * pi()
    rest = +rest
    return _sum(rest, lambda t, k: -t * rest * rest / ((2 * k + 2) * (2 * k + 3)))


def _atan(x):
    halved = x
    for _ in range(4):
        halved = halved / (1 + (1 + halved * halved).sqrt())
    return 16 * _arctan_series(halved)


def _erf(x):
    series = _sum(x, lambda t, k: -t * x * x * (2 * k + 1) / ((k + 1) * (2 * k + 3)))
    return series * 2 / (+pi()).sqrt()


def _sinh(x):
    return (x.exp() - (-x).exp()) / 2


def _cosh(x):
    return (x.exp() + (-x).exp()) / 2


def _asinh(x):
    size = abs(x)
    return ((size * size + 1).sqrt() + size).ln().copy_sign(x)


FUNCTIONS = {
    "EXP": Decimal.exp,
    "EXPM1": lambda x: x.exp() - 1,
    "EXP2": lambda x: (x * Decimal(2).ln()).exp(),
    "SIGMOID": lambda x: 1 / (1 + (-x).exp()),
    "TANH": lambda x: _sinh(x) / _cosh(x),
    "SINH": _sinh,
    "COSH": _cosh,
    "LOG": Decimal.ln,
    "LOG1P": lambda x: (1 + x).ln(),
    "LOG2": lambda x: x.ln() / Decimal(2).ln(),
    "SOFTPLUS": lambda x: (1 + x.exp()).ln(),
    "ASINH": _asinh,
    "ACOSH": lambda x: (x + (x * x - 1).sqrt()).ln(),
    "ATANH": lambda x: ((1 + x) / (1 - x)).ln() / 2,
    "SIN": lambda x: _circle(x, 0),
    "COS": lambda x: _circle(x, 1),
    "TAN": lambda x: _circle(x, 0) / _circle(x, 1),
    "ASIN": lambda x: _atan(x / (1 - x * x).sqrt()),
    "ACOS": lambda x: 2 * _atan(((1 - x) / (1 + x)).sqrt()),
    "ATAN": _atan,
    "ERF": _erf,
    "SQRT": Decimal.sqrt,
    "POWER": lambda x, y: (x.ln() * y).exp(),
}


def exact(name, *arguments):
    """The function of floats as a Decimal."""
    with decimal.localcontext(CONTEXT):
        return FUNCTIONS[name](*map(Decimal, map(float, arguments)))
