import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.ufuncs import aligned, bounds, clip, constant, positive_part


@pytest.mark.parametrize(
    ("b_shape", "axis", "expected"),
    [
        ((), None, ()),
        ((1, 1), None, (1, 1)),
        ((5,), None, (5,)),
        ((4, 5), None, (4, 5)),
        ((3, 4), 1, (3, 4, 1)),
        ((2,), 0, (2, 1, 1, 1)),
        ((5,), -1, (5,)),
    ],
)
def test_aligned_follows_the_examples_of_opset_1(b_shape, axis, expected):
    a = np.zeros((2, 3, 4, 5))
    b = aligned(a, np.zeros(b_shape), axis, 1)
    assert b.shape == expected
    assert (a + b).shape == a.shape


def test_aligned_refuses_other_shapes_without_broadcast():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3,\) differ and broadcast is 0"):
        aligned(np.zeros((2, 3)), np.zeros(3), None, 0)


def test_constants_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        constant(2.0, np.dtype(np.float32))[...] = 3


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_clip_keeps_nan_of_any_operand(dtype):
    x = np.array([np.nan, 1, 5, -5], dtype)
    low, high, nan = (np.array(v, dtype) for v in (-1, 3, np.nan))
    assert np.asarray(clip(x, low, high)).dtype == dtype
    assert np.asarray(clip(x, low, high)).astype(float).tolist()[1:] == [1, 3, -1]
    assert np.isnan(clip(x, low, high)[0])
    assert np.isnan(clip(x, nan, high)).all()
    assert np.isnan(clip(x, low, nan)).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, ml_dtypes.bfloat16])
def test_positive_part_passes_the_extremes(dtype):
    low, high = bounds(np.dtype(dtype))
    assert positive_part(high) == high
    assert positive_part(low) == 0
