import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.cumulative import cum_prod, cum_sum

AXIS = np.array(0, np.int32)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int32, np.uint64, np.float16, ml_dtypes.bfloat16]
)
@pytest.mark.parametrize(
    ("kernel", "exclusive", "reverse", "expected"),
    [
        (cum_sum, 0, 0, [1, 3, 6]),
        (cum_sum, 1, 0, [0, 1, 3]),
        (cum_sum, 0, 1, [6, 5, 3]),
        (cum_sum, 1, 1, [5, 3, 0]),
        (cum_prod, 0, 0, [1, 2, 6]),
        (cum_prod, 1, 0, [1, 1, 2]),
        (cum_prod, 0, 1, [6, 6, 3]),
        (cum_prod, 1, 1, [6, 3, 1]),
    ],
)
def test_exclusive_and_reverse(kernel, exclusive, reverse, expected, dtype):
    x = np.array([1, 2, 3], dtype)
    result = kernel(x, AXIS, exclusive=exclusive, reverse=reverse)
    assert result.dtype == dtype
    assert result.tolist() == expected
    out = np.empty_like(x)
    assert kernel(x, AXIS, exclusive=exclusive, reverse=reverse, out=out) is out
    assert out.tolist() == expected
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("axis", [np.array(-1), np.array([1], np.int32)])
def test_the_axis_may_be_negative_or_a_vector_of_one(axis):
    assert cum_sum(np.array([[1, 2], [3, 4]]), axis).tolist() == [[1, 3], [3, 7]]


def test_integers_wrap_around_in_their_own_type():
    x = np.array([2**31 - 1, 1], np.int32)
    assert cum_sum(x, AXIS).tolist() == [2**31 - 1, -(2**31)]
    assert cum_prod(np.array([2**31, 2], np.uint32), AXIS).tolist() == [2**31, 0]


def test_half_types_accumulate_in_float32():
    x = np.ones(600, ml_dtypes.bfloat16)
    assert cum_sum(x, AXIS)[-1] == 600
    with np.errstate(over="ignore"):
        assert cum_sum(np.full(2, 60000, np.float16), AXIS).tolist() == [60000, np.inf]


def test_exclusive_does_not_subtract_infinities():
    x = np.array([1, np.inf, 2], np.float32)
    assert cum_sum(x, AXIS, exclusive=1).tolist() == [0, 1, np.inf]


def test_nan_spreads_to_what_follows():
    result = cum_sum(np.array([1, np.nan, 2], np.float32), AXIS)
    assert np.isnan(result).tolist() == [False, True, True]


def test_empty_axes():
    assert cum_sum(np.zeros((0, 2)), AXIS, exclusive=1).shape == (0, 2)
    assert cum_prod(np.zeros((2, 0)), AXIS).shape == (2, 0)
