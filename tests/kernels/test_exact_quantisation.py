"""Quantising and dequantising in exact mode: as fast mode has it, and NaN is settled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels import exact_quantisation as exact
from foldline.kernels import quantisation as reference
from foldline.support.dtypes import BY_NAME


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) * 40


@pytest.mark.parametrize(
    "target", ["uint8", "int8", "uint16", "int16", "int4", "uint4", "float8e4m3fn"]
)
@pytest.mark.parametrize("case", ["tensor", "axis", "blocks"])
def test_values(target: str, case: str) -> None:
    x = numbers(4, 6)
    shape, attributes = {
        "tensor": ((), {}),
        "axis": ((6,), {"axis": 1}),
        "blocks": ((4, 2), {"axis": 1, "block_size": 3}),
    }[case]
    scale = np.full(shape, 0.75, np.float32)
    zero = np.full(shape, 3).astype(BY_NAME[target].numpy)
    if target == "float8e4m3fn":
        zero = np.zeros(shape).astype(BY_NAME[target].numpy)
    given: dict[str, Any] = attributes
    found = exact.quantize_linear(x, scale, zero, **given)
    expected = reference.quantize_linear(x, scale, zero, **given)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()
    back = exact.dequantize_linear(found, scale, zero, **given)
    assert back.tobytes() == reference.dequantize_linear(found, scale, zero, **given).tobytes()


def test_nan_and_infinities() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -np.float32(np.nan)], np.float32)
    scale = np.asarray(np.float32(0.5))
    assert exact.quantize_linear(x, scale, np.asarray(np.uint8(7))).tolist() == [0, 255, 0, 0]
    assert exact.quantize_linear(x, scale, np.asarray(np.int8(7))).tolist() == [0, 127, -128, 0]


def test_ties_go_to_even() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5], np.float32)
    found = exact.quantize_linear(x, np.asarray(np.float32(1)), np.asarray(np.int8(0)))
    assert found.tolist() == [0, 2, 2, 0]


@pytest.mark.parametrize("x", [numbers(5, 3), np.zeros((2, 2), np.float32), np.float32([3, 5])])
def test_dynamic(x: np.ndarray) -> None:
    found, expected = (module.dynamic_quantize_linear(x) for module in (exact, reference))
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_scaled_totals() -> None:
    total = np.array([[1000, -1000], [3, 1 << 30]], np.int32)
    multiplier, zero = np.float32([0.1, 0.2]), np.asarray(np.uint8(128))
    found = exact.quantised(total, multiplier, zero)
    assert found.tobytes() == reference.quantised(total, multiplier, zero).tobytes()
    scalar = exact.quantised(np.asarray(np.int32(5)), np.float32([2]), zero)
    assert (scalar.shape, scalar.item()) == ((), 138)
