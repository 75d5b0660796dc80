import numpy as np
import pytest

from tests.kernels.contrib import both, integers, scalar

BYTES = pytest.mark.parametrize("dtype", [np.uint8, np.int8])


@BYTES
@pytest.mark.parametrize(
    "window",
    [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        {"kernel_shape": [2, 2], "ceil_mode": 1, "strides": [2, 2]},
        {"kernel_shape": [2, 2], "dilations": [2, 2]},
        {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
    ],
)
def test_nhwc_max_pool(dtype, window):
    expected, actual = both("NhwcMaxPool", [integers(2, 6, 7, 3, dtype=dtype)], window)
    np.testing.assert_array_equal(actual[0], expected[0])


WINDOWS = [
    ({"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}, 1),
    ({"dilations": [2, 1], "pads": [0, 1, 2, 0]}, 1),
    ({"auto_pad": "SAME_LOWER", "strides": [2, 2]}, 1),
    ({"group": 2, "pads": [1, 1, 1, 1]}, 2),
    ({"group": 4}, 4),
]


@BYTES
@pytest.mark.parametrize(("window", "group"), WINDOWS)
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("by_map", [False, True])
@pytest.mark.parametrize("constant", [(), (3, 4, 5)])
def test_convolution(dtype, window, group, channels_last, by_map, constant):
    shape = (2, 7, 6, 4) if channels_last else (2, 4, 7, 6)
    scale = np.linspace(0.02, 0.05, 8) if by_map else 0.03
    inputs = [integers(*shape, dtype=dtype), scalar(0.04), scalar(9, dtype)]
    inputs += [integers(8, 4 // group, 3, 3, dtype=np.int8, seed=1), np.asarray(scale, np.float32)]
    inputs += [np.zeros(np.shape(scale), np.int8), scalar(0.7), scalar(30, dtype)]
    inputs.append(np.arange(-400, 400, 100, dtype=np.int32))
    attributes = {**window, "channels_last": channels_last}
    (expected,), (actual,) = both("QLinearConv", inputs, attributes, constant=constant)
    assert np.abs(actual.astype(int) - expected.astype(int)).max() <= 1
    assert (actual == expected).mean() > 0.98
    assert np.unique(actual).size > 50


def test_convolution_of_one_axis_without_bias():
    inputs = [integers(1, 9, 2), scalar(0.04), scalar(9, np.uint8), integers(3, 2, 4, seed=1)]
    inputs += [scalar(0.03), scalar(128, np.uint8), scalar(1), scalar(100, np.uint8)]
    (expected,), (actual,) = both("QLinearConv", inputs, {"channels_last": 1})
    assert actual.shape == (1, 6, 3)
    np.testing.assert_allclose(actual.astype(int), expected.astype(int), atol=1)
