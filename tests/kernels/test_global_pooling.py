import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.channels_last import channels_last, pixels
from foldline.kernels.global_pooling import (
    global_average_pool,
    global_average_pool_reference,
    global_average_step,
    global_lp_pool,
    global_max_pool,
    max_roi_pool,
)
from foldline.kernels.registry import Operand, aligned_bytes, run_once

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(2, 3, 5), (2, 3, 4, 5), (2, 3, 80, 90), (1, 2, 5000), (0, 2, 3, 3)]
)
def test_averages(dtype, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    plain = global_average_pool_reference(x)
    out = np.empty(plain.shape, dtype)
    assert run_once(global_average_pool(Operand(x.shape, x.dtype)), (x,), out=out) is out
    assert out.dtype == plain.dtype == dtype
    exact = x.astype(float).mean(axis=tuple(range(2, x.ndim)), keepdims=True)
    for result in (out, plain):
        np.testing.assert_allclose(
            result.astype(float), exact, rtol=float(ml_dtypes.finfo(dtype).eps), atol=1e-6
        )


def test_average_does_not_overflow_halves():
    x = np.full((1, 1, 32, 32), 1000, np.float16)
    assert run_once(global_average_pool(Operand(x.shape, x.dtype)), (x,)).item() == 1000


@pytest.mark.parametrize("shape", [(2, 5, 7, 7), (1, 3, 70, 60)])
def test_average_has_the_same_bits_in_either_memory_order(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    last = channels_last(np.ascontiguousarray(pixels(x)), shape)
    plain = run_once(global_average_step(Operand(shape, x.dtype)), (x,))
    result = run_once(global_average_step(Operand(shape, x.dtype, None, True)), (last,))
    assert result.tobytes() == plain.tobytes()


@pytest.mark.parametrize("is_last", [False, True])
def test_bound_average_reads_what_is_there_when_it_runs(is_last):
    memory = np.zeros((1, 4, 6, 3), np.float32)
    x = memory.transpose(0, 3, 1, 2)
    step = global_average_step(Operand(x.shape, x.dtype, None, is_last))
    scratch, out = aligned_bytes(step.scratch_bytes), np.empty((1, 3, 1, 1), np.float32)
    compute = step.bind(x, scratch=scratch, out=out)
    for value in (1, 5):
        memory[...] = [value, 2 * value, np.inf]
        compute()
        assert out.ravel().tolist() == [value, 2 * value, np.inf]


@pytest.mark.parametrize("dtype", FLOATS)
def test_maximum(dtype):
    x = np.asarray([[[1, 3, 2], [-5, -np.inf, -4], [np.nan, 9, np.inf]]], dtype)
    for result in (global_max_pool(x), global_max_pool(x, out=np.empty((1, 3, 1), dtype))):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result[0, :, 0].astype(float), [3, -4, np.nan])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("p", "expected"), [(1, 7), (2, 5), (1.0, 7)])
def test_lp(dtype, p, expected):
    result = global_lp_pool(np.asarray([[[3, -4]]], dtype), p=p)
    assert result.dtype == dtype
    assert result.item() == expected


def test_roi_bins():
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    rois = np.float32([[0, 0, 0, 3, 3], [0, 1, 1, 1, 1], [0, 8, 8, 9, 9]])
    result = max_roi_pool(x, rois, pooled_shape=(2, 2))
    assert result[:, 0].tolist() == [[[5, 7], [13, 15]], [[5, 5], [5, 5]], [[0, 0], [0, 0]]]
    assert max_roi_pool(x, rois[:0], pooled_shape=(2, 3)).shape == (0, 1, 2, 3)


@pytest.mark.parametrize("shape", [(1, 3, 7, 7), (2, 3, 70, 60)])
def test_average_of_infinities_and_nan(shape):
    x = np.ones(shape, np.float32)
    x[:, 0, -1, -1], x[:, 1, 0, 0], x[:, 1, 1, 1], x[:, 2, 3, 3] = np.inf, np.inf, -np.inf, np.nan
    result = run_once(global_average_step(Operand(shape, x.dtype)), (x,))
    np.testing.assert_array_equal(result[:, :, 0, 0], [[np.inf, np.nan, np.nan]] * len(x))


@pytest.mark.parametrize("channels", [3, 8, 13, 24, 100])
@pytest.mark.parametrize("side", [13, 70])
def test_equal_planes_have_equal_averages(channels, side):
    plane = np.random.default_rng(0).standard_normal((1, 1, side, side)).astype(np.float32)
    x = np.repeat(plane, channels, axis=1)
    result = run_once(global_average_step(Operand(x.shape, x.dtype)), (x,))
    assert len(np.unique(result)) == 1
