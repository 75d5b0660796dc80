"""Gelu in float32 against the error function of the standard library."""

import math

import numpy as np
import pytest

from foldline.kernels.gelu import gelu_single

EPS = float(np.finfo(np.float32).eps)


def exact(x):
    return np.array([0.5 * float(v) * math.erfc(-float(v) / math.sqrt(2)) for v in x])


@pytest.mark.parametrize("reach", [1e-30, 1e-3, 1.0, 5.0, 20.0, 1e4])
def test_within_2_eps_of_x(reach):
    x = np.linspace(-reach, reach, 20001).astype(np.float32)
    with np.errstate(all="ignore"):
        error = np.abs(gelu_single(x).astype(float) - exact(x))
    assert np.all(error <= 2 * EPS * np.abs(x) + 1e-45)


def test_positive_arguments_are_within_4_ulp():
    x = np.linspace(0.001, 12, 30001).astype(np.float32)
    wanted = exact(x)
    assert np.max(np.abs(gelu_single(x) - wanted) / np.spacing(wanted.astype(np.float32))) <= 4


def test_special_values():
    x = np.array([-np.inf, np.inf, np.nan, -0.0, 0.0, 3e38, -3e38, -1e20], np.float32)
    with np.errstate(all="ignore"):
        y = gelu_single(x)
    np.testing.assert_array_equal(y[[0, 1, 2, 5]], np.float32([np.nan, np.inf, np.nan, 3e38]))
    assert y[[3, 4, 6, 7]].tolist() == [0, 0, 0, 0]
    assert np.signbit(y[[3, 4, 6, 7]]).tolist() == [True, False, True, True]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7, 33)])
def test_shapes_and_memory(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    out, scratch = np.empty(shape, np.float32), np.empty(shape, np.float32)
    before = x.copy()
    assert gelu_single(x, out, scratch) is out
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(out, gelu_single(x))
    np.testing.assert_array_equal(gelu_single(np.asfortranarray(x)), out)
