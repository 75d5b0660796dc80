"""Sums as one binary tree: against the definition, and whatever the layout."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from foldline.kernels.exact_sums import tree_mean, tree_product, tree_sum


def by_definition(values: list[np.float32]) -> np.float32:
    """The tree, a number at a time."""
    while len(values) > 1:
        half = 1
        while half * 2 < len(values):
            half *= 2
        low, high = values[:half], values[half:]
        values = [a + b for a, b in zip(low, high, strict=False)] + low[len(high) :]
    return values[0]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 100])
def test_the_definition(count: int) -> None:
    x = np.random.default_rng(count).standard_normal((3, count)).astype(np.float32)
    expected = [by_definition(list(row)) for row in x]
    assert tree_sum(x, (1,)).tolist() == expected
    assert tree_mean(x, (1,)).tolist() == [total / np.float32(count) for total in expected]


def test_layout_and_slices_do_not_matter() -> None:
    x = np.random.default_rng(0).standard_normal((5, 6, 7)).astype(np.float32)
    whole = tree_sum(x, (1,))
    assert tree_sum(np.asfortranarray(x), (1,)).tobytes() == whole.tobytes()
    assert tree_sum(x[1:4], (1,)).tobytes() == whole[1:4].tobytes()
    assert tree_sum(np.repeat(x, 2, axis=2)[:, :, ::2], (1,)).tobytes() == whole.tobytes()
    flat = x.transpose(0, 2, 1).reshape(35, 6)
    assert tree_sum(flat, (1,)).tobytes() == whole.tobytes()


def test_axes_are_taken_in_order() -> None:
    x = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)
    for axes in ((0, 2), (2, 0), (-1, 0)):
        expected = tree_sum(x.transpose(0, 2, 1).reshape(15, 4), (0,))
        assert tree_sum(x, axes).tobytes() == expected.tobytes()
    assert tree_sum(x, None).shape == ()
    assert tree_sum(x, None, True).shape == (1, 1, 1)
    assert tree_sum(x, (0, 2), True).shape == (1, 4, 1)


def test_no_elements() -> None:
    assert tree_sum(np.zeros((2, 0), np.float32), (1,)).tolist() == [0, 0]
    assert tree_product(np.zeros((2, 0), np.float32), (1,)).tolist() == [1, 1]
    mean = tree_mean(np.zeros((2, 0), np.float32), (1,))
    assert (mean.view(np.uint32) == 0x7FC00000).all()
    assert tree_sum(np.zeros((0, 2), np.float32), (1,)).shape == (0,)


def test_special_values() -> None:
    x = np.array([[np.inf, -np.inf], [-0.0, -0.0], [np.inf, 1]], np.float32)
    total = tree_sum(x, (1,))
    assert total[:1].view(np.uint32) == 0x7FC00000
    assert np.signbit(total[1])
    assert total[2] == np.inf
    lonely = np.array([[0xFFC00001]], np.uint32).view(np.float32)
    assert tree_sum(lonely, (1,)).view(np.uint32) == 0x7FC00000


def test_integers_wrap_around() -> None:
    x = np.array([[127, 1, 2]], np.int8)
    assert tree_sum(x, (1,)).tolist() == [-126]
    assert tree_product(np.array([16, 17], np.int8), None) == np.int8(272 - 256)


def test_the_input_is_not_written() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    x.flags.writeable = False
    for axes in itertools.chain([None], itertools.combinations(range(2), 1)):
        tree_sum(x, axes)
