import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import gather_scatter as gs

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    ("indices", "axis"),
    [([0, 2, 2], 0), ([[-1, 0], [3, -4]], 1), (-2, -1), (1, 0), ([], 0), ([[]], 1)],
)
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_gather_puts_the_shape_of_the_indices_in_place_of_the_axis(indices, axis, index_type):
    places = np.array(indices, index_type)
    expected = X.take(places, axis)
    result = gs.gather(X, places, axis=axis)
    assert result.tolist() == expected.tolist()
    out = np.full_like(expected, 99)
    assert gs.gather(X, places, axis=axis, out=out) is out
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [object, np.bool_, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_gather_of_one_element_is_an_array_of_its_dtype(dtype):
    result = gs.gather(np.array([0, 1], dtype), np.array(-1))
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == ((), dtype)
    assert result.item() == 1


@pytest.mark.parametrize("index", [4, -5, 2**40])
def test_gather_names_an_index_out_of_range(index):
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 1.*-4 to 3"):
        gs.gather(X, np.array([0, index]), axis=1)


def test_gather_of_nothing_from_an_empty_axis():
    assert gs.gather(np.zeros((0, 2)), np.zeros((3, 0), np.int64)).shape == (3, 0, 2)


def test_gather_elements_may_read_fewer_rows_than_there_are():
    indices = np.array([[-1, 0, 0], [2, 2, 1]])
    assert gs.gather_elements(X, indices, axis=1).tolist() == [[3, 0, 0], [6, 6, 5]]
    assert gs.gather_elements(X, indices).tolist() == [[8, 1, 2], [8, 9, 6]]
    assert gs.gather_elements(X, np.zeros((3, 0), np.int64), axis=1).shape == (3, 0)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 1"):
        gs.gather_elements(X, np.array([[4]]), axis=1)


def test_gather_nd_takes_elements_and_slices():
    assert gs.gather_nd(X, np.array([[0, -1], [2, 1]])).tolist() == [3, 9]
    assert gs.gather_nd(X, np.array([[[1]], [[-1]]])).tolist() == [[X[1].tolist()], [X[2].tolist()]]
    single = gs.gather_nd(np.array(["a", "b"], object), np.array([1]))
    assert (single.shape, single.dtype, single.item()) == ((), object, "b")
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 1"):
        gs.gather_nd(X, np.array([[0, 4]]))


def test_gather_nd_walks_batch_axes_together():
    data = np.arange(24).reshape(2, 3, 4)
    indices = np.array([[[2], [0]], [[1], [-1]]])
    expected = [[data[0, 2].tolist(), data[0, 0].tolist()], data[1, 1:].tolist()]
    assert gs.gather_nd(data, indices, batch_dims=1).tolist() == expected
    pairs = np.array([[3], [2], [1]])[None].repeat(2, 0)
    assert gs.gather_nd(data, pairs, batch_dims=2).tolist() == [[3, 6, 9], [15, 18, 21]]


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("none", 5), ("add", 10 + 2 + 3 + 5), ("mul", 300), ("max", 10), ("min", 2)],
)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64, np.float64]
)
def test_scatter_applies_all_updates_of_one_place(reduction, expected, dtype):
    data = np.array([10, 1], dtype)
    updates = np.array([2, 3, 5], dtype)
    if dtype is np.int8 and reduction == "mul":
        expected -= 256
    by_element = gs.scatter_elements(data, np.array([0, -2, 0]), updates, reduction=reduction)
    by_tuple = gs.scatter_nd(data, np.array([[0], [-2], [0]]), updates, reduction=reduction)
    assert by_element.dtype == by_tuple.dtype == dtype
    assert by_element.tolist() == by_tuple.tolist() == [expected, 1]
    assert data.tolist() == [10, 1]


def test_scatter_adds_in_the_order_of_the_indices():
    updates = np.array([1e8, 1, -1e8, 1], np.float32)
    index = np.zeros(4, np.int64)
    result = gs.scatter_elements(np.zeros(1, np.float32), index, updates, reduction="add")
    assert result.tolist() == [1]


def test_scatter_max_keeps_nan():
    data = np.array([np.nan, 1], np.float32)
    updates = np.array([2, np.nan], np.float32)
    with np.errstate(invalid="ignore"):
        result = gs.scatter_elements(data, np.array([0, 1]), updates, reduction="max")
    assert np.isnan(result).all()


def test_scatter_elements_along_an_axis():
    data = np.zeros((2, 3), np.int64)
    indices, updates = np.array([[2, 0], [-1, 1]]), np.array([[1, 2], [3, 4]])
    along = gs.scatter_elements(data, indices, updates, axis=1)
    assert along.tolist() == [[2, 0, 1], [0, 4, 3]]
    assert gs.scatter(data, indices, updates, axis=-1).tolist() == along.tolist()


def test_scatter_nd_writes_slices_and_strings():
    data = np.array([["a", "b"], ["c", "d"]], object)
    result = gs.scatter_nd(data, np.array([[-1]]), np.array([["x", "y"]], object))
    assert result.tolist() == [["a", "b"], ["x", "y"]]


def test_scatter_with_no_updates_copies():
    result = gs.scatter_nd(X, np.zeros((0, 1), np.int64), np.zeros((0, 4), np.float32))
    assert result.tolist() == X.tolist()
    assert not np.shares_memory(result, X)


def test_scatter_names_an_index_out_of_range():
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0"):
        gs.scatter_nd(X, np.array([[3]]), X[:1])
    with pytest.raises(IndexError, match="index -5 is out of bounds for axis 1"):
        gs.scatter_elements(X, np.array([[-5]]), X[:1, :1], axis=1)


def test_scatter_in_place():
    data = X.copy()
    assert gs.scatter_nd(data, np.array([[0, 0]]), np.array([9], np.float32), out=data) is data
    assert data[0].tolist() == [9, 1, 2, 3]


def test_tensor_scatter_writes_every_sample_at_its_place():
    cache = np.zeros((2, 1, 4, 1), np.float32)
    update = np.array([[1, 2], [3, 4]], np.float32).reshape(2, 1, 2, 1)
    result = gs.tensor_scatter(cache, update, np.array([2, 0]))
    assert result[:, 0, :, 0].tolist() == [[0, 0, 1, 2], [3, 4, 0, 0]]
    first = gs.tensor_scatter(cache, update)
    assert first[:, 0, :, 0].tolist() == [[1, 2, 0, 0], [3, 4, 0, 0]]
    assert not cache.any()


def test_tensor_scatter_wraps_around_or_refuses():
    cache = np.zeros((1, 3), np.int32)
    update, start = np.array([[7, 8]], np.int32), np.array([2])
    circular = gs.tensor_scatter(cache, update, start, axis=1, mode="circular")
    assert circular.tolist() == [[8, 0, 7]]
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        gs.tensor_scatter(cache, update, start, axis=1)
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        gs.tensor_scatter(cache, update, np.array([-1]), axis=1)
