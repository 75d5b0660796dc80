"""The one NaN, the order of zeros, and the integers in the order of floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.exact_bits import (
    canonical,
    canonicalised,
    from_ordered,
    greatest,
    least,
    maximum,
    minimum,
    nan_of,
    ordered,
)

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INF, NAN = np.inf, np.nan


def payloads() -> np.ndarray:
    bits = np.array([0xFFC00000, 0x7FC00001, 0x7F800001, 0xFF812345, 0x7FC00000], np.uint32)
    return bits.view(np.float32)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        (np.float16, "007e"),
        (ml_dtypes.bfloat16, "c07f"),
        (np.float32, "0000c07f"),
        (np.float64, "000000000000f87f"),
    ],
)
def test_the_nan_of_a_type(dtype: Any, bits: str) -> None:
    assert np.asarray(nan_of(np.dtype(dtype))).tobytes().hex() == bits
    made = np.array([1, NAN, -INF], np.float32).astype(dtype)
    made[1] = -made[1]
    assert canonical(made)[1:2].tobytes().hex() == bits
    assert made[0] == 1
    assert made[2] == -INF


def test_payloads_and_signs_vanish() -> None:
    assert (canonical(payloads().copy()).view(np.uint32) == 0x7FC00000).all()


def test_what_is_no_float_is_left_alone() -> None:
    words = np.array(["a", "nan"], object)
    assert canonical(words) is words
    assert canonical(np.array([1, 2])).tolist() == [1, 2]


def test_all_results_of_a_kernel_are_made_canonical() -> None:
    def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -x, np.array([3])

    first, second = canonicalised(both)(payloads())
    assert (first.view(np.uint32) == 0x7FC00000).all()
    assert second.tolist() == [3]


@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_are_ordered_and_nan_wins(dtype: Any) -> None:
    values = np.array([-0.0, 0.0, -1, 1, INF, -INF, NAN], np.float32).astype(dtype)
    a, b = np.meshgrid(values, values)
    high, low = maximum(a, b).astype(np.float64), minimum(a, b).astype(np.float64)
    for i, x in enumerate(values.astype(np.float64)):
        for j, y in enumerate(values.astype(np.float64)):
            if np.isnan(x) or np.isnan(y):
                assert np.isnan(high[j, i])
                assert np.isnan(low[j, i])
                continue
            pair = sorted([(x, not np.signbit(x)), (y, not np.signbit(y))])
            assert (low[j, i], not np.signbit(low[j, i])) == pair[0]
            assert (high[j, i], not np.signbit(high[j, i])) == pair[1]
    assert maximum(a, b).dtype == dtype


@pytest.mark.parametrize("dtype", FLOATS)
def test_integers_in_the_order_of_floats(dtype: Any) -> None:
    values = np.array([-INF, -3.5, -1e-7, -0.0, 0.0, 1e-7, 2, INF, NAN]).astype(dtype)
    keys = ordered(values)
    assert (np.diff(keys.astype(object)) > 0).all()
    assert from_ordered(keys, values.dtype).tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_extremes_over_axes(dtype: Any) -> None:
    x = np.array([[-0.0, 0.0, -2], [NAN, 1, 5]]).astype(dtype)
    assert not np.signbit(greatest(x, (1,))[0])
    assert np.signbit(least(x[:, :2], (1,))[0])
    assert np.isnan(greatest(x, (1,))[1].astype(np.float32))
    assert np.isnan(least(x, (1,))[1].astype(np.float32))
    assert greatest(x, (1,), True).shape == (2, 1)
    assert greatest(np.zeros((0, 2), dtype), (0,)).astype(np.float32).tolist() == [-INF] * 2
    assert least(np.zeros((0, 2), dtype), (0,)).astype(np.float32).tolist() == [INF] * 2


def test_a_single_nan() -> None:
    x = np.array([np.nan, 1], np.float32)
    for found in (greatest(x, None), least(x, None), greatest(x[:1].reshape(()), None)):
        assert isinstance(found, np.ndarray)
        assert found.view(np.uint32) == 0x7FC00000


def test_extremes_of_integers() -> None:
    x = np.array([[3, -7], [2, 9]], np.int8)
    assert greatest(x, None) == 9
    assert least(x, (0,)).tolist() == [2, -7]
    assert greatest(np.zeros((0,), np.int8), None) == -128
    assert least(np.array([True, False]), None) == np.False_


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("choose", [maximum, minimum])
@pytest.mark.parametrize("bound", [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 6.0])
def test_one_bound_is_as_an_array_of_bounds(dtype: Any, choose: Any, bound: float) -> None:
    values = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 6.0, 5.5, 1e-7, -1e-7] * 7
    x = np.array(values, np.float32).astype(dtype)
    one = np.array(bound, np.float32).astype(dtype)
    expected = choose(x, np.full(x.shape, one))
    for found in (choose(x, one), choose(x, one.reshape(1))):
        assert found.dtype == x.dtype
        assert found.tobytes() == expected.tobytes()
    assert choose(x[::2], one).tobytes() == expected[::2].tobytes()
    assert choose(x[3].reshape(()), one).shape == ()


@pytest.mark.parametrize("dtype", FLOATS)
def test_greatest_and_least_do_not_hang_on_the_order(dtype: Any) -> None:
    rows = [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [-1.0, 0.0], [NAN, 0.0], [2.0, -3.0]]
    x = np.array(rows, np.float32).astype(dtype)
    top = np.array([0.0, 0.0, -0.0, 0.0, NAN, 2.0], np.float32).astype(dtype)
    low = np.array([-0.0, -0.0, -0.0, -1.0, NAN, -3.0], np.float32).astype(dtype)
    for given in (x, x[:, ::-1]):
        assert greatest(given, (1,)).tobytes() == top.tobytes()
        assert least(given, (1,)).tobytes() == low.tobytes()
        for row, high, deep in zip(given, top, low, strict=True):
            assert greatest(row, None).tobytes() == high.tobytes()
            assert least(row, None).tobytes() == deep.tobytes()
