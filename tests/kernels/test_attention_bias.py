import numpy as np
import pytest

from foldline.kernels.attention_bias import Visibility, attention_bias, fully_masked

FLOAT = np.dtype(np.float32)
INF = np.inf


def seen(visibility, offset=0):
    return visibility.allowed(offset).astype(int).tolist()


def test_windows():
    assert seen(Visibility.of(3, 4, 1, -1, -1)) == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert seen(Visibility.of(2, 4, 0, 1, 1), 1) == [[1, 1, 1, 0], [0, 1, 1, 1]]
    assert seen(Visibility.of(2, 3, 1, 0, 5)) == [[1, 0, 0], [0, 1, 0]]  # causal is narrower
    assert seen(Visibility.of(2, 2, 1, -1, -1), -1) == [[0, 0], [1, 0]]
    assert not Visibility.of(2, 2, 0, -1, -1).is_bounded
    with pytest.raises(ValueError, match="window sizes are -1 and -3"):
        Visibility.of(2, 2, 0, -1, -3)


@pytest.mark.parametrize("bounds", [(0, -1, -1), (1, -1, -1), (0, 2, 1), (1, 0, -1), (0, -1, 3)])
@pytest.mark.parametrize("offset", [-4, 0, 3])
def test_key_range_is_what_rows_see(bounds, offset):
    visibility = Visibility.of(8, 9, *bounds)
    for start, stop in ((0, 3), (3, 8), (7, 8)):
        keys = visibility.key_range(slice(start, stop), offset)
        used = visibility.allowed(offset)[start:stop].any(axis=0).nonzero()[0].tolist()
        assert list(range(9))[keys] == used


def test_nothing_to_add():
    assert attention_bias(Visibility(2, 3), None, 0, None, FLOAT) is None
    assert fully_masked(None) is None


def test_masks_are_extended_and_combined():
    causal = Visibility.of(2, 3, 1, -1, -1)
    bias = attention_bias(causal, np.array([[False, True]]), 1, None, FLOAT)
    assert bias.dtype == FLOAT
    assert bias.tolist() == [[-INF, 0, -INF], [-INF, 0, -INF]]
    bias = attention_bias(causal, np.array([[2.0, 3.0]]), 0, None, FLOAT)
    assert bias.tolist() == [[2, -INF, -INF], [2, 3, -INF]]


def test_lengths_hide_padding_and_move_the_queries():
    bias = attention_bias(Visibility(1, 3), None, 0, np.array([1, 3]), FLOAT)
    assert bias.tolist() == [[[[0, -INF, -INF]]], [[[0, 0, 0]]]]
    causal = Visibility.of(2, 3, 1, -1, -1)
    bias = attention_bias(causal, None, 0, np.array([3, 1]), FLOAT)
    assert bias[0, 0].tolist() == [[0, 0, -INF], [0, 0, 0]]
    assert bias[1, 0].tolist() == [[-INF] * 3, [0, -INF, -INF]]
    assert fully_masked(bias)[..., 0].tolist() == [[[False, False]], [[True, False]]]
