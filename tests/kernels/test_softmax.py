import ml_dtypes
import numpy as np
import pytest

import foldline.kernels.softmax
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import compute, find_kernel

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def run(op_type, version, x, grade="fast", **keywords):
    return compute(find_kernel("", op_type, version, (grade,)), (x,), **keywords)


def normal(*shape, dtype=np.float64):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 5000), (0, 3), (2, 0, 3), (2, 3, 1)])
def test_grades_agree_with_the_definition(dtype, op_type, shape):
    x = normal(*shape, dtype=dtype)
    for axis in range(-x.ndim, x.ndim):
        powers = np.exp(x.astype(float))
        exact = powers / powers.sum(axis=axis, keepdims=True)
        exact = np.log(exact) if op_type == "LogSoftmax" else exact
        for grade in ("fast", "reference"):
            result = run(op_type, 13, x, grade, axis=axis)
            assert result.dtype == dtype
            assert result.shape == x.shape
            np.testing.assert_allclose(
                result.astype(float), exact, rtol=4 * float(ml_dtypes.finfo(dtype).eps), atol=1e-5
            )


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("version", [1, 11])
def test_old_versions_see_a_matrix(op_type, version):
    x = normal(2, 3, 4)
    for axis in (0, 1, 2, 3, -1):
        cut = axis % 3 if axis < 3 else 3
        matrix = x.reshape(int(np.prod(x.shape[:cut])), -1)
        for grade in ("fast", "reference"):
            result = run(op_type, version, x, grade, axis=axis)
            wanted = run(op_type, 13, matrix, "reference", axis=1).reshape(x.shape)
            np.testing.assert_allclose(result, wanted, rtol=1e-12)
    np.testing.assert_array_equal(run(op_type, version, x), run(op_type, version, x, axis=1))


def test_extreme_values():
    x = np.float32([[1000, 1000], [-1000, 0], [-np.inf, 0], [np.inf, 0], [-np.inf, -np.inf]])
    nan = [np.nan, np.nan]
    for grade in ("fast", "reference"):
        with np.errstate(invalid="ignore"):
            result = run("Softmax", 13, x, grade)
        np.testing.assert_array_equal(result[:3], [[0.5, 0.5], [0, 1], [0, 1]])
        assert np.isnan(result[3, 0])
        np.testing.assert_array_equal(result[4], nan)
        logs = run("LogSoftmax", 13, x[:3], grade)
        np.testing.assert_allclose(logs[1:], [[-1000, 0], [-np.inf, 0]])


def test_nan_spoils_its_row_only():
    result = run("Softmax", 13, np.float32([[1, np.nan, 2], [3, 3, 3]]))
    assert np.isnan(result[0]).all()
    np.testing.assert_allclose(result[1], [1 / 3] * 3)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_in_place_and_tiled(monkeypatch, op_type):
    monkeypatch.setattr(foldline.kernels.softmax, "TILE_BYTES", 100)
    x = normal(7, 9, 5)
    for axis in (0, 1, 2):
        wanted = run(op_type, 13, x, "reference", axis=axis)
        buffer = x.copy()
        with use_threads(2):
            entry = find_kernel("", op_type, 13)
            assert entry.inplace == (0,)
            assert compute(entry, (buffer,), axis=axis, out=buffer) is buffer
        np.testing.assert_allclose(buffer, wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", FLOATS)
def test_hardmax(dtype):
    x = np.asarray([[1, 3, 3], [2, 0, -1]], dtype)
    result = run("Hardmax", 13, x, "reference")
    assert result.dtype == dtype
    assert result.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert run("Hardmax", 13, x, "reference", axis=0).tolist() == [[0, 1, 1], [1, 0, 0]]
    assert run("Hardmax", 11, x, "reference", axis=0).tolist() == [[0, 1, 0], [0, 0, 0]]
    assert run("Hardmax", 13, x[:0], "reference").shape == (0, 3)


@pytest.mark.parametrize("version", [11, 13])
@pytest.mark.parametrize("grade", ["fast", "reference"])
def test_narrow_floats_are_rounded_at_each_step_of_the_body(version, grade):
    x = np.array([[0.1, 2.3, -1.7, 0.6, 1.1]], np.float16)
    powers = np.exp((x - x.max()).astype(np.float32)).astype(np.float16)
    expected = powers / np.float16(powers.astype(np.float32).sum())
    wide = run("Softmax", version, x.astype(np.float32), axis=1).astype(np.float16)
    assert not np.array_equal(expected, wide)
    np.testing.assert_array_equal(run("Softmax", version, x, grade, axis=1), expected)
