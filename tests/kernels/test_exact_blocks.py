"""Blocks within which sums of products are exact."""

import numpy as np
import pytest

from foldline.kernels.exact_blocks import EXACT_SUM, SUMMED_COLUMNS, exact_spans, largest
from foldline.kernels.registry import Operand


def test_types_alone_bound_a_block():
    longest = EXACT_SUM // (255 * 128)
    assert exact_spans(longest, 255, 128) == [(0, longest)]
    assert len(exact_spans(longest + 1, 255, 128)) == 2
    assert exact_spans(0, 255, 128) == [(0, 0)]
    assert exact_spans(3, EXACT_SUM, 2) is None


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_the_column_with_the_greatest_sum_decides(dtype):
    sizes = np.zeros((2000, SUMMED_COLUMNS + 3), dtype)
    sizes[:, -1] = 100
    longest = EXACT_SUM // (255 * 100)
    assert exact_spans(2000, 255, 128, sizes)[0] == (0, longest)
    sizes[:, -1] = 0
    assert exact_spans(2000, 255, 128, sizes) == [(0, 2000)]


def test_the_least_byte_counts_128():
    sizes = np.full((1000, 1), -128, np.int8)
    assert exact_spans(1000, 255, 128, sizes)[0] == (0, EXACT_SUM // (255 * 128))


@pytest.mark.parametrize("zero", [np.array(200, np.uint8), np.array([100, 200], np.uint8)])
def test_zero_points_are_taken_away(zero):
    sizes = np.full((1000, 2), 100, np.uint8)
    assert exact_spans(1000, 255, 200, sizes, zero)[0] == (0, EXACT_SUM // (255 * 100))


def test_the_greatest_value_of_an_operand():
    byte, point = np.dtype(np.uint8), np.array(100, np.uint8)
    assert largest(Operand((3,), byte), None) == 255
    assert largest(Operand((3,), byte), Operand((), byte)) == 255
    assert largest(Operand((3,), byte), Operand((), byte, point)) == 155
