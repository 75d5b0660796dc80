"""Accuracy, special values, and the same bits wherever and however an element is computed."""

import ast
import json
import math
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from foldline.kernels import exact_functions as functions
from foldline.kernels.exact_steps import TILE
from tests.kernels.exact_digests import NAMES, digests
from tests.kernels.high_precision import exact

ROOT = Path(__file__).resolve().parents[2]
UNARY = [name for name in NAMES if name != "POWER"]
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

IN_FLOAT64 = {
    "EXP": np.exp,
    "EXPM1": np.expm1,
    "EXP2": np.exp2,
    "SIGMOID": lambda x: np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x))),
    "TANH": np.tanh,
    "SINH": np.sinh,
    "COSH": np.cosh,
    "LOG": np.log,
    "LOG1P": np.log1p,
    "LOG2": np.log2,
    "SOFTPLUS": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "ASINH": np.arcsinh,
    "ACOSH": np.arccosh,
    "ATANH": np.arctanh,
    "SIN": np.sin,
    "COS": np.cos,
    "TAN": np.tan,
    "ASIN": np.arcsin,
    "ACOS": np.arccos,
    "ATAN": np.arctan,
    "ERF": lambda x: np.array([math.erf(v) for v in x]),
    "SQRT": np.sqrt,
}
"""Good to about 1e-15, a ten millionth of an ulp of float32."""


@pytest.mark.parametrize("name", UNARY)
def test_float32_results_are_within_0_51_ulp_over_all_bit_patterns(name):
    x = np.arange(0, 1 << 32, 60_013, dtype=np.uint64).astype(np.uint32).view(np.float32)
    expected = IN_FLOAT64[name](x.astype(np.float64))
    actual = getattr(functions, name)(x)
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    finite = np.isfinite(expected) & (np.abs(expected) < np.finfo(np.float32).max)
    other = ~finite & ~np.isnan(expected)
    np.testing.assert_array_equal(actual[other], expected[other].astype(np.float32))
    nearest = np.abs(expected[finite]).astype(np.float32)
    below = np.where(nearest > np.abs(expected[finite]), np.nextafter(nearest, 0), nearest)
    error = np.abs(actual[finite].astype(np.float64) - expected[finite]) / np.spacing(below)
    assert error.max() <= 0.51
    np.testing.assert_array_equal(np.signbit(actual[finite]), np.signbit(expected[finite]))


def points(name, count=60):
    """float64 arguments within the domain, some of them near what is hard."""
    draw = np.random.default_rng(len(name)).uniform
    small = 10.0 ** draw(-25, 0, count) * np.where(draw(-1, 1, count) < 0, -1, 1)
    wide = {"EXP2": 1020}.get(name, 700)
    match name:
        case "EXP" | "EXPM1" | "EXP2" | "SIGMOID" | "SOFTPLUS" | "TANH" | "SINH" | "COSH":
            groups = draw(-wide, wide, count), draw(-2, 2, count), draw(-23, 23, count), small
        case "LOG" | "LOG2" | "SQRT":
            groups = 10.0 ** draw(-300, 300, count), draw(0.5, 2, 2 * count), 1 + small / 8
        case "LOG1P":
            groups = 10.0 ** draw(-25, 300, count), draw(-0.99, 1, 2 * count), small * 0.9
        case "ASIN" | "ACOS" | "ATANH":
            groups = draw(-1, 1, 2 * count), small * 0.9, 1 - np.abs(small[np.abs(small) > 1e-15])
        case "ACOSH":
            groups = 10.0 ** draw(0, 150, count), draw(1, 3, count), 1 + np.abs(small)
        case "SIN" | "COS" | "TAN":
            multiples = np.rint(draw(-1e5, 1e5, count)) * (np.pi / 2)
            groups = draw(-8, 8, count), draw(-1e5, 1e5, count), multiples, 10.0 ** draw(5, 300, 20)
        case _:
            groups = draw(-6, 6, count), draw(-1.5, 1.5, 2 * count), small
    return np.concatenate(groups)


def ulps(actual, expected):
    """The distance of a float64 from a Decimal."""
    size = abs(float(expected))
    nearest = np.nextafter(size, 0) if Decimal(size) > abs(expected) else size
    return float(abs(Decimal(float(actual)) - expected) / Decimal(float(np.spacing(nearest))))


