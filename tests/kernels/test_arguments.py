import numpy as np
import pytest

from foldline.kernels.arguments import copy_of, ints, nonnegative, zero_of


def test_ints_flattens_any_shape_to_python_integers():
    assert ints(np.array([[1, -2]], np.int32)) == (1, -2)
    assert ints(np.array(7)) == (7,)
    assert ints(()) == ()
    assert all(type(n) is int for n in ints(np.array([3], np.int64)))


def test_zero_of_strings_is_the_empty_string():
    assert zero_of(np.dtype(object)) == ""
    assert zero_of(np.dtype(np.int8)) == 0
    assert zero_of(np.dtype(bool)).dtype == bool


def test_copy_of_writes_to_out_and_leaves_out_alone_when_it_is_the_data():
    data = np.arange(3)
    out = np.zeros(3, data.dtype)
    assert copy_of(data, out) is out
    assert out.tolist() == [0, 1, 2]
    assert copy_of(data, data) is data
    assert not np.shares_memory(copy_of(data, None), data)


def test_nonnegative_counts_from_the_end():
    assert nonnegative(np.array([-3, -1, 0, 2], np.int32), 3, 0).tolist() == [0, 2, 0, 2]


@pytest.mark.parametrize("index", [3, -4])
def test_nonnegative_names_the_value_the_axis_and_the_bounds(index):
    message = f"index {index} is out of bounds for axis 1, which accepts -3 to 2"
    with pytest.raises(IndexError, match=message):
        nonnegative(np.array([[0, index]]), 3, 1)


def test_nonnegative_of_nothing_fits_an_empty_axis():
    assert nonnegative(np.zeros((2, 0), np.int64), 0, 0).shape == (2, 0)
