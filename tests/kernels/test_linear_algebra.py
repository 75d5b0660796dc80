import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.linear_algebra import det
from foldline.kernels.registry import compute, find_kernel

EINSUM = find_kernel("", "Einsum", 12)


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("ij->ji", [[0, 3], [1, 4], [2, 5]]),
        (" i j -> i ", [3, 12]),
        ("ij->", 15),
        ("ba", [[0, 3], [1, 4], [2, 5]]),
        ("aB", [[0, 3], [1, 4], [2, 5]]),  # upper case sorts first
        ("i...->...", [3, 5, 7]),
        ("...i", [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_notation(equation, expected):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = compute(EINSUM, (x,), equation=equation)
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, np.float32(expected))
    assert not np.shares_memory(result, x)
    out = np.empty(result.shape, np.float32)
    assert compute(EINSUM, (x,), equation=equation, out=out) is out
    np.testing.assert_array_equal(out, np.float32(expected))


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int64, np.uint16]
)
def test_dtypes(dtype):
    a, b, c = (np.arange(4).reshape(2, 2).astype(dtype) for _ in range(3))
    result = compute(EINSUM, (a, b, c), equation="ij,jk,kl->il")
    assert result.dtype == dtype
    assert result.tolist() == [[6, 11], [22, 39]]


def test_halves_are_rounded_once():
    x = np.full(4096, 1, np.float16)
    assert compute(EINSUM, (x, x), equation="i,i->") == 4096


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_det(dtype):
    x = np.asarray([[[1, 2], [3, 4]], [[2, 0], [0, 3]]], dtype)
    result = det(x)
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(float), [-2, 6], rtol=1e-6)
    scalar = det(x[0])
    assert type(scalar) is np.ndarray
    assert scalar.shape == ()
    assert det(x[:0]).shape == (0,)