@pytest.mark.parametrize("name", UNARY)
def test_float64_results_are_within_2_ulp(name):
    x = points(name)
    actual = getattr(functions, name)(x)
    assert actual.dtype == np.float64
    errors = [ulps(a, exact(name, v)) for a, v in zip(actual, x, strict=True)]
    assert max(errors) <= 1.5


def test_float64_powers_are_within_2_ulp():
    draw = np.random.default_rng(0).uniform
    x = np.concatenate([2.0 ** draw(-40, 40, 100), 1 + draw(-1e-2, 1e-2, 100)])
    y = draw(-1000, 1000, 200) / np.log2(x)
    actual = functions.POWER(x, y)
    errors = [ulps(a, exact("POWER", *v)) for a, *v in zip(actual, x, y, strict=True)]
    assert max(errors) <= 1


def test_float32_powers_are_within_0_51_ulp():
    draw = np.random.default_rng(0).uniform
    x = np.concatenate([2.0 ** draw(-20, 20, 5000), draw(0.99, 1.01, 5000)]).astype(np.float32)
    y = (draw(-125, 125, 10000) / np.log2(x.astype(np.float64))).astype(np.float32)
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    actual = functions.POWER(x, y)
    expected = np.power(x.astype(np.float64), y.astype(np.float64))
    spacing = np.spacing(expected.astype(np.float32))
    assert (np.abs(actual - expected) / spacing).max() <= 0.51


@BOTH
def test_special_powers_are_those_of_ieee_754(dtype):
    values = [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, np.inf, -np.inf, np.nan, 1e30, 2.0**53]
    x, y = np.meshgrid(np.array(values, dtype), np.array(values, dtype))
    actual, expected = functions.POWER(x, y), np.power(x, y)
    np.testing.assert_allclose(actual, expected, rtol=3e-7 if dtype == np.float32 else 1e-15)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[known], np.signbit(expected)[known])


@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_every_nan_becomes_the_quiet_one(name, dtype):
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, -2, 2], dtype)
    x.view(bits)[1] |= 0x123
    result = getattr(functions, name)(x)
    assert np.isnan(result[:2]).all()
    quiet = 0x7FC00000 if dtype == np.float32 else 0x7FF8000000000000
    assert set(result.view(bits)[np.isnan(result)].tolist()) == {quiet}


LIMITS = {
    "EXP": (0, 1, 1, np.inf),
    "EXPM1": (-1, -0.0, 0.0, np.inf),
    "EXP2": (0, 1, 1, np.inf),
    "SIGMOID": (0, 0.5, 0.5, 1),
    "TANH": (-1, -0.0, 0.0, 1),
    "SINH": (-np.inf, -0.0, 0.0, np.inf),
    "COSH": (np.inf, 1, 1, np.inf),
    "LOG": (np.nan, -np.inf, -np.inf, np.inf),
    "LOG1P": (np.nan, -0.0, 0.0, np.inf),
    "LOG2": (np.nan, -np.inf, -np.inf, np.inf),
    "SOFTPLUS": (0, math.log(2), math.log(2), np.inf),
    "ASINH": (-np.inf, -0.0, 0.0, np.inf),
    "ACOSH": (np.nan, np.nan, np.nan, np.inf),
    "ATANH": (np.nan, -0.0, 0.0, np.nan),
    "SIN": (np.nan, -0.0, 0.0, np.nan),
    "COS": (np.nan, 1, 1, np.nan),
    "TAN": (np.nan, -0.0, 0.0, np.nan),
    "ASIN": (np.nan, -0.0, 0.0, np.nan),
    "ACOS": (np.nan, math.pi / 2, math.pi / 2, np.nan),
    "ATAN": (-math.pi / 2, -0.0, 0.0, math.pi / 2),
    "ERF": (-1, -0.0, 0.0, 1),
    "SQRT": (np.nan, -0.0, 0.0, np.inf),
}
"""At -inf, -0, 0 and inf."""


