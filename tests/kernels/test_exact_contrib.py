"""Products of com.microsoft in exact mode: the values of fast mode, their parts, the one NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.contrib_nbits import n_bits_weights
from foldline.kernels.exact_arithmetic import relu
from foldline.kernels.exact_contrib import (
    fused_conv,
    fused_gemm,
    fused_matmul,
    matmul_n_bits,
)
from foldline.kernels.exact_conv import conv
from foldline.kernels.exact_matmul import gemm, matmul
from tests.kernels.both_modes import Case, agree, codes, has_the_one_nan, numbers, scalar


def n_bits(size: int, bits: int = 4) -> list[Any]:
    blocks = -(-size // 16)
    return [numbers(2, size), codes(6, blocks, 2 * bits, dtype=np.uint8), numbers(6 * blocks)]


CASES: dict[str, Case] = {
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
    "bits": ("MatMulNBits", n_bits(40), {"K": 40, "N": 6, "block_size": 16}),
    "bits, zeros": (
        "MatMulNBits",
        [*n_bits(40, 8)[:3], codes(6, 3, dtype=np.uint8), None, numbers(6)],
        {"K": 40, "N": 6, "block_size": 16, "bits": 8},
    ),
    "bits, zeros of floats": (
        "MatMulNBits",
        [*n_bits(40)[:3], numbers(6, 3)],
        {"K": 40, "N": 6, "block_size": 16},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    agree(CASES[case])


@pytest.mark.parametrize("case", [case for case in CASES if "quantised" not in case])
def test_nan(case: str) -> None:
    has_the_one_nan(CASES[case])


def test_they_are_what_their_parts_are() -> None:
    a, b, c = numbers(3, 7), numbers(7, 4), numbers(4)
    assert fused_matmul(a, b).tobytes() == matmul(a, b).tobytes()
    assert fused_gemm(a, b, c, activation="Relu").tobytes() == relu(gemm(a, b, c)).tobytes()
    x, w = numbers(1, 3, 5, 5), numbers(2, 3, 3, 3)
    assert fused_conv(x, w, activation="Relu").tobytes() == relu(conv(x, w)).tobytes()


def test_an_unknown_activation() -> None:
    with pytest.raises(ValueError, match="unknown activation 'Cosine'"):
        fused_gemm(numbers(2, 3), numbers(3, 2), activation="Cosine")


def test_a_product_of_few_bits_is_that_of_its_weights() -> None:
    a, b, scales = n_bits(40)
    shape = {"K": 40, "N": 6, "block_size": 16}
    weights = n_bits_weights(b, scales, None, (6, 40), 16, 4)
    assert matmul_n_bits(a, b, scales, **shape).tobytes() == matmul(a, weights).tobytes()
    half = matmul_n_bits(a.astype(np.float16), b, scales.astype(np.float16), **shape)
    assert half.dtype == np.float16
    with pytest.raises(ValueError, match="g_idx and weight_prepacked"):
        matmul_n_bits(a, b, scales, weight_prepacked=1, **shape)
