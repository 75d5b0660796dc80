import numpy as np
import pytest

from foldline.kernels import gather_scatter as gs

REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
SHAPES = [(5,), (7, 3), (9, 16), (6, 5, 4), (4, 40), (3, 0)]


def _drawn(random, shape, dtype):
    x = random.standard_normal(shape) * 4
    if np.dtype(dtype).kind == "f" and x.size > 8:
        x.reshape(-1)[:4] = np.nan, np.inf, -np.inf, -0.0
    return x.astype(dtype)


def _rows(random, rows, count, skewed):
    return random.integers(0, 1 if skewed else rows, count) - random.integers(0, 2, count) * rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_updates_are_combined_one_after_another(dtype, reduction, shape, skewed):
    random = np.random.default_rng(len(shape))
    for count in (0, 1, 40):
        data = _drawn(random, shape, dtype)
        rows = _rows(random, shape[0], count, skewed)
        updates = _drawn(random, (count, *shape[1:]), dtype)
        expected = data.copy()
        REDUCTIONS[reduction].at(expected, rows % shape[0], updates)
        column = rows.reshape(-1, *(1,) * (len(shape) - 1))
        seen = np.broadcast_to(column, updates.shape)
        results = [
            gs.scatter_elements(data, seen, updates, reduction=reduction),
            gs.scatter_elements(data, seen.copy(), updates, reduction=reduction),
            gs.scatter_nd(data, rows[:, None], updates, reduction=reduction),
        ]
        for result in results:
            assert result.dtype == dtype
            assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_of_fewer_columns_and_other_axes(axis):
    random = np.random.default_rng(7)
    data = random.standard_normal((6, 20)).astype(np.float32)
    indices = random.integers(-6, 6, (4, 17))
    updates = random.standard_normal((4, 17)).astype(np.float32)
    expected = data.copy()
    places = list(np.ogrid[:4, :17])
    places[axis] = indices % data.shape[axis]
    np.add.at(expected, tuple(places), updates)
    result = gs.scatter_elements(data, indices, updates, axis=axis, reduction="add")
    assert result.tobytes() == expected.tobytes()


def test_one_index_seen_under_fewer_columns_than_there_are():
    data, updates = np.zeros((3, 4), np.float32), np.ones((5, 2), np.float32)
    indices = np.broadcast_to(np.array([[0], [1], [1], [-1], [1]]), (5, 2))
    result = gs.scatter_elements(data, indices, updates, reduction="add")
    assert result.tolist() == [[1, 1, 0, 0], [3, 3, 0, 0], [1, 1, 0, 0]]


def test_elements_and_slices_at_tuples_of_indices():
    data = np.zeros((2, 3, 20), np.float32)
    indices = np.array([[1, -1], [0, 0], [1, 2], [1, 2], [0, 0]])
    updates = np.arange(100, dtype=np.float32).reshape(5, 20)
    result = gs.scatter_nd(data, indices, updates, reduction="add")
    assert result[1, 2].tolist() == (updates[0] + updates[2] + updates[3]).tolist()
    assert result[0, 0].tolist() == (updates[1] + updates[4]).tolist()
    whole = gs.scatter_nd(data, np.zeros((3, 0), np.int64), np.ones((3, 2, 3, 20), np.float32),
                          reduction="add")  # fmt: skip
    assert whole.tolist() == np.full((2, 3, 20), 3).tolist()


def test_rows_out_of_range_are_named():
    data, updates = np.zeros((3, 4), np.float32), np.ones((2, 4), np.float32)
    indices = np.broadcast_to(np.array([[0], [3]]), (2, 4))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0"):
        gs.scatter_elements(data, indices, updates, reduction="add")