@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_limits_and_signs_of_zero(name, dtype):
    result = getattr(functions, name)(np.array([-np.inf, -0.0, 0.0, np.inf], dtype))
    expected = np.array(LIMITS[name], dtype)
    np.testing.assert_array_equal(result, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(expected)[known])


@BOTH
@pytest.mark.parametrize(
    "name", ["EXPM1", "TANH", "SINH", "LOG1P", "ASINH", "ATANH", "SIN", "TAN", "ASIN", "ATAN"]
)
def test_subnormal_numbers_are_their_own_functions(name, dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([tiny, -tiny, 3 * tiny, np.finfo(dtype).tiny], dtype)
    np.testing.assert_array_equal(getattr(functions, name)(x), x)


def test_the_ends_of_domains():
    for dtype in (np.float32, np.float64):
        ends = np.array([-1, 1], dtype)
        assert functions.ATANH(ends).tolist() == [-np.inf, np.inf]
        assert functions.LOG1P(ends[:1]).tolist() == [-np.inf]
        assert functions.ACOSH(ends[1:]).tolist() == [0]
        assert functions.ACOS(ends).tolist() == [dtype(math.pi), 0]
        assert functions.ASIN(ends).tolist() == [-dtype(math.pi / 2), dtype(math.pi / 2)]
        assert functions.LOG2(2.0 ** np.arange(-126, 127, dtype=dtype)).tolist() == list(
            range(-126, 127)
        )


@pytest.mark.parametrize("bits", range(1, 64, 9))
def test_logarithms_of_subnormal_numbers(bits):
    x = np.array([bits * 5e-324, bits * 1e-310])
    errors = [ulps(a, exact("LOG", v)) for a, v in zip(functions.LOG(x), x, strict=True)]
    assert max(errors) <= 1


def neighbours(x, count):
    """The floats nearest to `x`, ascending."""
    bits = np.array(x).view(f"i{x.itemsize}") + np.arange(-count, count + 1)
    found = bits.astype(f"i{x.itemsize}").view(x.dtype)
    return found if x > 0 else found[::-1]


@pytest.mark.parametrize(
    "x",
    [
        *map(np.float32, (88.722839, -87.336545, -103.27893, -103.97208, 0.34657359, 1e-30, 1.0)),
        *map(np.float64, (709.782712893384, -708.3964185322641, -745.1332191019411, 1.0397207)),
    ],
)
def test_exp_is_monotonic_around_thresholds(x):
    y = functions.EXP(neighbours(x, 2000))
    assert not (y[1:] < y[:-1]).any()


def test_overflow_and_underflow_of_exp_are_where_they_belong():
    greatest, least = np.float32(88.72283), np.float32(-103.972076)
    x = np.array([greatest, np.nextafter(greatest, np.float32(99))], np.float32)
    assert np.isfinite(functions.EXP(x)).tolist() == [True, False]
    x = np.array([least, np.nextafter(least, np.float32(-999))], np.float32)
    assert (functions.EXP(x) > 0).tolist() == [True, False]
    x = np.array([709.782712893384, 709.7827128933841])
    assert np.isfinite(functions.EXP(x)).tolist() == [True, False]
    x = np.array([-745.1332191019411, -745.1332191019412])
    assert functions.EXP(x).tolist() == [5e-324, 0]


@pytest.mark.parametrize("k", [1, 2, 11, 355, 573_204, 2**40 + 1])
def test_sines_of_great_arguments(k):
    """Where the reduction loses most: near multiples of pi, and beyond the greatest float32."""
    for x in (np.float64(k * math.pi), np.float64(k * 2.0**900)):
        assert ulps(functions.SIN(np.array([x]))[0], exact("SIN", x)) <= 1
        assert ulps(functions.TAN(np.array([x]))[0], exact("TAN", x)) <= 1
    x = np.float32(k * 2.0**80)
    expected = float(exact("SIN", x))
    error = abs(float(functions.SIN(np.array([x]))[0]) - expected)
    assert error <= 0.51 * np.spacing(np.float32(abs(expected)))


@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_an_element_does_not_depend_on_its_surroundings(name, dtype):
    x = np.linspace(-9, 9, 2 * TILE + 7).astype(dtype)
    x[::1001] *= 1e7
    function = getattr(functions, name)
    call = (lambda v: function(v, np.abs(v) + 1)) if name == "POWER" else function
    whole = call(x).tobytes()
    for view, back in ((x[::-1], slice(None, None, -1)), (x.reshape(1, -1).T, (slice(None), 0))):
        assert call(view)[back].tobytes() == whole
    assert np.concatenate([call(x[:5]), call(x[5:6]), call(x[6:])]).tobytes() == whole
    assert call(x[::3]).tobytes() == np.frombuffer(whole, dtype)[::3].tobytes()


GOLDEN = {
    "ACOS": ["f8dcb6776731460f", "b28cc2f9540ed101"],
    "ACOSH": ["006483e742be295c", "d014b26a5ef9e015"],
    "ASIN": ["63d18d30173e602b", "294bd493e40197e0"],
    "ASINH": ["9df0e4ff2d97a250", "04e65963bf153c27"],
    "ATAN": ["226f2f1acef0d695", "591442db5a314e45"],
    "ATANH": ["26f5145de52a4fab", "9fed55bdd1fc2bbb"],
    "COS": ["9c3504561730a663", "d79c142c05df1b67"],
    "COSH": ["fd92f3b912cf850b", "19b5d5b8f8f113d2"],
    "ERF": ["9db2449c84750513", "98a8b4e11b7341d9"],
    "EXP": ["27c0e1ea88fa5f87", "836bf901b2378fd5"],
    "EXP2": ["dc4474acb319d7bf", "b2ea3522b59b2c04"],
    "EXPM1": ["963969cb4492bf0c", "ca5c3ec2ca111640"],
    "LOG": ["918396befdc92a0e", "58b42f14a7e8d2df"],
    "LOG1P": ["92997cf83a228489", "40bcc6909ee69b18"],
    "LOG2": ["a9d9c2db039e4ed0", "d309826069c60757"],
    "POWER": ["6d2a313720138b88", "2a809e6ae77dffe1"],
    "SIGMOID": ["77714dcdc88830a8", "a5277f1f128c6442"],
    "SIN": ["4f546e619c5139ff", "c445312fcf3cb2c9"],
    "SINH": ["526f08a860c7da54", "94c6e94f73d853d6"],
    "SOFTPLUS": ["892989c840e4e476", "b927f063b5fabc46"],
    "SQRT": ["72c97e05412ecc52", "739f55b2f590e43a"],
    "TAN": ["8b770a217f36931a", "235ce3cebcc67e0c"],
    "TANH": ["02e75a36b13ebf52", "868b9e727ff39bc1"],
}
"""The digests of results on the grid: these bits are exact mode's promise."""


def test_bits_are_those_they_have_always_been():
    assert digests() == GOLDEN


def test_bits_are_the_same_without_vector_instructions():
    wide = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    if not wide:
        pytest.skip("NumPy uses no more than its baseline here")
    check = "import numpy as np; print(np._core._multiarray_umath.__cpu_features__)"
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(wide)}
    features, found = (
        subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for arguments in (("-c", check), ("-m", "tests.kernels.exact_digests"))
    )
    assert not any(ast.literal_eval(features)[name] for name in wide)
    assert json.loads(found) == GOLDEN


MODULES = "steps exponential logarithm trigonometric inverse error functions".split()
OF_NUMPY = {
    *("add", "multiply", "sqrt", "rint", "abs", "copysign", "minimum", "maximum", "not_equal"),
    *("where", "copyto", "broadcast_to", "broadcast_shapes", "empty", "zeros_like", "array"),
    *("dtype", "float64", "int64", "uint64", "bool_", "nan"),
}
"""What NumPy computes with these is defined to the bit."""


@pytest.mark.parametrize("module", MODULES)
def test_source_uses_only_operations_that_are_defined_to_the_bit(module):
    source = (ROOT / "kernels" / f"exact_{module}.py").read_text()
    for node in ast.walk(ast.parse(source)):
        assert not isinstance(node, ast.MatMult)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np":
            assert node.attr in OF_NUMPY, ast.unparse(node)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "math":
            assert node.attr in {"inf", "nan", "sqrt", "ldexp"}, ast.unparse(node)
