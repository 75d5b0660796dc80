"""MatMul, Gemm and the integer products in exact mode."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.exact_matmul import gemm, gemm_6, matmul, matmul_integer, qlinear_matmul
from foldline.kernels.exact_products import product
from foldline.kernels.quantised_matmul import matmul_integer_reference, qlinear_matmul_reference


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_widen_and_round_once(dtype: Any) -> None:
    a, b, c = (v.astype(dtype) for v in (numbers(3, 9), numbers(9, 4), numbers(4)))
    wide = [v.astype(np.float32) for v in (a, b, c)]
    assert matmul(a, b).tobytes() == product(*wide[:2]).astype(dtype).tobytes()
    assert gemm(a, b, c, alpha=0.5).tobytes() == gemm(*wide, alpha=0.5).astype(dtype).tobytes()


def test_gemm_rounds_step_by_step() -> None:
    a, b, c = numbers(4, 6), numbers(6, 5), numbers(5)
    alpha, beta = np.float32(0.3), np.float32(1.7)
    expected = product(a, b) * alpha + c * beta
    found = gemm(a, b, c, alpha=float(alpha), beta=float(beta))
    assert found.tobytes() == expected.tobytes()
    turned = gemm(
        a.T.copy(), b.T.copy(), c, alpha=float(alpha), beta=float(beta), transA=1, transB=1
    )
    assert turned.tobytes() == expected.tobytes()
    assert gemm(a, b).tobytes() == matmul(a, b).tobytes()


def test_gemm_of_version_6_checks_shapes() -> None:
    a, b = numbers(4, 6), numbers(6, 5)
    assert gemm_6(a, b, numbers(5), broadcast=1).tobytes() == gemm(a, b, numbers(5)).tobytes()
    with pytest.raises(ValueError, match="broadcast is 0"):
        gemm_6(a, b, numbers(5))


def test_gemm_of_integers() -> None:
    a = np.array([[1, 2], [3, 4]], np.int32)
    assert gemm(a, a, a, alpha=0.5, beta=2.0).tolist() == [[5, 9], [13, 19]]


def test_integers() -> None:
    generator = np.random.default_rng(1)
    a = generator.integers(0, 256, (3, 40), dtype=np.uint8)
    b = generator.integers(-128, 128, (40, 5), dtype=np.int8)
    zeros = np.array([3, 5, 250], np.uint8), generator.integers(-9, 9, 5).astype(np.int8)
    np.testing.assert_array_equal(
        matmul_integer(a, b, *zeros), matmul_integer_reference(a, b, *zeros)
    )
    scale = np.asarray(np.float32(0.03))
    given = (
        a,
        scale,
        zeros[0],
        b,
        scale,
        zeros[1],
        np.asarray(np.float32(2)),
        np.asarray(np.int8(1)),
    )
    np.testing.assert_array_equal(qlinear_matmul(*given), qlinear_matmul_reference(*given))
