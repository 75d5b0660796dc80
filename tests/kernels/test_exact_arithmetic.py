"""Elementwise arithmetic in exact mode: zeros, NaN bits, half types, values of fast mode."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.registry import compute, find_kernel

INF, NAN = np.inf, np.nan
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
ONE_NAN = 0x7FC00000


def exact(op_type: str, *inputs: Any, since: int = 20, **attributes: Any) -> np.ndarray:
    entry = find_kernel("", op_type, since, ["exact"])
    assert entry is not None
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **attributes)


def reference(op_type: str, *inputs: Any, since: int = 20, **attributes: Any) -> np.ndarray:
    entry = find_kernel("", op_type, since, ["reference"])
    assert entry is not None
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **attributes)


def odd() -> np.ndarray:
    words = [0x7FC00001, 0xFFC00000, 0x7F800000, 0xFF800000, 0x80000000, 0, 1, 0x807FFFFF]
    return np.array(words, np.uint32).view(np.float32)


UNARY = {
    "Abs": {},
    "Neg": {},
    "Sign": {},
    "Ceil": {},
    "Floor": {},
    "Round": {},
    "Sqrt": {},
    "Reciprocal": {},
    "Relu": {},
    "LeakyRelu": {"alpha": 0.1},
    "ThresholdedRelu": {"alpha": 0.5},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "HardSwish": {},
    "Softsign": {},
    "Shrink": {"lambd": 1.0, "bias": 0.5},
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op_type", UNARY)
def test_unary(op_type: str, dtype: Any) -> None:
    values = np.array([-INF, -3.7, -0.5, -0.0, 0.0, 0.5, 2.5, INF, NAN], np.float32).astype(dtype)
    found = exact(op_type, values, **UNARY[op_type])
    expected = reference(op_type, values, **UNARY[op_type])
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("op_type", UNARY)
def test_a_nan_result_is_the_one_nan(op_type: str) -> None:
    found = exact(op_type, odd(), **UNARY[op_type])
    assert (found[np.isnan(found)].view(np.uint32) == ONE_NAN).all()


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Mod"])
def test_binary(op_type: str) -> None:
    a, b = (x.reshape(-1) for x in np.meshgrid(odd(), odd()))
    given: dict[str, Any] = {"fmod": 1} if op_type == "Mod" else {}
    found, expected = exact(op_type, a, b, **given), reference(op_type, a, b, **given)
    np.testing.assert_array_equal(found, expected)
    assert (found[np.isnan(found)].view(np.uint32) == ONE_NAN).all()
    assert exact(op_type, a, b, **given).tobytes() == found.tobytes()


@pytest.mark.parametrize("op_type", ["Add", "Mul"])
def test_the_order_of_operands_does_not_matter(op_type: str) -> None:
    a, b = (x.reshape(-1) for x in np.meshgrid(odd(), odd()))
    assert exact(op_type, a, b).tobytes() == exact(op_type, b, a).tobytes()


def test_old_versions_broadcast_from_an_axis() -> None:
    a, b = np.ones((2, 3, 4), np.float32), np.arange(3, dtype=np.float32)
    found = exact("Add", a, b, since=6, axis=1, broadcast=1)
    np.testing.assert_array_equal(found, reference("Add", a, b, since=6, axis=1, broadcast=1))


def test_which_zero_is_the_greater_one() -> None:
    plus, minus = np.zeros(40, np.float32), -np.zeros(40, np.float32)
    for a, b in ((plus, minus), (minus, plus)):
        assert not np.signbit(exact("Max", a, b)).any()
        assert np.signbit(exact("Min", a, b)).all()
    assert np.signbit(exact("Max", minus, minus)).all()
    assert not np.signbit(exact("Relu", minus)).any()
    clipped = exact("Clip", minus, np.float32(0).reshape(()), np.float32(1).reshape(()))
    assert not np.signbit(clipped).any()


def test_clip() -> None:
    x = np.array([-2, 0.5, 3, NAN], np.float32)
    low, high = np.asarray(np.float32(-1)), np.asarray(np.float32(1))
    assert exact("Clip", x, low, high)[:3].tolist() == [-1, 0.5, 1]
    assert exact("Clip", x, high, low)[:3].tolist() == [-1, -1, -1]
    assert exact("Clip", x, None, high)[:3].tolist() == [-2, 0.5, 1]
    assert exact("Clip", x, since=6, min=0.0)[:3].tolist() == [0, 0.5, 3]
    assert exact("Clip", odd()).tobytes() == odd().tobytes()
    assert exact("Clip", np.array([-5, 5], np.int8), np.asarray(np.int8(-1))).tolist() == [-1, 5]


def test_variadic() -> None:
    a, b, c = np.float32([1, -2]), np.float32([[3], [NAN]]), np.float32([0.5, 0.25])
    for op_type in ("Max", "Min", "Sum", "Mean"):
        found = exact(op_type, a, b, c)
        np.testing.assert_array_equal(found, reference(op_type, a, b, c))
        assert exact(op_type, odd()).tobytes() == odd().tobytes()  # nothing is computed
    assert exact("Max", np.int8([1, 5]), np.int8([3, 2])).tolist() == [3, 5]


def test_integers_wrap_around() -> None:
    a, b = np.int8([127, -128, 7]), np.int8([1, -1, 0])
    assert exact("Add", a, b).tolist() == [-128, 127, 7]
    assert exact("Div", a, b)[:2].tolist() == [127, -128]


def test_cumulative_sums() -> None:
    x = np.float32([1e8, 1, -1e8, NAN])
    assert exact("CumSum", x, np.array(0))[:3].tolist() == [1e8, 1e8, 0]
    assert exact("CumSum", x, np.array(0)).view(np.uint32)[3] == ONE_NAN
    assert exact("CumProd", np.float32([2, 3]), np.array(0), since=26).tolist() == [2, 6]


def test_range() -> None:
    start, limit, delta = (np.asarray(np.float32(v)) for v in (1, 2, 0.3))
    found = exact("Range", start, limit, delta)
    assert found.tolist() == [np.float32(1) + np.float32(i) * np.float32(0.3) for i in range(4)]


def test_results_may_be_written_where_they_are_wanted() -> None:
    x = odd()
    out = np.empty_like(x)
    entry = find_kernel("", "Add", 14, ["exact"])
    assert entry is not None
    assert entry.function(x, x, out=out) is out
    assert out.tobytes() == exact("Add", x, x).tobytes()
    assert entry.function(x, x, out=x) is x
    assert x.tobytes() == out.tobytes()
