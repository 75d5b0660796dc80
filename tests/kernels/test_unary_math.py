import math

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.registry import compute, find_kernel

FUNCTIONS = {
    "Exp": math.exp,
    "Log": math.log,
    "Tanh": math.tanh,
    "Sin": math.sin,
    "Cos": math.cos,
    "Tan": math.tan,
    "Asin": math.asin,
    "Acos": math.acos,
    "Atan": math.atan,
    "Sinh": math.sinh,
    "Cosh": math.cosh,
    "Asinh": math.asinh,
    "Acosh": math.acosh,
    "Atanh": math.atanh,
}


def run(op_type, x):
    with np.errstate(all="ignore"):
        return compute(find_kernel("", op_type, 22), [x])


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(np.float16, 1e-3), (ml_dtypes.bfloat16, 8e-3), (np.float32, 3e-7), (np.float64, 1e-15)],
)
@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_values(op_type, dtype, tolerance):
    x = np.array([1.25, 2.5] if op_type == "Acosh" else [0.25, 0.75], dtype)
    result = run(op_type, x)
    assert result.dtype == dtype
    expected = [FUNCTIONS[op_type](float(v)) for v in x]
    np.testing.assert_allclose(result.astype(float), expected, rtol=tolerance)


@pytest.mark.parametrize(
    ("op_type", "at_minus_inf", "at_minus_zero", "at_inf"),
    [
        ("Exp", 0, 1, np.inf),
        ("Log", np.nan, -np.inf, np.inf),
        ("Tanh", -1, -0.0, 1),
        ("Sin", np.nan, -0.0, np.nan),
        ("Atan", -math.pi / 2, -0.0, math.pi / 2),
        ("Sinh", -np.inf, -0.0, np.inf),
        ("Asinh", -np.inf, -0.0, np.inf),
        ("Acosh", np.nan, np.nan, np.inf),
        ("Atanh", np.nan, -0.0, np.nan),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits(op_type, at_minus_inf, at_minus_zero, at_inf, dtype):
    result = run(op_type, np.array([-np.inf, -0.0, np.inf, np.nan], dtype))
    expected = np.array([at_minus_inf, at_minus_zero, at_inf, np.nan])
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert np.signbit(result[1]) == np.signbit(expected[1]) or np.isnan(expected[1])
