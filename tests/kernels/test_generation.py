import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.generation import eye_like, one_hot, range_


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((0, 10, 3), [0, 3, 6, 9]),
        ((10, 4, -2), [10, 8, 6]),
        ((0, -5, 1), []),
        ((5, 5, 1), []),
        ((-3, 4, 2), [-3, -1, 1, 3]),
    ],
)
def test_range_excludes_the_limit(dtype, bounds, expected):
    result = range_(*(np.array(bound, dtype) for bound in bounds))
    assert result.dtype == dtype
    assert result.tolist() == expected


def test_range_of_floats_multiplies_instead_of_adding_up():
    start, limit, delta = (np.array(v, np.float32) for v in (0.5, 3000, 0.7))
    result = range_(start, limit, delta)
    assert len(result) == 4286
    assert result[-1] == np.float32(0.5) + np.float32(4285) * np.float32(0.7)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("stash_type", [1, 11])
def test_range_of_half_types_does_not_get_stuck(dtype, stash_type):
    result = range_(*(np.array(v, dtype) for v in (0, 4096, 1)), stash_type=stash_type)
    assert result.dtype == dtype
    assert len(result) == 4096
    assert (result == np.arange(4096, dtype=np.float32).astype(dtype)).all()


def test_range_takes_inputs_of_one_element_and_refuses_delta_zero():
    assert range_(*(np.array([v]) for v in (1, 3, 1))).tolist() == [1, 2]
    with pytest.raises(ValueError, match="delta must not be 0"):
        range_(np.array(1), np.array(2), np.array(0))


@pytest.mark.parametrize("k", [0, 1, -1, 9, -9])
def test_eye_like(k):
    data = np.zeros((2, 3), np.int8)
    assert eye_like(data, k=k).tolist() == np.eye(2, 3, k).tolist()
    assert eye_like(data, k=k).dtype == np.int8
    assert eye_like(data, dtype=16).dtype == ml_dtypes.bfloat16


def test_one_hot_counts_negative_indices_and_leaves_others_off():
    values = np.array([2, 7], np.float32)
    indices = np.array([0, -1, 3, -4, 1])
    expected = [[7, 2, 2], [2, 2, 7], [2, 2, 2], [2, 2, 2], [2, 7, 2]]
    last = one_hot(indices, np.array(3), values)
    assert last.dtype == np.float32
    assert last.tolist() == expected
    first = one_hot(indices, np.array([3]), values, axis=0)
    assert first.T.tolist() == expected
    assert first.flags.c_contiguous


def test_one_hot_takes_any_types():
    strings = np.array(["no", "yes"], object)
    assert one_hot(np.array([1.9]), np.array(2.0), strings).tolist() == [["no", "yes"]]
    assert one_hot(np.array(-0.5), np.array(2), strings).tolist() == ["yes", "no"]
    half = np.array([0, 1], ml_dtypes.bfloat16)
    assert one_hot(np.array([0], np.uint8), np.array(2), half).dtype == half.dtype


def test_one_hot_in_the_middle_and_of_nothing():
    values = np.array([0, 1])
    middle = one_hot(np.array([[0, 1], [1, 1]]), np.array(2), values, axis=1)
    assert middle.tolist() == [[[1, 0], [0, 1]], [[0, 0], [1, 1]]]
    assert one_hot(np.zeros((0, 2), np.int64), np.array(3), values).shape == (0, 2, 3)
    assert one_hot(np.array([1]), np.array(0), values).shape == (1, 0)
