import numpy as np
import pytest

from foldline.kernels.max_pool_indices import max_pool_with_indices, max_unpool
from foldline.kernels.windows import sliding_window
from tests.kernels.one_node import assert_as_onnxruntime, onnxruntime_results


def test_first_maximum_wins_and_nan_over_it():
    x = np.float32([[[1, 1, 0, np.nan, 5, np.nan, -np.inf, -np.inf]]])
    values, indices = max_pool_with_indices(x, sliding_window((8,), (2,), strides=(2,)))
    np.testing.assert_array_equal(values[0, 0], np.float32([1, np.nan, np.nan, -np.inf]))
    assert indices[0, 0].tolist() == [0, 3, 5, 6]
    assert indices.dtype == np.int64


def test_indices_count_through_the_whole_tensor():
    x = np.arange(24, dtype=np.int8).reshape(2, 2, 2, 3)
    window = sliding_window((2, 3), (2, 3))
    assert max_pool_with_indices(x, window)[1].ravel().tolist() == [5, 11, 17, 23]
    x = -x
    x[..., 1, 0] = 100  # row-major place 3, column-major place 1
    assert max_pool_with_indices(x, window, 0)[1].ravel().tolist() == [3, 9, 15, 21]
    assert max_pool_with_indices(x, window, 1)[1].ravel().tolist() == [1, 7, 13, 19]


def test_a_window_in_the_padding():
    window = sliding_window((1,), (2,), dilations=(2,), pads=(1, 1))
    values, indices = max_pool_with_indices(np.float32([[[7]]]), window)
    assert (values.item(), indices.item()) == (-np.inf, -1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_unpool_inverts_pool(dtype):
    x = np.random.default_rng(0).permutation(96).reshape(2, 3, 4, 4).astype(dtype)
    values, indices = max_pool_with_indices(x, sliding_window((4, 4), (2, 2), strides=(2, 2)))
    back = max_unpool(values, indices, kernel_shape=(2, 2), strides=(2, 2))
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, np.where(back != 0, x, 0))
    assert np.count_nonzero(back) in (23, 24)


def test_unpool_into_a_larger_tensor():
    x, indices = np.float32([[[[5]]]]), np.int64([[[[3]]]])
    result = max_unpool(x, indices, np.int64([1, 1, 3, 3]), kernel_shape=(2, 2), strides=(2, 2))
    assert result[0, 0].tolist() == [[0, 0, 0], [0, 5, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "pads"),
    [
        ((2, 2, 9), [3], [2], [1, 1]),
        ((2, 2, 6, 8), [2, 2], [2, 2], [1, 0, 1, 0]),
        ((1, 2, 5, 8), [3, 2], [1, 2], [2, 0, 1, 0]),
        ((1, 2, 4, 4, 6), [2, 2, 2], [2, 2, 2], [1, 1, 1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("sized", [False, True])
def test_unpool_takes_pads_away_as_onnxruntime(shape, kernel, strides, pads, sized):
    x = np.random.default_rng(0).permutation(int(np.prod(shape))).reshape(shape) + 1
    options = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    pooled = onnxruntime_results(
        "MaxPool", 12, [x.astype(np.float32)], options, outputs=(None, None)
    )
    sizes = [np.array(shape)] if sized else []
    assert_as_onnxruntime("MaxUnpool", 11, [*pooled, *sizes], options)
