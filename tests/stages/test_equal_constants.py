"""The table of constants by their bits: what is one entry, and how little is read for it."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.dialects.onnx.tensor import Array, Tensor, splat
from foldline.stages.equal_constants import TensorTable


def same(one: Array, other: Array) -> bool:
    table: TensorTable[str] = TensorTable()
    table.find_or_add(Tensor(one), "one")
    return table.find_or_add(Tensor(other), "other") == "one"


LONG = np.arange(100, dtype=np.int64)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (LONG, LONG.copy(), True),
        (LONG, LONG.astype(np.int32), False),
        (LONG, LONG.reshape(10, 10), False),
        (LONG, np.append(LONG[:-1], 7), False),
        (np.float32([0.0]), np.float32([-0.0]), False),
        (np.array(["a", "b"], object), np.array(["a", "b"], object), True),
        (np.array(["a", "b"], object), np.array(["ab", ""], object), False),
        (splat(3, (5, 5), np.int64), splat(3, (5, 5), np.int64), True),
        (splat(3, (5, 5), np.int64), splat(4, (5, 5), np.int64), False),
        (splat(3, (5, 5), np.int64), np.full((5, 5), 3), True),
        (np.append(np.full(20, 3), 4), splat(3, (21,), np.int64), False),
    ],
)
def test_one_entry_for_type_shape_and_bits(one: Array, other: Array, expected: bool) -> None:
    assert same(one, other) is expected


def test_three_that_begin_alike() -> None:
    table: TensorTable[int] = TensorTable()
    arrays = [np.append(LONG, last) for last in (1, 2, 3)]
    assert [table.find_or_add(Tensor(a), i) for i, a in enumerate(arrays)] == [0, 1, 2]
    assert [table.find_or_add(Tensor(a.copy()), 9) for a in arrays] == [0, 1, 2]


def test_an_inner_table_adds_nothing_outside() -> None:
    outer: TensorTable[str] = TensorTable()
    outer.find_or_add(Tensor(LONG), "outer")
    inner = outer.inner()
    assert inner.find_or_add(Tensor(LONG), "inner") == "outer"
    inner.find_or_add(Tensor(LONG[:3]), "inner")
    assert outer.find_or_add(Tensor(LONG[:3]), "later") == "later"


def test_a_splat_costs_one_element() -> None:
    table: TensorTable[str] = TensorTable()
    huge = splat(1, (1 << 30, 1 << 10), np.float64)
    table.find_or_add(Tensor(huge), "huge")
    assert table.find_or_add(Tensor(splat(1, huge.shape, np.float64)), "other") == "huge"
