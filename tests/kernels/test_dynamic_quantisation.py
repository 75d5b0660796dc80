"""DynamicQuantizeLinear in one go: the reference's bits."""

import numpy as np
import pytest

from foldline.kernels.dynamic_quantisation import centred_codes, dynamic_quantize_linear
from foldline.kernels.quantisation import TILE_ELEMENTS
from foldline.kernels.quantisation import dynamic_quantize_linear as reference


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def check(x):
    wanted = reference(x)
    for found, expected in zip(dynamic_quantize_linear(x), wanted, strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
    left, scale = centred_codes(x)
    codes, expected_scale, zero = wanted
    np.testing.assert_array_equal(scale, expected_scale)
    np.testing.assert_array_equal(left.reshape(x.shape), codes.astype(np.float32) - zero)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0), (7, 5), (3, TILE_ELEMENTS + 1)])
@pytest.mark.parametrize("low", [-2.0, -0.3, 0.0, 0.7])
def test_as_the_reference(shape, low):
    check(np.random.default_rng(5).uniform(low, 1.0, shape).astype(np.float32))


@pytest.mark.parametrize("factor", [1.0, 0.125, 2.0**-20])
def test_codes_that_round_beyond_the_last(factor):
    """Both ends are ties that round away from zero: 256 would come out without the limit."""
    x = np.array([-1.5, 253.5, 0, 100.25], np.float32) * np.float32(factor)
    codes, scale, zero = dynamic_quantize_linear(x)
    assert scale == factor
    assert np.rint(x[1] / scale) + zero == 256
    assert codes.tolist() == [0, 255, 2, 102]
    check(x)


@pytest.mark.parametrize(
    "values",
    [
        [np.nan, 1],
        [np.inf, -1],
        [-np.inf, 1],
        [3e38, -3e38],
        [1e-45, 0],
        [-4e-44, 1e-44],
        [-0.0, 0.0],
        [5, 5],
        [-5, -5],
    ],
)
def test_strange_ranges(values):
    check(np.array(values, np.float32))


def test_views():
    x = np.random.default_rng(1).standard_normal((40, 60)).astype(np.float32)
    check(x.T)
    check(x[::2, ::3])
