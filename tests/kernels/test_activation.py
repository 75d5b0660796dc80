import math

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.activation import (
    gelu,
    hard_swish,
    leaky_relu,
    mish,
    parametric_relu,
    parametric_relu_before_7,
    relu,
    shrink,
    sigmoid,
    softplus,
    swiglu,
    swish,
    thresholded_relu,
)
from foldline.kernels.exponential_units import celu, elu, selu

INF, NAN = math.inf, math.nan
FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]
TOLERANCE = {np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3, np.float32: 1e-6, np.float64: 1e-14}


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


SCALAR = {
    elu: lambda x: x if x >= 0 else math.expm1(x),
    celu: lambda x: x if x >= 0 else math.expm1(x),
    selu: lambda x: 1.0507010221481323 * (x if x >= 0 else 1.6732631921768188 * math.expm1(x)),
    sigmoid: logistic,
    softplus: lambda x: math.log1p(math.exp(x)),
    mish: lambda x: x * math.tanh(math.log1p(math.exp(x))),
    swish: lambda x: x * logistic(x),
    hard_swish: lambda x: x * min(max(x / 6 + 0.5, 0), 1),
    gelu: lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", SCALAR, ids=lambda f: f.__name__)
def test_values(function, dtype):
    x = np.linspace(-3, 8, 45).astype(dtype)
    result = function(x)
    assert result.dtype == dtype
    expected = [SCALAR[function](float(v)) for v in x]
    np.testing.assert_allclose(
        result.astype(float), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] / 4
    )


@pytest.mark.parametrize(
    ("function", "at_minus_inf", "at_inf"),
    [
        (relu, 0, INF),
        (elu, -1, INF),
        (celu, -1, INF),
        (selu, -1.0507010221481323 * 1.6732631921768188, INF),
        (sigmoid, 0, 1),
        (softplus, 0, INF),
        (mish, 0, INF),
        (leaky_relu, -INF, INF),
        (thresholded_relu, 0, INF),
        (swish, NAN, INF),
        (gelu, NAN, INF),
        (hard_swish, NAN, INF),
    ],
    ids=lambda p: getattr(p, "__name__", None),
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_limits(function, at_minus_inf, at_inf, dtype):
    with np.errstate(all="ignore"):
        result = function(np.array([-INF, INF, NAN], dtype)).astype(float)
    np.testing.assert_allclose(result[:2], [at_minus_inf, at_inf], rtol=TOLERANCE[dtype])
    assert np.isnan(result[2]) or function is thresholded_relu


@pytest.mark.parametrize("function", [sigmoid, softplus, mish, elu, celu, selu, swish])
def test_large_arguments_do_not_turn_into_nan(function):
    x = np.array([-1e30, -1000, -100, 100, 1000, 1e30], np.float32)
    with np.errstate(all="ignore"):
        result = function(x)
    assert np.isfinite(result).all()
    if function is not sigmoid:
        np.testing.assert_allclose(result[3:] / result[3], x[3:] / x[3], rtol=1e-6)


@pytest.mark.parametrize("function", [softplus, mish, elu, celu, selu])
def test_these_do_not_overflow_on_the_way(function):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        function(np.array([-1e30, -100, 100, 1e30, INF, -INF], np.float32))


def test_small_arguments_keep_their_relative_accuracy():
    x = np.array([-1e-6, -1e-3], np.float32)
    np.testing.assert_allclose(elu(x), np.expm1(x.astype(float)), rtol=3e-7)
    assert softplus(np.array([-50.0], np.float32)) == np.exp(np.float32(-50))


class TestRelu:
    @pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
    def test_integers(self, dtype):
        extremes = np.iinfo(dtype)
        x = np.array([extremes.min, -1, 0, extremes.max], dtype)
        assert relu(x).dtype == dtype
        assert relu(x).tolist() == [0, 0, 0, extremes.max]


class TestLeaky:
    @pytest.mark.parametrize("alpha", [0.1, 1.0, 2.0, -0.5, 0.0])
    def test_every_slope(self, alpha):
        x = np.array([-4, -0.0, 3, INF], np.float32)
        result = leaky_relu(x, alpha=alpha)
        np.testing.assert_array_equal(result, [np.float32(alpha) * -4, 0, 3, INF])

    @pytest.mark.parametrize("slope", [[0.5, 1.0], [1.0, 3.0], [0.5, 2.0], [-1.0, 0.0]])
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_slopes_of_every_kind(self, slope, dtype):
        x = np.array([[-2.0, -2.0], [-0.0, 0.0], [3.0, INF], [-INF, NAN]], dtype)
        slope = np.array(slope, dtype)
        with np.errstate(invalid="ignore"):
            expected = np.where(x < 0, x * slope, x)
        y = parametric_relu(x, slope)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.astype(float), expected.astype(float))
        signs = (np.signbit(z.astype(float)) for z in (y, expected))
        np.testing.assert_array_equal(*signs)

    def test_integers_that_overflow(self):
        x = np.array([2**30, -(2**30), 5, -5], np.int32)
        y = parametric_relu(x, np.array(3, np.int32))
        assert y.tolist() == [2**30, 2**30, 5, -15]

    def test_infinite_slope_concerns_negatives_only(self):
        x = np.array([-1, 0, 2], np.float32)
        with np.errstate(all="ignore"):
            result = parametric_relu(x, np.array([INF], np.float32))
        assert result.tolist() == [-INF, 0, 2]

    def test_slope_broadcasts_one_way(self):
        x = np.full((2, 2, 3), -2, np.float32)
        slope = np.array([[0.5], [3]], np.float32)
        assert parametric_relu(x, slope)[1].tolist() == [[-1] * 3, [-6] * 3]

    @pytest.mark.parametrize("dtype", [np.int32, np.uint64])
    def test_integers(self, dtype):
        x = np.array([5, -3]).astype(dtype)
        expected = np.where(x < 0, x * 2, x)
        assert parametric_relu(x, np.array(2, dtype)).tolist() == expected.tolist()

    def test_slope_before_opset_7_is_per_channel(self):
        x = np.full((1, 2, 2), -1, np.float32)
        result = parametric_relu_before_7(x, np.array([2, 3], np.float32))
        assert result.tolist() == [[[-2, -2], [-3, -3]]]
        shared = parametric_relu_before_7(x, np.array([2], np.float32))
        assert shared.tolist() == [[[-2, -2], [-2, -2]]]


