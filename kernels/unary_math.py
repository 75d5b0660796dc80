"""Exponential, logarithm, trigonometric and hyperbolic functions: one ufunc each.

The ufuncs of half types compute in float32 and round once.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.ufuncs import register_unary

register_unary("Exp", np.exp, consumed_inputs=True)
register_unary("Log", np.log, consumed_inputs=True)
register_unary("Tanh", np.tanh, consumed_inputs=True)

for _op_type, _function in (
    ("Sin", np.sin),
    ("Cos", np.cos),
    ("Tan", np.tan),
    ("Asin", np.arcsin),
    ("Acos", np.arccos),
    ("Atan", np.arctan),
    ("Sinh", np.sinh),
    ("Cosh", np.cosh),
    ("Asinh", np.arcsinh),
    ("Acosh", np.arccosh),
    ("Atanh", np.arctanh),
):
    register_unary(_op_type, _function)
