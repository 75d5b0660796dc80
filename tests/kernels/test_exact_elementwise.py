"""Exact operators against their reference kernels, and what is exact mode's own."""

import math

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import exact_functions
from foldline.kernels.registry import compute, find_kernel

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

UNARY = [
    *("Exp", "Log", "Tanh", "Sigmoid", "Softplus", "Erf", "Elu", "Celu", "Selu", "Mish", "Swish"),
    *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"),
    *("Gelu", "com.microsoft::Gelu", "com.microsoft::FastGelu", "com.microsoft::QuickGelu"),
]
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
QUIET = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8 << 48}
X = np.concatenate(
    [np.linspace(-20, 20, 1001), np.linspace(-1, 1, 101), [np.inf, -np.inf, -0.0, 1e4, -1e4]]
)


def run(op_type, *inputs, version=25, grade="exact", **keywords):
    domain, _, name = op_type.rpartition("::")
    return compute(find_kernel(domain, name, version, (grade,)), list(inputs), **keywords)


def bits(x):
    return x.view(f"u{x.itemsize}")


def assert_near(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    tolerance = {2: 1e-2, 4: 2e-6, 8: 1e-12}[actual.itemsize]
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 2)
    np.testing.assert_array_equal(
        np.signbit(a)[(a == 0) & (b == 0)], np.signbit(b)[(a == 0) & (b == 0)]
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op_type", UNARY)
class TestUnary:
    def test_it_is_near_the_reference(self, op_type, dtype):
        x = X.astype(dtype)
        before = x.copy()
        assert_near(run(op_type, x), run(op_type, x, grade="reference"))
        assert bits(x).tolist() == bits(before).tolist()

    def test_nan_is_quiet(self, op_type, dtype):
        x = np.array([np.nan, -np.nan, np.inf, -np.inf, -2, 2], dtype)
        bits(x)[1] |= 1
        result = run(op_type, x)
        nans = np.isnan(result.astype(np.float64))
        assert nans[:2].all()
        assert set(bits(result)[nans].tolist()) == {QUIET[np.dtype(dtype).name]}

    @pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
    def test_shapes_and_destination(self, op_type, dtype, shape):
        x = np.full(shape, 1.5, dtype)
        result = run(op_type, x)
        assert type(result) is np.ndarray
        assert (result.shape, result.dtype) == (shape, dtype)
        if op_type != "com.microsoft::FastGelu":
            assert run(op_type, x, out=x) is x
            assert bits(x).tolist() == bits(result).tolist()

    def test_half_types_are_float32_rounded_once(self, op_type, dtype):
        if np.dtype(dtype).itemsize > 2:
            return
        x = X.astype(dtype)
        expected = run(op_type, x.astype(np.float32)).astype(dtype)
        assert bits(run(op_type, x)).tolist() == bits(expected).tolist()


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("Elu", {"alpha": 0.3}),
        ("Celu", {"alpha": 2.5}),
        ("Celu", {"alpha": -0.5}),
        ("Selu", {"alpha": 1.5, "gamma": 0.5}),
        ("Swish", {"alpha": 0.25}),
        ("Swish", {"alpha": -1.0}),
        ("Gelu", {"approximate": "tanh"}),
        ("com.microsoft::QuickGelu", {"alpha": -0.5}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attributes(op_type, attributes, dtype):
    x = X.astype(dtype)
    x = x[np.abs(x) <= 1e4]
    assert_near(run(op_type, x, **attributes), run(op_type, x, grade="reference", **attributes))


def test_gelu_refuses_an_unknown_form():
    with pytest.raises(ValueError, match="'sine', expected 'none' or 'tanh'"):
        run("Gelu", np.ones(1, np.float32), approximate="sine")


@pytest.mark.parametrize(
    "op_type", ["SwiGLU", "com.microsoft::BiasGelu", "com.microsoft::FastGelu"]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_of_two_inputs(op_type, dtype):
    a = np.linspace(-8, 8, 120).astype(dtype).reshape(4, 30)
    b = np.linspace(2, -2, 30).astype(dtype)
    b = np.tile(b, (4, 1)) if op_type == "SwiGLU" else b
    actual, expected = run(op_type, a, b), run(op_type, a, b, grade="reference")
    assert_near(actual, expected)
    assert np.abs(actual.astype(float)).max() > 1


def test_float32_formulas_are_rounded_once():
    x = np.linspace(-6, 6, 4001).astype(np.float32)
    wide = x.astype(np.float64)
    for op_type, expected in (
        ("Swish", wide / (1 + np.exp(-wide))),
        ("Mish", wide * np.tanh(np.log1p(np.exp(wide)))),
        ("Elu", np.where(wide < 0, np.expm1(wide), wide)),
    ):
        error = np.abs(run(op_type, x) - expected) / np.spacing(np.abs(expected).astype(np.float32))
        assert error[expected != 0].max() <= 0.52


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64])
def test_erf_of_integers_truncates(dtype):
    result = run("Erf", np.array([0, 1, 3, 7], dtype), version=9)
    assert (result.dtype, result.tolist()) == (dtype, [0, 0, 0, 1])


class TestPow:
    @pytest.mark.parametrize("base", DTYPES)
    @pytest.mark.parametrize("exponent", [*DTYPES, np.int32, np.uint8])
    def test_floats_are_near_the_reference(self, base, exponent):
        x = np.linspace(0.1, 4, 50).astype(base).reshape(50, 1)
        y = np.array([0, 1, 2, 3, 5, 7]).astype(exponent)
        assert_near(run("Pow", x, y), run("Pow", x, y, grade="reference"))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_squares_and_cubes_are_products_wherever_they_stand(self, dtype):
        x = (np.linspace(-3, 3, 1001) * 1.1).astype(dtype).reshape(-1, 1)
        x[0] = -np.inf
        result = run("Pow", x, np.array([2, 0.5, 3], dtype))
        assert bits(result[:, 0]).tolist() == bits(x * x).ravel().tolist()
        assert bits(result[:, 2]).tolist() == bits(x * x * x).ravel().tolist()
        assert np.isnan(result[1:500, 1]).all()
        assert bits(run("Pow", x, np.array(2, dtype))).tolist() == bits(x * x).tolist()

    def test_special_values(self):
        x = np.array([0, -0.0, 1, np.nan, -1, 2, -np.inf, -8], np.float32)
        y = np.array([-1, -1, np.nan, 0, np.inf, -np.inf, 3, 1 / 3], np.float32)
        expected = [np.inf, -np.inf, 1, 1, 1, 0, -np.inf, np.nan]
        np.testing.assert_array_equal(run("Pow", x, y), np.float32(expected))
        nan = bits(run("Pow", np.float32([np.nan, -np.nan]), np.float32([2, 3])))
        assert nan.tolist() == [0x7FC00000] * 2

    @pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.uint64])
    def test_integers_are_exact_modulo_their_width(self, dtype):
        x = np.arange(0, 12).astype(dtype).reshape(-1, 1)
        y = np.arange(0, 70, 3).astype(np.int64)
        width = 1 << 8 * np.dtype(dtype).itemsize
        expected = [[pow(int(b), int(e), width) for e in y] for b in x.ravel()]
        unsigned = np.array(expected, np.uint64).astype(dtype)
        np.testing.assert_array_equal(run("Pow", x, y), unsigned)

    def test_negative_powers_and_bases_of_integers(self):
        x = np.array([0, 1, -1, -1, 2, -3, -3], np.int32)
        y = np.array([-1, -2, -2, -3, -1, 3, -1], np.int64)
        expected = [0, 1, 1, -1, 0, -27, 0]
        assert run("Pow", x, y).tolist() == expected
        assert run("Pow", x, y.astype(np.float32)).tolist() == expected

    def test_integers_to_fractions_truncate_and_saturate(self):
        x = np.array([2, 2, 9, 10], np.int32)
        y = np.array([0.5, 40.5, 1.5, -0.5], np.float64)
        assert run("Pow", x, y).tolist() == [1, 2**31 - 1, 27, 0]

    def test_great_exponents_of_integers_are_even(self):
        x, y = np.array([-1, 0, 1, 2], np.int64), np.array(1e30)
        assert run("Pow", x, y).tolist() == [1, 0, 1, 0]

    @pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float32])
    def test_scalars_and_no_elements(self, dtype):
        result = run("Pow", np.array(3, dtype), np.array(2, dtype))
        assert type(result) is np.ndarray
        assert (result.shape, result.dtype, result.item()) == ((), dtype, 9)
        assert run("Pow", np.ones((0, 2), dtype), np.ones(2, dtype)).shape == (0, 2)

    def test_before_version_7(self):
        x, y = np.array([[2.0, 3.0], [4.0, 5.0]], np.float32), np.array([1.0, 2.0], np.float32)
        result = run("Pow", x, y, version=1, broadcast=1, axis=0)
        np.testing.assert_array_equal(result, [[2, 3], [16, 25]])

    def test_destination_may_be_an_input(self):
        for position in (0, 1):
            inputs = [np.array([2, 3, 4], np.float32), np.array([3, 2, 0.5], np.float32)]
            assert run("Pow", *inputs, out=inputs[position]) is inputs[position]
            np.testing.assert_array_equal(inputs[position], [8, 9, 2])


