"""Operators of com.microsoft on 8-bit integers in exact mode: the codes of fast mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.registry import GRADES, compute, find_kernel


def codes(*shape: int, dtype: Any = np.uint8) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(info.min, info.max, shape, dtype)


def scalar(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(dtype(value))


SCALE, POINT = scalar(0.125), scalar(100, np.uint8)
OUT = scalar(0.0625), scalar(7, np.uint8)
X = codes(2, 3, 4, 5)
POOL: dict[str, Any] = {"kernel_shape": [2, 2], "pads": [1, 0, 1, 0]}

CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("QuantizeLinear", [X.astype(np.float32), SCALE, POINT], {}),
    ("DequantizeLinear", [X, SCALE, POINT], {}),
    ("QLinearWhere", [X > 99, X, SCALE, POINT, X[:1], OUT[0], OUT[1], *OUT], {}),
    ("QLinearAdd", [X, SCALE, POINT, X[:1], OUT[0], None, *OUT], {}),
    ("QLinearMul", [X, SCALE, None, X[:1], OUT[0], POINT, OUT[0]], {}),
    ("QLinearSigmoid", [X, SCALE, POINT, scalar(1 / 256)], {}),
    ("QLinearSigmoid", [X.view(np.int8), SCALE, scalar(3, np.int8), scalar(1 / 128)], {}),
    ("QLinearLeakyRelu", [X, SCALE, POINT, *OUT], {"alpha": 0.3}),
    ("QLinearConcat", [*OUT, X, SCALE, POINT, X, SCALE, scalar(9, np.uint8)], {"axis": 1}),
    ("QLinearSoftmax", [X, SCALE, POINT, scalar(1 / 256), OUT[1]], {"opset": 13}),
    ("QLinearSoftmax", [X, SCALE, POINT, scalar(1 / 256), OUT[1]], {"opset": 11, "axis": 2}),
    ("QLinearGlobalAveragePool", [X, SCALE, POINT, *OUT], {}),
    ("QLinearGlobalAveragePool", [X, SCALE, POINT, *OUT], {"channels_last": 1}),
    ("QLinearAveragePool", [X, SCALE, POINT, *OUT], POOL),
    ("QLinearAveragePool", [X, SCALE, POINT, *OUT], {**POOL, "channels_last": 1}),
    (
        "QLinearConv",
        [X, SCALE, POINT, codes(4, 5, 2, 2, dtype=np.int8), SCALE, scalar(0, np.int8), *OUT],
        {"channels_last": 1},
    ),
    (
        "QLinearConv",
        [X, SCALE, POINT, codes(4, 3, 2, 2, dtype=np.int8), SCALE, scalar(0, np.int8), *OUT],
        {},
    ),
    ("NhwcMaxPool", [X], POOL),
]


@pytest.mark.parametrize(("op_type", "inputs", "attributes"), CASES)
def test_codes(op_type: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    found, expected = (
        compute(entry, inputs, **attributes)
        for mode in GRADES.values()
        if (entry := find_kernel("com.microsoft", op_type, 1, mode)) is not None
    )
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.dtype == np.float32:
        assert found.tobytes() == expected.tobytes()
        return
    apart = np.abs(found.astype(np.int32) - expected.astype(np.int32))
    # A sum or an exponential that rounds the other way may cross the edge of a code.
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= found.size // 50
