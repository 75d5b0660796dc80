import math

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.error_function import erf, erf_double, polynomial


def ulps(actual: np.ndarray, x: np.ndarray) -> float:
    """The greatest distance to erf in units of the last place of the dtype."""
    exact = np.array([math.erf(float(v)) for v in x])
    return float(np.max(np.abs(actual - exact) / np.spacing(np.abs(exact).astype(actual.dtype))))


POINTS = np.concatenate(
    [np.linspace(-7, 7, 20001), np.logspace(-37, 0, 1001), [0.9999, 1.0, 1.0001]]
)


def test_float32_is_within_4_ulp_and_never_beyond_1():
    x = POINTS.astype(np.float32)
    result = erf(x)
    assert result.dtype == np.float32
    assert ulps(result, x) <= 4
    assert np.abs(result).max() == 1


def test_float64_is_within_3_ulp():
    assert ulps(erf_double(POINTS), POINTS) <= 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_special_values(dtype):
    x = np.array([np.inf, -np.inf, 0.0, -0.0, np.nan, 100], dtype)
    result = erf(x)
    assert result.dtype == dtype
    assert result.astype(float)[[0, 1, 2, 3, 5]].tolist() == [1, -1, 0, 0, 1]
    assert np.signbit(result[3])
    assert np.isnan(result[4])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_are_the_rounded_value(dtype):
    x = np.linspace(-3, 3, 401).astype(dtype)
    exact = np.array([math.erf(float(v)) for v in x])
    lost_bits = 13 if dtype == np.float16 else 16
    spacing = np.spacing(np.abs(exact).astype(np.float32)) * 2**lost_bits
    assert np.all(np.abs(erf(x).astype(float) - exact) <= 0.51 * spacing)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64])
def test_integers_truncate(dtype):
    assert erf(np.array([0, 1, 3, 7], dtype)).tolist() == [0, 0, 0, 1]
    assert erf(np.array(1, dtype)).dtype == dtype


def test_polynomial_is_highest_power_first():
    assert polynomial(np.array([2.0, 0.0]), np.array([1.0, 2.0, 3.0])).tolist() == [11, 3]