def test_operators_are_the_functions():
    x = np.linspace(0.1, 0.9, 100).astype(np.float32)
    for op_type in ("Exp", "Log", "Tanh", "Sigmoid", "Softplus", "Sin", "Acos", "Atanh", "Erf"):
        expected = getattr(exact_functions, op_type.upper())(x)
        assert run(op_type, x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("op_type", ["Gelu", "HardSwish", "Mish", "Swish"])
def test_what_fusion_forms_is_computed_alike(op_type):
    x = np.linspace(-9, 9, 1001).astype(np.float32)
    assert run(f"foldline::{op_type}", x, version=1).tobytes() == run(op_type, x).tobytes()


def test_known_values():
    half = np.array([0.5], np.float64)
    assert run("Gelu", half)[0] == pytest.approx(0.25 * (1 + math.erf(math.sqrt(0.125))), rel=1e-15)
    assert run("Mish", half)[0] == pytest.approx(
        0.5 * math.tanh(math.log1p(math.exp(0.5))), rel=1e-15
    )
    assert run("Gelu", np.array([-0.0], np.float32)).tobytes() == np.float32(-0.0).tobytes()
    assert run("Mish", np.array([-np.inf]))[0] == 0
    assert np.isnan(run("Swish", np.array([-np.inf])))
