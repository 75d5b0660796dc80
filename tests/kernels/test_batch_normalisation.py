import ml_dtypes
import numpy as np
import pytest

import foldline.kernels.batch_normalisation
from foldline.kernels.batch_normalisation import batch_normalization_6
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, compute, find_kernel

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
GRADES = ("fast", "reference")


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def parameters(*shape, dtype=np.float64):
    scale, bias, mean, variance = (normal(*shape, seed=i) for i in range(1, 5))
    return [v.astype(dtype) for v in (scale, bias, mean, variance**2 + 0.1)]


def definition(x, scale, bias, mean, variance, epsilon=1e-5, spatial=1):
    shape = (1, -1, *(1,) * (x.ndim - 2)) if spatial else (1, *x.shape[1:])
    scale, bias, mean, variance = (
        v.astype(float).reshape(shape) for v in (scale, bias, mean, variance)
    )
    return (x.astype(float) - mean) / np.sqrt(variance + epsilon) * scale + bias


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("version", [7, 9, 14, 15])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 3), (2, 3, 7), (0, 3, 2)])
def test_inference(dtype, version, shape):
    x, rest = normal(*shape, dtype=dtype), parameters(3, dtype=dtype)
    eps = float(ml_dtypes.finfo(dtype).eps)
    for grade in GRADES:
        result = compute(find_kernel("", "BatchNormalization", version, (grade,)), (x, *rest))
        assert result.dtype == dtype
        np.testing.assert_allclose(
            result.astype(float), definition(x, *rest), rtol=8 * eps, atol=8 * eps
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_constant_parameters_tiles_and_in_place(monkeypatch, dtype):
    monkeypatch.setattr(foldline.kernels.batch_normalisation, "TILE_BYTES", 200)
    x, rest = normal(2, 5, 6, dtype=dtype), parameters(5, dtype=dtype)
    entry = find_kernel("", "BatchNormalization", 15)
    assert entry.inplace == (0,)
    operands = [Operand(v.shape, v.dtype, None if v is x else v) for v in (x, *rest)]
    buffer = x.copy()
    with use_threads(2):
        assert entry.function(*operands)(buffer, *rest, out=buffer) is buffer
    np.testing.assert_array_equal(buffer, compute(entry, (x, *rest)))


def test_without_spatial_every_element_has_its_own_parameters():
    x, rest = normal(2, 3, 4), parameters(3, 4)
    wanted = definition(x, *rest, spatial=0)
    for grade in GRADES:
        entry = find_kernel("", "BatchNormalization", 7, (grade,))
        np.testing.assert_allclose(compute(entry, (x, *rest), spatial=0), wanted, rtol=1e-10)
    np.testing.assert_allclose(
        batch_normalization_6(x, *rest, spatial=0, is_test=1), wanted, rtol=1e-10
    )


def test_a_single_axis_is_one_channel():
    x, rest = normal(6), parameters(1)
    for grade in GRADES:
        result = compute(find_kernel("", "BatchNormalization", 9, (grade,)), (x, *rest))
        np.testing.assert_allclose(result, definition(x[:, None], *rest)[:, 0], rtol=1e-10)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("version", [6, 9, 15])
def test_training(dtype, version):
    x, rest = normal(4, 3, 5, dtype=dtype), parameters(3, dtype=dtype)
    wide = x.astype(float)
    mean, variance = wide.mean(axis=(0, 2)), wide.var(axis=(0, 2))
    running = [
        old.astype(float) * 0.75 + new * 0.25
        for old, new in zip(rest[2:], (mean, variance), strict=True)
    ]
    y = definition(x, *rest[:2], mean, variance)
    expected = [y, *running] if version == 15 else [y, *running, mean, variance]
    entry = find_kernel("", "BatchNormalization", version)
    mode = {6: {}, 9: {"output_count": 5}, 15: {"training_mode": 1}}[version]
    results = compute(entry, (x, *rest), momentum=0.75, **mode)
    eps = float(ml_dtypes.finfo(dtype).eps)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == dtype
        np.testing.assert_allclose(result.astype(float), wanted, rtol=16 * eps, atol=16 * eps)


def test_training_keeps_the_dtype_of_the_statistics():
    x, rest = normal(4, 3, 5, dtype=np.float16), parameters(3, dtype=np.float32)
    for grade in GRADES:
        entry = find_kernel("", "BatchNormalization", 15, (grade,))
        results = compute(entry, (x, *rest), training_mode=1)
        assert [r.dtype for r in results] == [np.float16, np.float32, np.float32]


def test_training_without_spatial():
    x, rest = normal(4, 3, 2), parameters(3, 2)
    entry = find_kernel("", "BatchNormalization", 7)
    y, _, _, mean, variance = compute(entry, (x, *rest), spatial=0, output_count=5)
    np.testing.assert_allclose(mean, x.mean(axis=0))
    np.testing.assert_allclose(variance, x.var(axis=0))
    np.testing.assert_allclose(y, definition(x, *rest[:2], mean, variance, spatial=0))
