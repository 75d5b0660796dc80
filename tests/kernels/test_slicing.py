import numpy as np
import pytest

from foldline.kernels import slicing

LOWEST, HIGHEST = -(2**63), 2**63 - 1
LINE = np.arange(5)


def vector(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (1, 4, 1, [1, 2, 3]),
        (0, -1, 1, [0, 1, 2, 3]),
        (LOWEST, HIGHEST, 1, [0, 1, 2, 3, 4]),
        (3, 1, 1, []),
        (1, 4, HIGHEST, [1]),
        (HIGHEST, LOWEST, -1, [4, 3, 2, 1, 0]),
        (10, -10, -2, [4, 2, 0]),
        (-2, -9, -3, [3, 0]),
        (4, 0, -1, [4, 3, 2, 1]),
        (0, 0, -1, []),
        # A backward slice starts within the axis: ONNX clamps to 0 where Python gives nothing.
        (-1000, -2000, -1, [0]),
    ],
)
def test_slice_clamps_starts_and_ends(start, end, step, expected):
    result = slicing.slice_(LINE, vector(start), vector(end), None, vector(step))
    assert result.tolist() == expected


def test_slice_takes_axes_in_any_order_and_negative():
    data = np.arange(24).reshape(2, 3, 4)
    result = slicing.slice_(data, vector(1, 0), vector(3, 1), vector(-1, 0))
    assert result.tolist() == data[:1, :, 1:3].tolist()
    by_attribute = slicing.slice_by_attribute(data, starts=(1, 0), ends=(3, 1), axes=(-1, 0))
    assert by_attribute.tolist() == result.tolist()
    assert np.shares_memory(result, data)


def test_slice_of_an_empty_axis_backwards():
    data = np.zeros((0, 3))
    assert slicing.slice_(data, vector(5), vector(-9), vector(0), vector(-1)).shape == (0, 3)


def test_slice_refuses_step_zero_and_unknown_axes():
    with pytest.raises(ValueError, match="step cannot be zero"):
        slicing.slice_(LINE, vector(0), vector(1), vector(0), vector(0))
    with pytest.raises(np.exceptions.AxisError):
        slicing.slice_(LINE, vector(0), vector(1), vector(1))


@pytest.mark.parametrize(
    ("size", "count", "expected"),
    [(6, 3, [2, 2, 2]), (7, 3, [3, 3, 1]), (5, 4, [2, 2, 1, 0]), (0, 2, [0, 0])],
)
def test_split_into_equal_parts_leaves_the_last_smaller(size, count, expected):
    parts = slicing.split(np.arange(size), num_outputs=count, output_count=count)
    assert [len(part) for part in parts] == expected
    assert np.concatenate(parts).tolist() == list(range(size))


def test_split_by_lengths_as_input_or_attribute():
    data = np.arange(10).reshape(2, 5)
    expected = [data[:, :1].tolist(), [[], []], data[:, 1:].tolist()]
    lengths = vector(1, 0, 4)
    results = [
        slicing.split(data, lengths, axis=-1, output_count=3),
        slicing.split_by_attribute(data, axis=1, split=(1, 0, 4), output_count=3),
        slicing.split_1(data, lengths, axis=1, output_count=3),
        slicing.split_1(data, axis=1, split=(1, 0, 4), output_count=3),
    ]
    for parts in results:
        assert [part.tolist() for part in parts] == expected


def test_split_1_defaults_to_axis_0_and_equal_parts():
    first, second = slicing.split_1(np.arange(4).reshape(2, 2), output_count=2)
    assert (first.tolist(), second.tolist()) == ([[0, 1]], [[2, 3]])


@pytest.mark.parametrize("lengths", [(1, 2), (6, -1), (2, 2, 2)])
def test_split_refuses_lengths_that_do_not_fit(lengths):
    with pytest.raises(ValueError, match="cannot split axis 0 of size 5"):
        slicing.split(LINE, vector(*lengths), output_count=len(lengths))


def test_compress_with_and_without_axis():
    data = np.array([["a", "b"], ["c", "d"], ["e", "f"]], object)
    rows = slicing.compress(data, np.array([False, True]), axis=0)
    assert rows.tolist() == [["c", "d"]]
    flat = slicing.compress(data, np.array([True, False, False, True]))
    assert flat.tolist() == ["a", "d"]
    with pytest.raises(IndexError):
        slicing.compress(data, np.array([False, False, True]), axis=1)