class TestParameters:
    def test_elu_family(self):
        x = np.array([-1, 2], np.float32)
        low = math.expm1(-1)
        np.testing.assert_allclose(elu(x, alpha=3.0), [3 * low, 2], rtol=1e-6)
        np.testing.assert_allclose(celu(x, alpha=2.0), [2 * math.expm1(-0.5), 2], rtol=1e-6)
        np.testing.assert_allclose(selu(x, alpha=2.0, gamma=3.0), [6 * low, 6], rtol=1e-6)

    def test_thresholded_relu_is_strict(self):
        x = np.array([1, 1.5, -3, NAN], np.float32)
        assert thresholded_relu(x, alpha=1.0).tolist() == [0, 1.5, 0, 0]

    def test_swish_and_swiglu(self):
        a, b = np.array([1, -2], np.float32), np.array([3, 5], np.float32)
        gate = [v * logistic(0.5 * v) for v in (1.0, -2.0)]
        np.testing.assert_allclose(swish(a, alpha=0.5), gate, rtol=1e-6)
        np.testing.assert_allclose(swiglu(a, b, alpha=0.5), np.multiply(gate, b), rtol=1e-6)

    def test_swiglu_of_float16_rounds_once(self):
        a = np.linspace(-3, 3, 101).astype(np.float16)
        wide = swiglu(a.astype(np.float32), a.astype(np.float32))
        assert (swiglu(a, a) == wide.astype(np.float16)).all()


class TestGelu:
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_tanh_form(self, dtype):
        x = np.linspace(-3, 8, 45).astype(dtype)
        inner = [math.sqrt(2 / math.pi) * (v + 0.044715 * v**3) for v in x.astype(float)]
        expected = x.astype(float) / 2 * (1 + np.tanh(inner))
        result = gelu(x, approximate="tanh")
        assert result.dtype == dtype
        np.testing.assert_allclose(result.astype(float), expected, rtol=TOLERANCE[dtype])

    def test_tanh_form_of_huge_arguments(self):
        with np.errstate(all="ignore"):
            result = gelu(np.array([-1e30, 1e30, INF], np.float32), approximate="tanh")
        assert result.tolist() == [0, np.float32(1e30), INF]

    def test_unknown_form(self):
        with pytest.raises(ValueError, match="'fast', expected 'none' or 'tanh'"):
            gelu(np.zeros(1, np.float32), approximate="fast")


class TestShrink:
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_floats(self, dtype):
        x = np.array([-2, -0.5, 0.5, 2, NAN, INF, -INF], dtype)
        result = shrink(x, lambd=0.5, bias=1.5)
        assert result.dtype == dtype
        assert result.astype(float).tolist() == [-0.5, 0, 0, 0.5, 0, INF, -INF]

    def test_integers_are_exact(self):
        x = np.array([2**62 + 1, -(2**62) - 1, 0])
        assert shrink(x, lambd=1.5, bias=1.0).tolist() == [2**62, -(2**62), 0]

    def test_integers_with_a_fraction_truncate(self):
        x = np.array([-5, 5, 0, 2], np.int32)
        assert shrink(x, lambd=1.5, bias=1.5).tolist() == [-3, 3, 0, 0]

    def test_unsigned_values_beyond_int64(self):
        x = np.array([2**63 + 4], np.uint64)
        assert shrink(x, lambd=1.5, bias=1.0).tolist() == [2**63 + 3]
