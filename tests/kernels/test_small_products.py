"""Products in blocks that OpenBLAS multiplies where they lie: every element, in no large block."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.kernels.small_products import SMALL_WORK, block_product, in_strips, row_blocks


def _normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("work", [1, 64 * 40, 64 * 384, 64 * 1536, 64 * 3906, 300_000, 999_999])
def test_blocks_hold_all_rows_and_are_small(work):
    for rows in (*range(2, 140), 197, 1024, 1025):
        held = np.zeros(rows, int)
        for start, number, size in row_blocks(rows, work):
            held[start : start + number * size] += 1
            assert size * work <= SMALL_WORK or size <= 2
            assert size > 1 or work > SMALL_WORK // 2
            assert size % 4 == 0 or number == 1 or work > SMALL_WORK // 4
        assert held.min() == 1
        assert held.sum() - rows <= 1


def test_blocks_are_as_equal_as_fours_allow():
    assert list(row_blocks(128, 384 * 64)) == [(0, 4, 32)]
    assert list(row_blocks(197, 384 * 64)) == [(0, 4, 40), (160, 1, 37)]
    assert list(row_blocks(20, 384 * 64)) == [(0, 1, 20)]
    assert list(row_blocks(3, 64)) == [(0, 1, 3)]
    assert list(row_blocks(41, 1536 * 64)) == [(0, 5, 8), (39, 1, 2)]


@pytest.mark.parametrize("stack", [(), (2, 3)])
@pytest.mark.parametrize(
    ("m", "k", "n", "width"), [(7, 5, 6, 6), (7, 5, 6, 2), (61, 700, 80, 32), (2, 3, 7, 3)]
)
def test_product(stack, m, k, n, width):
    a, b = _normal(*stack, m, k), _normal(*stack, k, n)
    out = np.full((*stack, m, n), np.nan, np.float32)
    for call in block_product(a, in_strips(b, width), out):
        call()
    np.testing.assert_allclose(out, a.astype(float) @ b, rtol=1e-4, atol=1e-4)


def test_rows_by_column_and_strided_results():
    a, b = np.asfortranarray(_normal(101, 400)), _normal(400, 70)
    wide = np.full((101, 90), np.nan, np.float32)
    calls = block_product(a, in_strips(b, 32), wide[:, 10:80])
    assert 101 * 400 * 32 > SMALL_WORK
    assert len(calls) == 4
    for call in calls:
        call()
    np.testing.assert_allclose(wide[:, 10:80], a.astype(float) @ b, rtol=1e-4, atol=1e-4)
    assert np.isnan(wide[:, :10]).all()
    assert np.isnan(wide[:, 80:]).all()
