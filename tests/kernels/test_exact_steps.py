"""Error-free steps are error-free, and the loop over tiles does not show."""

from fractions import Fraction

import numpy as np
import pytest

from foldline.kernels.exact_steps import (
    TILE,
    Elementwise,
    coefficients,
    fast_two_sum,
    nearest_integer,
    polynomial,
    power_of_two,
    quotient,
    scaled,
    two_product,
    two_sum,
)
from foldline.kernels.parallel import use_threads

RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal(200) * 10.0 ** RANDOM.uniform(-30, 30, 200)
B = RANDOM.standard_normal(200) * 10.0 ** RANDOM.uniform(-30, 30, 200)


def as_fractions(pair):
    return [
        Fraction(high) + Fraction(low)
        for high, low in zip(*map(np.ndarray.tolist, pair), strict=True)
    ]


@pytest.mark.parametrize(("a", "b"), [(A, B), (B, A), (A, -A * (1 + 2.0**-52))])
def test_two_sum(a, b):
    assert as_fractions(two_sum(a, b)) == [
        Fraction(x) + Fraction(y) for x, y in zip(a, b, strict=True)
    ]


def test_fast_two_sum_of_the_greater_and_the_smaller():
    greater, smaller = np.where(abs(A) > abs(B), A, B), np.where(abs(A) > abs(B), B, A)
    exact = [Fraction(x) + Fraction(y) for x, y in zip(A, B, strict=True)]
    assert as_fractions(fast_two_sum(greater, smaller)) == exact


def test_two_product():
    assert as_fractions(two_product(A, B)) == [
        Fraction(x) * Fraction(y) for x, y in zip(A, B, strict=True)
    ]


def test_quotient_is_good_to_a_hundred_bits():
    low_a, low_b = A * 2.0**-55, B * -(2.0**-55)
    found = as_fractions(quotient((A, low_a), (B, low_b)))
    above, below = as_fractions((A, low_a)), as_fractions((B, low_b))
    for q, a, b in zip(found, above, below, strict=True):
        assert abs(q / (a / b) - 1) < Fraction(1, 1 << 100)


def test_polynomial_is_highest_power_first():
    assert polynomial(np.array([2.0, 0.0]), coefficients(1.0, 2.0, 3.0)).tolist() == [11, 3]


def test_nearest_integer():
    whole, exponent = nearest_integer(np.array([0.5, 1.5, -2.5, 1e6 + 0.3, -1074.9, -0.0]))
    assert whole.tolist() == exponent.tolist() == [0, 2, -2, 1_000_000, -1075, 0]


def test_powers_of_two():
    exponents = np.array([-1023, -1022, 0, 1023, 1024])
    assert power_of_two(exponents).tolist() == [0, 2.0**-1022, 1, 2.0**1023, np.inf]
    assert scaled(np.array([1.5, 1.5, 0.75]), np.array([-1074, -1075, 1025])).tolist() == [
        1e-323,
        5e-324,
        np.inf,
    ]


DOUBLED = Elementwise(lambda x: x * 2.0, lambda x: x * 2.0)
QUOTIENT = Elementwise(lambda a, b: a / b, lambda a, b: a / b)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1), (2, 3), (TILE + 1,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shape_dtype_and_destination(shape, dtype):
    x = np.ones(shape, dtype)
    result = DOUBLED(x)
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == (shape, dtype)
    assert (result == 2).all()
    assert DOUBLED(x, out=x) is x
    assert (x == 2).all()


def test_arrays_broadcast():
    a, b = np.arange(6.0).reshape(2, 1, 3), np.array([[1.0], [2.0]])
    np.testing.assert_array_equal(QUOTIENT(a, b), a / b)
    np.testing.assert_array_equal(QUOTIENT(a, np.array(4.0)), a / 4)
    np.testing.assert_array_equal(QUOTIENT(np.array([1.0]), a + 1), 1 / (a + 1))
    assert QUOTIENT(np.array([1.0]), np.ones((0, 2))).shape == (0, 2)


def test_a_core_is_chosen_by_dtype_and_rounded_once():
    cores = Elementwise(lambda x: x + 2.0**-40, lambda x: x + 1.0)
    assert cores(np.float32([1]))[0] == 1
    assert cores(np.float64([1]))[0] == 2


def test_nan_is_canonical_and_threads_do_not_show():
    x = np.full(3 * TILE + 5, np.inf)
    x[::7] = 3.0
    core = Elementwise(lambda x: x - x, lambda x: x - x)
    with np.errstate(invalid="ignore"):
        alone = core(x)
        with use_threads(3):
            together = core(x)
    assert set(alone.view(np.uint64).tolist()) == {0, 0x7FF8000000000000}
    assert alone.tobytes() == together.tobytes()
