import numpy as np
import pytest

from foldline.kernels import sequence as seq

A, B = np.array([1, 2]), np.array([3, 4])


def values(sequence):
    return [tensor.tolist() for tensor in sequence]


def test_construct_copies_and_empty_is_empty():
    made = seq.sequence_construct(A, B)
    assert values(made) == [[1, 2], [3, 4]]
    assert not any(np.shares_memory(tensor, A) for tensor in made)
    assert seq.sequence_empty(dtype=1) == []


def test_at_and_length():
    assert seq.sequence_at([A, B], np.array(-2)) is A
    length = seq.sequence_length([A, B])
    assert (length.dtype, length.shape, length.item()) == (np.int64, (), 2)


@pytest.mark.parametrize("position", [2, -3])
def test_at_and_erase_refuse_a_position_out_of_bounds(position):
    message = f"position {position} is out of bounds for a sequence of 2"
    for kernel in (seq.sequence_at, seq.sequence_erase):
        with pytest.raises(IndexError, match=message):
            kernel([A, B], np.array(position))


@pytest.mark.parametrize(
    ("position", "expected"), [(None, 2), (2, 2), (0, 0), (-1, 1), (-2, 0), (1, 1)]
)
def test_insert_before_a_position(position, expected):
    given = [A, B]
    new = np.array([9])
    made = seq.sequence_insert(given, new, None if position is None else np.array(position))
    assert [tensor.tolist() == [9] for tensor in made].index(True) == expected
    assert len(made) == 3
    assert values(given) == [[1, 2], [3, 4]]
    assert not np.shares_memory(made[expected], new)


def test_insert_refuses_a_position_out_of_bounds():
    with pytest.raises(IndexError, match="position 3"):
        seq.sequence_insert([A, B], A, np.array(3))


def test_erase_makes_a_new_list():
    given = [A, B]
    assert values(seq.sequence_erase(given)) == [[1, 2]]
    assert values(seq.sequence_erase(given, np.array(0))) == [[3, 4]]
    assert len(given) == 2
    with pytest.raises(IndexError, match="sequence of 0"):
        seq.sequence_erase([])


def test_concat_along_an_old_or_a_new_axis():
    assert seq.concat_from_sequence([A, B], axis=0).tolist() == [1, 2, 3, 4]
    assert seq.concat_from_sequence([A, B], axis=0, new_axis=1).tolist() == [[1, 2], [3, 4]]
    assert seq.concat_from_sequence([A, B], axis=-1, new_axis=1).tolist() == [[1, 3], [2, 4]]
    out = np.empty(4, A.dtype)
    assert seq.concat_from_sequence([A, B], axis=0, out=out) is out


@pytest.mark.parametrize(
    ("split", "keepdims", "expected"),
    [
        (None, 1, [[[0, 1]], [[2, 3]], [[4, 5]]]),
        (None, 0, [[0, 1], [2, 3], [4, 5]]),
        (2, 0, [[[0, 1], [2, 3]], [[4, 5]]]),
        (9, 1, [[[0, 1], [2, 3], [4, 5]]]),
        ([1, 2], 0, [[[0, 1]], [[2, 3], [4, 5]]]),
        ([3, 0], 1, [[[0, 1], [2, 3], [4, 5]], []]),
    ],
)
def test_split_to_sequence(split, keepdims, expected):
    data = np.arange(6).reshape(3, 2)
    given = None if split is None else np.array(split)
    assert values(seq.split_to_sequence(data, given, keepdims=keepdims)) == expected


def test_split_to_sequence_of_an_empty_axis():
    assert seq.split_to_sequence(np.zeros((2, 0)), axis=1) == []
    with pytest.raises(ValueError, match="cannot split"):
        seq.split_to_sequence(np.zeros((2, 3)), np.array([1, 1]), axis=1)


def test_optionals_hold_tensors_sequences_or_nothing():
    given = [A]
    assert seq.optional(A) is A
    assert seq.optional(given) is given
    assert seq.optional(type="tensor(int64)") is None
    assert seq.optional_get_element(A) is A
    for value, expected in ((A, True), ([], True), (None, False)):
        has = seq.optional_has_element(value)
        assert (has.dtype, has.shape, has.item()) == (np.bool_, (), expected)
    assert not seq.optional_has_element()
    with pytest.raises(ValueError, match="empty"):
        seq.optional_get_element(None)
