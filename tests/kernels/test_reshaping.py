import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import reshaping
from foldline.kernels.registry import find_kernel

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def vector(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((2, 3, 4), (0, -1), (2, 12)),
        ((2, 3, 4), (4, 0, -1), (4, 3, 2)),
        ((2, 3, 4), (-1,), (24,)),
        ((1, 1), (), ()),
        ((), (1, -1), (1, 1)),
        ((0, 4, 5), (0, -1), (0, 20)),
        ((0, 4, 5), (0, 2, -1), (0, 2, 10)),
        ((0, 3), (3, 0, -1), (3, 3, 0)),
        ((0, 4), (-1, 4), (0, 4)),
    ],
)
def test_reshape_copies_zeros_and_infers_minus_one(shape, target, expected):
    data = np.zeros(shape, np.float32)
    assert reshaping.reshape(data, vector(*target)).shape == expected
    assert reshaping.reshape_by_attribute(data, shape=target).shape == expected


def test_reshape_allowzero_takes_zero_as_a_size():
    data = np.zeros((0, 3), np.float32)
    assert reshaping.reshape(data, vector(3, 0), allowzero=1).shape == (3, 0)
    with pytest.raises(ValueError, match="reshape"):
        reshaping.reshape(data, vector(0, -1), allowzero=1)


def test_reshape_refuses_another_number_of_elements():
    with pytest.raises(ValueError, match="reshape"):
        reshaping.reshape(X, vector(5, 5))
    with pytest.raises(ValueError, match="reshape"):
        reshaping.reshape(X, vector(5, -1))


def test_reshape_refuses_a_zero_beyond_the_rank():
    with pytest.raises(IndexError):
        reshaping.reshape(X, vector(2, 3, 4, 0))


def test_reshape_1_without_shape_is_a_scalar():
    assert reshaping.reshape_by_attribute(np.ones((1, 1))).shape == ()


@pytest.mark.parametrize(
    ("axis", "expected"), [(0, (1, 24)), (1, (2, 12)), (3, (24, 1)), (-1, (6, 4)), (-3, (1, 24))]
)
def test_flatten(axis, expected):
    result = reshaping.flatten(X, axis=axis)
    assert result.shape == expected
    assert result.ravel().tolist() == X.ravel().tolist()


def test_flatten_of_scalars_and_empty_tensors():
    assert reshaping.flatten(np.array(3)).shape == (1, 1)
    assert reshaping.flatten(np.zeros((0, 4, 5)), axis=2).shape == (0, 5)


def test_squeeze_drops_the_axes_given_or_all_of_size_one():
    data = np.zeros((1, 3, 1, 1))
    assert reshaping.squeeze(data).shape == (3,)
    assert reshaping.squeeze(data, vector(-1, 0)).shape == (3, 1)
    assert reshaping.squeeze(data, vector()).shape == (1, 3, 1, 1)
    assert reshaping.squeeze_by_attribute(data, axes=(2,)).shape == (1, 3, 1)
    with pytest.raises(ValueError, match="size not equal to one"):
        reshaping.squeeze(data, vector(1))


def test_unsqueeze_counts_axes_in_the_result():
    data = np.zeros((3,))
    assert reshaping.unsqueeze(data, vector(-1, 0)).shape == (1, 3, 1)
    assert reshaping.unsqueeze_by_attribute(data, axes=(2, 0)).shape == (1, 3, 1)
    assert reshaping.unsqueeze(np.array(1.0), vector(0)).shape == (1,)
    with pytest.raises(ValueError, match="repeated axis"):
        reshaping.unsqueeze(data, vector(0, 0))


def test_transpose_is_a_view_and_reverses_by_default():
    assert reshaping.transpose(X).shape == (4, 3, 2)
    moved = reshaping.transpose(X, perm=(1, 0, 2))
    assert moved[2, 1].tolist() == X[1, 2].tolist()
    assert np.shares_memory(moved, X)
    assert reshaping.transpose(np.array("a", object)).item() == "a"


def test_expand_broadcasts_both_ways():
    row = np.array([[1, 2]], ml_dtypes.bfloat16)
    assert reshaping.expand(row, vector(3, 1)).tolist() == [[1, 2]] * 3
    assert reshaping.expand(np.array(5), vector(2, 0)).shape == (2, 0)
    assert reshaping.expand(row, vector()).shape == (1, 2)
    with pytest.raises(ValueError, match="broadcast"):
        reshaping.expand(row, vector(3))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, None, [2, 3, 4]), (-2, None, [3, 4]), (2, 1, []), (-9, 99, [2, 3, 4]), (1, -1, [3])],
)
def test_shape_is_sliced_by_start_and_end(start, end, expected):
    result = reshaping.shape_of(X, start=start, end=end)
    assert result.dtype == np.int64
    assert result.tolist() == expected


def test_shape_and_size_of_scalars():
    assert reshaping.shape_of(np.array(1)).shape == (0,)
    size = reshaping.size_of(np.array(1))
    assert (size.dtype, size.shape, size.item()) == (np.int64, (), 1)
    assert reshaping.size_of(np.zeros((0, 3))).item() == 0


@pytest.mark.parametrize("op_type", ["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"])
def test_reshaping_operators_are_declared_views(op_type):
    for version in (1, 13, 25):
        entry = find_kernel("", op_type, version)
        assert entry is not None
        assert entry.view
