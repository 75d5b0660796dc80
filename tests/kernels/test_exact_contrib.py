"""Operators of com.microsoft in exact mode: the values of fast mode, rows, the one NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.exact_arithmetic import relu
from foldline.kernels.exact_contrib import (
    fused_conv,
    fused_gemm,
    fused_matmul,
    skip_layer_normalization,
)
from foldline.kernels.exact_conv import conv
from foldline.kernels.exact_matmul import gemm, matmul
from foldline.kernels.exact_normalisation import layer_normalization
from foldline.kernels.registry import GRADES, compute, find_kernel

MICROSOFT = "com.microsoft"


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def codes(*shape: int, dtype: Any = np.int8) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(info.min, info.max, shape, dtype)


def scalar(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(dtype(value))


def run(mode: str, op_type: str, *inputs: Any, domain: str = MICROSOFT, **attributes: Any) -> Any:
    entry = find_kernel(domain, op_type, 1, GRADES[mode])
    assert entry is not None
    if "output_count" not in entry.reserved:
        attributes.pop("output_count", None)
    with np.errstate(all="ignore"):
        results = compute(entry, inputs, **attributes)
    return results if isinstance(results, tuple) else (results,)


CASES: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "matmul": ("FusedMatMul", [numbers(2, 3, 4), numbers(2, 5, 4)], {"transB": 1, "alpha": 0.5}),
    "batches": (
        "FusedMatMul",
        [numbers(3, 2, 4), numbers(4, 2, 5)],
        {"transBatchA": 1, "transBatchB": 1},
    ),
    "transposed": ("TransposeMatMul", [numbers(4, 3), numbers(4, 5)], {"transA": 1}),
    "gemm": (
        "FusedGemm",
        [numbers(3, 4), numbers(4, 5), numbers(5)],
        {"activation": "LeakyRelu", "activation_alpha": 0.3, "alpha": 0.7},
    ),
    "conv": (
        "FusedConv",
        [numbers(1, 3, 5, 5), numbers(4, 3, 3, 3), numbers(4), numbers(1, 4, 3, 3)],
        {"activation": "Clip", "activation_params": (-0.5, 1.5)},
    ),
    "to float": (
        "MatMulIntegerToFloat",
        [codes(3, 8, dtype=np.uint8), codes(8, 4), scalar(0.1), numbers(4), None, None, numbers(4)],
        {},
    ),
    "dynamic": ("DynamicQuantizeMatMul", [numbers(3, 8), codes(8, 4), scalar(0.02)], {}),
    "float gemm": (
        "QGemm",
        [
            codes(3, 8),
            scalar(0.1),
            scalar(2, np.int8),
            codes(4, 8),
            scalar(0.2),
            scalar(1, np.int8),
        ],
        {"transB": 1, "alpha": 0.5},
    ),
    "quantised gemm": (
        "QGemm",
        [
            *(codes(3, 8), scalar(0.1), scalar(2, np.int8), codes(8, 4), numbers(4) ** 2),
            *(np.zeros(4, np.int8), np.arange(4, dtype=np.int32), scalar(9), scalar(3, np.int8)),
        ],
        {},
    ),
    "lstm": (
        "DynamicQuantizeLSTM",
        [
            *(numbers(4, 2, 3), codes(2, 3, 16), codes(2, 4, 16), numbers(2, 32)),
            *(None, None, None, None, np.full((2,), 0.01, np.float32), np.zeros((2,), np.int8)),
            *(np.full((2,), 0.01, np.float32), np.zeros((2,), np.int8)),
        ],
        {"direction": "bidirectional", "hidden_size": 4},
    ),
    "skip": (
        "SkipLayerNormalization",
        [numbers(2, 3, 8), numbers(2, 3, 8) * 2, numbers(8), numbers(8), numbers(8)],
        {"output_count": 4},
    ),
    "skip simplified": (
        "SkipSimplifiedLayerNormalization",
        [numbers(2, 3, 8), numbers(2, 3, 8) * 2, numbers(8), numbers(8)],
        {"output_count": 4},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    op_type, inputs, attributes = CASES[case]
    found = run("exact", op_type, *inputs, **attributes)
    expected = run("fast", op_type, *inputs, **attributes)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", [case for case in CASES if "quantised" not in case])
def test_nan(case: str) -> None:
    op_type, inputs, attributes = CASES[case]
    given = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
    first = next(x for x in given if x is not None and x.dtype == np.float32)
    first.reshape(-1).view(np.uint32)[0] = 0xFFC00001
    for part in run("exact", op_type, *given, **attributes):
        bits = part[np.isnan(part)].view(np.uint32)
        assert (bits == 0x7FC00000).all()


@pytest.mark.parametrize("count", [1, 2])
def test_simplified_layer_normalisation(count: int) -> None:
    given = (numbers(2, 3, 4), numbers(4))
    found, expected = (
        run(mode, "SimplifiedLayerNormalization", *given, domain="", output_count=count)
        for mode in GRADES
    )
    assert len(found) == len(expected) == count
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_they_are_what_their_parts_are() -> None:
    a, b, c = numbers(3, 7), numbers(7, 4), numbers(4)
    assert fused_matmul(a, b).tobytes() == matmul(a, b).tobytes()
    assert fused_gemm(a, b, c, activation="Relu").tobytes() == relu(gemm(a, b, c)).tobytes()
    x, w = numbers(1, 3, 5, 5), numbers(2, 3, 3, 3)
    assert fused_conv(x, w, activation="Relu").tobytes() == relu(conv(x, w)).tobytes()
    y, *_ = skip_layer_normalization(a, a * 2, b[:, 0], b[:, 1], output_count=1)
    expected, *_ = layer_normalization(a + a * 2, b[:, 0], b[:, 1], epsilon=1e-12)
    assert y.tobytes() == expected.tobytes()


def test_an_unknown_activation() -> None:
    with pytest.raises(ValueError, match="unknown activation 'Cosine'"):
        fused_gemm(numbers(2, 3), numbers(3, 2), activation="Cosine")
