import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import ordering, ordering_fast

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("largest", "expected"), [(1, [1, 2, 5, 0, 3, 4]), (0, [4, 3, 0, 1, 2, 5])]
)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64, np.int64]
)
def test_top_k_puts_the_lower_of_equal_elements_first(largest, expected, dtype):
    data = np.array([2, 3, 3, 1, 0, 3], dtype)
    values, indices = ordering.top_k(data, np.array([6]), largest=largest)
    assert indices.dtype == np.int64
    assert indices.tolist() == expected
    assert values.dtype == dtype
    assert values.tolist() == data[expected].tolist()


def test_top_k_counts_nan_as_larger_than_all_numbers():
    data = np.array([1, NAN, INF, -INF, NAN, 0, -0.0], np.float32)
    _, largest = ordering.top_k(data, np.array([7]))
    assert largest.tolist() == [1, 4, 2, 0, 5, 6, 3]
    _, smallest = ordering.top_k(data, np.array([7]), largest=0)
    assert smallest.tolist() == [3, 5, 6, 0, 2, 1, 4]


def test_top_k_along_an_axis():
    data = np.array([[1, 5], [4, 2], [3, 6]])
    values, indices = ordering.top_k(data, np.array([2]), axis=0)
    assert values.tolist() == [[4, 6], [3, 5]]
    assert indices.tolist() == [[1, 2], [2, 0]]
    values, indices = ordering.top_k_1(data, k=1)
    assert values.tolist() == [[5], [4], [6]]
    assert indices.tolist() == [[1], [0], [1]]
    values, indices = ordering.top_k_1(data, k=2, axis=0)
    assert values.tolist() == [[4, 6], [3, 5]]
    assert indices.tolist() == [[1, 2], [2, 0]]


@pytest.mark.parametrize("module", [ordering, ordering_fast])
def test_top_k_in_any_order_is_of_the_same_elements(module):
    data = np.float32([[1, 5, 2, 9], [4, 2, 8, 0]])
    values, indices = module.top_k(data, np.array([2]), sorted=0)
    assert np.sort(values).tolist() == [[5, 9], [4, 8]]
    assert np.take_along_axis(data, indices, 1).tolist() == values.tolist()


def test_top_k_of_nothing_and_of_too_much():
    values, indices = ordering.top_k(np.zeros((2, 3)), np.array([0]))
    assert (values.shape, indices.shape) == ((2, 0), (2, 0))
    with pytest.raises(ValueError, match="k is 4, but axis 1 has 3 elements"):
        ordering.top_k(np.zeros((2, 3)), np.array([4]))


def test_non_zero_in_c_order():
    x = np.array([[0, NAN, -0.0], [INF, 0, 1]], np.float32)
    result = ordering.non_zero(x)
    assert result.dtype == np.int64
    assert result.tolist() == [[0, 1, 1], [1, 0, 2]]


@pytest.mark.parametrize(("value", "shape"), [(3, (0, 1)), (0, (0, 0)), (True, (0, 1))])
def test_non_zero_of_scalars_has_no_rows(value, shape):
    assert ordering.non_zero(np.array(value)).shape == shape


def test_non_zero_of_empty_and_string_tensors():
    assert ordering.non_zero(np.zeros((2, 0))).shape == (2, 0)
    assert ordering.non_zero(np.array(["", "a"], object)).tolist() == [[1]]


def lists(results):
    return [result.tolist() for result in results]


@pytest.mark.parametrize(
    ("is_sorted", "expected"),
    [
        (1, [[1, 2, 3, 4], [1, 0, 3, 4], [1, 0, 0, 2, 3, 2], [2, 1, 2, 1]]),
        (0, [[2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]]),
    ],
)
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, ml_dtypes.bfloat16])
def test_unique_of_elements(is_sorted, expected, shape, dtype):
    x = np.array([2, 1, 1, 3, 4, 3], dtype).reshape(shape)
    results = ordering.unique(x, sorted=is_sorted)
    assert lists(results) == expected
    assert [result.dtype for result in results] == [dtype, np.int64, np.int64, np.int64]


def test_unique_of_strings():
    x = np.array([["b", "a"], ["b", "c"]], object)
    assert lists(ordering.unique(x)) == [["a", "b", "c"], [1, 0, 3], [1, 0, 1, 2], [1, 2, 1]]
    assert lists(ordering.unique(x, sorted=0))[0] == ["b", "a", "c"]
    rows = np.array([["b", "a"], ["a", "z"], ["b", "a"]], object)
    by_row = ordering.unique(rows, axis=0)
    assert lists(by_row) == [[["a", "z"], ["b", "a"]], [1, 0], [1, 0, 1], [1, 2]]


@pytest.mark.parametrize("axis", [1, -1])
def test_unique_slices_in_lexicographic_or_first_order(axis):
    x = np.array([[2, -1, 2, -1], [0, 5, 0, 3]], np.float32)
    assert lists(ordering.unique(x, axis=axis)) == [
        [[-1, -1, 2], [3, 5, 0]],
        [3, 1, 0],
        [2, 1, 2, 0],
        [1, 1, 2],
    ]
    assert lists(ordering.unique(x, axis=axis, sorted=0)) == [
        [[2, -1, -1], [0, 5, 3]],
        [0, 1, 3],
        [0, 1, 0, 2],
        [2, 1, 1],
    ]


def test_unique_takes_nans_as_one_value_and_zeros_of_both_signs():
    x = np.array([NAN, 0, -0.0, NAN], np.float32)
    y, first, inverse, counts = ordering.unique(x)
    assert np.isnan(y).tolist() == [False, True]
    assert [first.tolist(), inverse.tolist(), counts.tolist()] == [[1, 0], [1, 0, 0, 1], [2, 2]]
    rows = ordering.unique(np.array([[NAN, 0], [NAN, -0.0]], np.float32), axis=0)
    assert rows[3].tolist() == [2]


def test_unique_of_nothing():
    assert lists(ordering.unique(np.zeros((0,)))) == [[], [], [], []]
    y, first, inverse, counts = ordering.unique(np.zeros((3, 0)), axis=0)
    assert (y.shape, first.tolist(), inverse.tolist(), counts.tolist()) == (
        (1, 0),
        [0],
        [0, 0, 0],
        [3],
    )
    assert ordering.unique(np.zeros((0, 3)), axis=0)[0].shape == (0, 3)
    assert lists(ordering.unique(np.array(7)))[0] == [7]
