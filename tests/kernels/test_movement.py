import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import movement


def vector(*values):
    return np.array(values, np.int64)


def test_concat_joins_parts_of_any_size():
    parts = (np.ones((2, 1)), np.zeros((2, 0)), np.full((2, 2), 3.0))
    expected = [[1, 3, 3], [1, 3, 3]]
    assert movement.concat(*parts, axis=-1).tolist() == expected
    out = np.empty((2, 3))
    assert movement.concat(*parts, axis=1, out=out) is out
    assert out.tolist() == expected
    assert movement.concat_1(*parts).tolist() == expected
    rows = (np.ones((1, 2)), np.zeros((2, 2)))
    assert movement.concat_1(*rows, axis=0).tolist() == [[1, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize("dtype", [object, ml_dtypes.bfloat16, ml_dtypes.int4, np.bool_])
def test_concat_keeps_the_dtype(dtype):
    part = np.array([0, 1], dtype)
    result = movement.concat(part, part, axis=0)
    assert result.dtype == dtype
    assert result.tolist() == [*part.tolist(), *part.tolist()]


def test_concat_refuses_sizes_that_differ():
    with pytest.raises(ValueError, match="must match exactly"):
        movement.concat(np.ones((2, 1)), np.ones((3, 1)), axis=1)


@pytest.mark.parametrize(
    ("data", "repeats"),
    [
        (np.arange(6).reshape(2, 3), (2, 1)),
        (np.arange(6).reshape(2, 3), (1, 3)),
        (np.arange(6).reshape(2, 3), (2, 0)),
        (np.zeros((0, 2)), (3, 2)),
        (np.array(["a", "b"], object), (2,)),
        (np.array(5), ()),
    ],
)
def test_tile_agrees_with_numpy(data, repeats):
    expected = np.tile(data, repeats)
    result = movement.tile(data, vector(*repeats))
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert result.tolist() == expected.tolist()
    out = np.empty_like(expected)
    assert movement.tile(data, vector(*repeats), out=out) is out
    assert out.tolist() == expected.tolist()


def test_tile_1_repeats_one_axis():
    result = movement.tile_axis(np.array([[1, 2]]), np.array([2]), np.array([1]))
    assert result.tolist() == [[1, 2, 1, 2]]


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_and_back(mode):
    # One row of two pixels, eight channels: value = 2 * channel + column.
    data = np.arange(16, dtype=np.int8).reshape(1, 8, 1, 2)
    result = movement.depth_to_space(data, blocksize=2, mode=mode)
    assert result.shape == (1, 2, 2, 4)
    rows = result.reshape(4, 4)
    column_of, channel_of = rows % 2, rows // 2
    assert (column_of == [0, 0, 1, 1]).all()
    depth = np.array([0, 0, 1, 1])[:, None]
    block = np.array([[0, 1, 0, 1], [2, 3, 2, 3]] * 2)
    wanted = block * 2 + depth if mode == "DCR" else depth * 4 + block
    assert (channel_of == wanted).all()
    back = movement.space_to_depth(result, blocksize=2, mode=mode)
    assert back.tolist() == data.tolist()


def test_depth_to_space_writes_to_out_and_never_aliases():
    data = np.arange(4.0).reshape(1, 4, 1, 1)
    out = np.empty((1, 1, 2, 2))
    assert movement.depth_to_space(data, blocksize=2, out=out) is out
    assert out.ravel().tolist() == [0, 1, 2, 3]
    assert not np.shares_memory(movement.space_to_depth(data, blocksize=1), data)


def test_reverse_sequence_along_either_axis():
    data = np.arange(12).reshape(4, 3)
    by_time = movement.reverse_sequence(data, vector(4, 1, 2))
    assert by_time.tolist() == [[9, 1, 5], [6, 4, 2], [3, 7, 8], [0, 10, 11]]
    by_batch = movement.reverse_sequence(data.T, vector(4, 1, 2), batch_axis=0, time_axis=1)
    assert by_batch.tolist() == by_time.T.tolist()


def test_reverse_sequence_moves_whole_entries_and_length_zero_does_nothing():
    data = np.arange(8).reshape(2, 2, 2)
    result = movement.reverse_sequence(data, vector(2, 0))
    assert result.tolist() == [[[4, 5], [2, 3]], [[0, 1], [6, 7]]]


@pytest.mark.parametrize("k", [0, 1, -2, 2, 2**62, -(2**62)])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 2), (0, 3), (2, 3, 0)])
def test_trilu_agrees_with_numpy(k, upper, shape):
    data = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    nearby = max(-9, min(k, 9))
    expected = np.triu(data, nearby) if upper else np.tril(data, nearby)
    assert movement.trilu(data, np.array(k), upper=upper).tolist() == expected.tolist()


def test_trilu_of_booleans():
    result = movement.trilu(np.ones((2, 3), bool), upper=0)
    assert result.dtype == np.bool_
    assert result.tolist() == [[True, False, False], [True, True, False]]


def test_trilu_drops_nan_and_works_in_place():
    data = np.array([[1, np.nan], [np.nan, 4]])
    result = movement.trilu(data, out=data)
    assert result is data
    assert data[1].tolist() == [0, 4]
    assert np.isnan(data[0, 1])
