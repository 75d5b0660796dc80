import ml_dtypes
import numpy as np
import pytest

import foldline.kernels.normalisation
from foldline.kernels.normalisation import (
    centre_rows,
    lp_normalization,
    mean_variance_normalization,
)
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import compute, find_kernel
from tests.kernels.normalised import FAR, FLOATS, GRADES, close, normal, standard


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_layer_normalization(dtype, axis):
    x = normal(3, 4, 5, dtype=dtype)
    scale, bias = (normal(*x.shape[axis % 3 :], dtype=dtype, seed=i) for i in (1, 2))
    wide = x.astype(float)
    exact, mean, inverse = standard(wide, tuple(range(axis % 3, 3)), 1e-3)
    for grade in GRADES:
        entry = find_kernel("", "LayerNormalization", 17, (grade,))
        extra = {"output_count": 3} if grade == "fast" else {}
        results = compute(entry, (x, scale, bias), axis=axis, epsilon=1e-3, **extra)
        steps = 4 if dtype in FLOATS[:2] else 16
        close(results[0], exact * scale.astype(float) + bias.astype(float), dtype, steps)
        for result, wanted in zip(results[1:], (mean, inverse), strict=True):
            assert result.shape == wanted.shape
            close(result, wanted, np.float32, 8)


def test_layer_normalization_with_broadcast_scales():
    x = normal(2, 3, 4)
    exact, _, _ = standard(x, (1, 2), 1e-5)
    for shape in ((4,), (1, 4), (3, 1), (2, 3, 4), (2, 1, 1), ()):
        scale, bias = np.asarray(normal(*shape)), np.asarray(normal(*shape, seed=1))
        for grade in GRADES:
            entry = find_kernel("", "LayerNormalization", 17, (grade,))
            result = compute(entry, (x, scale, bias), axis=1)
            result = result[0] if isinstance(result, tuple) else result
            close(result, exact * scale + bias, np.float64, 100)


def test_stash_type_is_the_dtype_of_the_statistics():
    x, scale = normal(2, 3, dtype=np.float32), np.ones(3, np.float32)
    for grade in GRADES:
        entry = find_kernel("", "LayerNormalization", 17, (grade,))
        extra = {"output_count": 3} if grade == "fast" else {}
        _, mean, inverse = compute(entry, (x, scale), stash_type=16, **extra)
        assert mean.dtype == inverse.dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("grade", GRADES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_layers_with_a_stash_type_of_double_are_computed_in_double(grade, dtype):
    entry = find_kernel("", "LayerNormalization", 17, (grade,))
    extra = {"output_count": 3} if grade == "fast" else {}
    far = FAR if dtype == np.float32 else np.array([[2048, 2050, 2046, 2052]], dtype)
    x, scale, bias = far, np.array([1, 2, 3, 4], dtype), np.ones(4, dtype)
    results = compute(entry, (x, scale, bias), stash_type=11, **extra)
    exact, mean, inverse = standard(far.astype(float), (1,), 1e-5)
    close(results[0], exact * scale + 1, dtype)
    for result, wanted in zip(results[1:], (mean, inverse), strict=True):
        close(result, wanted, np.float64, 8)
    narrow = compute(entry, (x, scale, bias), stash_type=1, **extra)[0]
    assert dtype == np.float16 or abs(narrow - results[0]).max() > 0.01


@pytest.mark.parametrize("grade", GRADES)
@pytest.mark.parametrize("scale_dtype", [np.float32, np.float64, np.float16])
def test_roots_of_mean_squares_with_a_stash_type_of_double(grade, scale_dtype):
    entry = find_kernel("", "RMSNormalization", 23, (grade,))
    x, scale = np.array([[1e30, 2e30]], np.float32), np.array([1, 2], scale_dtype)
    result = compute(entry, (x, scale), stash_type=11)
    close(result, np.array([[1, 4]]) / np.sqrt(2.5), scale_dtype, 1)  # in float32 squares overflow
    assert compute(entry, (x, scale), stash_type=1).max() == 0


def test_a_narrow_stash_type_never_narrows():
    x, scale = np.array([[300, 400]], np.float32), np.ones(2, np.float32)  # their squares overflow
    for grade in GRADES:
        entry = find_kernel("", "RMSNormalization", 23, (grade,))
        assert compute(entry, (x, scale), stash_type=10).tolist() == (
            compute(entry, (x, scale)).tolist()
        )


def test_layer_normalization_in_place_and_tiled(monkeypatch):
    monkeypatch.setattr(foldline.kernels.normalisation, "TILE_BYTES", 100)
    x, scale = normal(9, 5), normal(5)
    entry = find_kernel("", "LayerNormalization", 17)
    assert entry.inplace == (0,)
    wanted = compute(entry, (x, scale))
    buffer = x.copy()
    with use_threads(2):
        assert compute(entry, (buffer, scale), out=buffer) is buffer
    np.testing.assert_array_equal(buffer, wanted)
    assert compute(entry, (x[:0], scale)).shape == (0, 5)


def test_large_mean_does_not_swamp_the_variance():
    x = np.float32([[10000, 10001, 10002, 10003]])
    out = np.empty_like(x)
    mean, inverse = centre_rows(x, 0.0, out)
    assert mean.tolist() == [10001.5]
    assert out.tolist() == [[-1.5, -0.5, 0.5, 1.5]]
    np.testing.assert_allclose(inverse, [1.25**-0.5], rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale_dtype", FLOATS)
@pytest.mark.parametrize("axis", [1, -1])
def test_rms_normalization(dtype, scale_dtype, axis):
    x = normal(3, 4, 5, dtype=dtype)
    scale = normal(*x.shape[axis % 3 :], dtype=scale_dtype, seed=1)
    wide = x.astype(float)
    squares = (wide**2).mean(axis=tuple(range(axis % 3, 3)), keepdims=True)
    exact = wide / np.sqrt(squares + 1e-5) * scale.astype(float)
    for grade in GRADES:
        entry = find_kernel("", "RMSNormalization", 23, (grade,))
        result = compute(entry, (x, scale), axis=axis)
        assert result.dtype == scale_dtype
        eps = max(float(ml_dtypes.finfo(scale_dtype).eps), 1e-7 if dtype != np.float64 else 0)
        np.testing.assert_allclose(result.astype(float), exact, rtol=4 * eps, atol=4 * eps)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mean_variance(dtype):
    x = normal(2, 3, 4, 5, dtype=dtype)
    exact, _, inverse = standard(x.astype(float), (0, 2, 3), 0)
    exact = exact / (1 + 1e-9 * inverse)
    close(mean_variance_normalization(x), exact, dtype, 4 if dtype in FLOATS[:2] else 16)
    constant = mean_variance_normalization(np.full((1, 1, 2, 2), 3, dtype))
    assert (constant == 0).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_lp_normalization(dtype):
    x = np.asarray([[3, -4], [0, 0]], dtype)
    close(lp_normalization(x), [[0.6, -0.8], [0, 0]], dtype)
    close(lp_normalization(x, p=1), [[3 / 7, -4 / 7], [0, 0]], dtype)
    close(lp_normalization(x, axis=0, p=1), [[1, -1], [0, 0]], dtype)
    big = np.full(4, 300, dtype)
    close(lp_normalization(big), np.full(4, 0.5), dtype)  # squares overflow a float16
