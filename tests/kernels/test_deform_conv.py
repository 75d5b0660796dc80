import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.conv import conv_reference
from foldline.kernels.deform_conv import deform_conv


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("group", [1, 2])
def test_without_offsets_it_is_a_convolution(rank, group):
    x, w, b = normal(2, 4, *(6, 5, 4)[:rank]), normal(4, 4 // group, *(2,) * rank), normal(4)
    attributes = {"pads": (1,) * rank + (0,) * rank, "strides": (2,) * rank, "group": group}
    wanted = conv_reference(x, w, b, **attributes)
    taps = 2**rank
    offset = np.zeros((2, taps * rank, *wanted.shape[2:]))
    result = deform_conv(x, w, offset, b, **attributes)
    np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)
    halved = deform_conv(
        x, w, offset, None, np.full((2, taps, *wanted.shape[2:]), 0.5), **attributes
    )
    np.testing.assert_allclose(
        halved, conv_reference(x, w, **attributes) / 2, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("shift", "expected"), [(0.25, 1.25), (-0.5, 0.5), (1.5, 2.5), (2.25, 2.25), (9, 0), (-2, 0)]
)
def test_reading_between_elements(shift, expected):
    x = np.asarray([[[1.0, 2.0, 3.0]]])
    offset = np.zeros((1, 1, 3))
    offset[0, 0, 0] = shift
    assert deform_conv(x, np.ones((1, 1, 1)), offset)[0, 0, 0] == expected


def test_an_infinity_with_no_share_is_not_read():
    x = np.asarray([[[1.0, np.inf]]])
    assert deform_conv(x, np.ones((1, 1, 1)), np.zeros((1, 1, 2)))[0, 0].tolist() == [1, np.inf]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_dtypes(dtype):
    x, w = np.ones((1, 1, 3, 3), dtype), np.ones((1, 1, 2, 2), dtype)
    result = deform_conv(x, w, np.zeros((1, 8, 2, 2), dtype))
    assert result.dtype == dtype
    assert (result == 4).all()


def test_zero_batch():
    x, w = np.empty((0, 2, 3, 3)), np.ones((5, 2, 2, 2))
    assert deform_conv(x, w, np.empty((0, 8, 2, 2))).shape == (0, 5, 2, 2)
