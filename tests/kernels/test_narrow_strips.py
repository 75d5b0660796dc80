"""Products with narrow weights in strips: values, tiles, threads, and how long strips are kept."""

import gc
import weakref

import numpy as np
import pytest

from foldline.kernels.narrow_strips import (
    LEAST_ROWS,
    PIECE_BYTES,
    VIEWED_ROW,
    NarrowProduct,
    narrow_strips,
    suits_narrow_strips,
)
from foldline.kernels.parallel import use_threads
from foldline.kernels.strips import WIDTH

SIZES = [(16, 500, 1030), (17, 300, 64), (33, 1100, 70), (64, 3900, 130), (200, 40, 127)]


def integers(*shape, dtype=np.int8, seed=0):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


def product(a, b, zero=None, apply=None):
    assert suits_narrow_strips(len(a), *b.shape)
    out = np.full((len(a), b.shape[1]), np.nan, np.float32)
    NarrowProduct(len(a), *b.shape)(a, narrow_strips(b, zero, 0, len(b)), out, apply)
    return out


def left(rows, k):
    return integers(rows, k, seed=1).clip(-20, 20).astype(np.float32)


@pytest.mark.parametrize(("rows", "k", "n"), SIZES)
@pytest.mark.parametrize(
    ("dtype", "zero"), [(np.int8, 0), (np.int8, -128), (np.uint8, 0), (np.uint8, 130)]
)
def test_products_of_any_sizes(rows, k, n, dtype, zero):
    a, b = left(rows, k), integers(k, n, dtype=dtype)
    wanted = a.astype(np.int64) @ (b.astype(np.int64) - zero)
    np.testing.assert_array_equal(product(a, b, np.array(zero, dtype)), wanted)


def test_a_zero_point_for_each_column_and_other_strides():
    a, b = left(20, 90), integers(140, 90, dtype=np.uint8).T
    zero = integers(140, dtype=np.uint8, seed=2)
    wanted = a.astype(np.int64) @ (b.astype(np.int64) - zero)
    for points in (zero, zero[None]):
        np.testing.assert_array_equal(product(a, b, points), wanted)


@pytest.mark.parametrize(("rows", "k", "n"), SIZES)
def test_every_element_is_finished_once(rows, k, n):
    a, b = left(rows, k), integers(k, n)

    def apply(tile, row0, col0, rows, cols):
        assert tile.shape == (rows, cols)
        tile += np.arange(col0, col0 + cols) - 7 * np.arange(row0, row0 + rows)[:, None]

    places = np.arange(n) - 7 * np.arange(rows)[:, None]
    wanted = a.astype(np.int64) @ b.astype(np.int64) + places
    np.testing.assert_array_equal(product(a, b, apply=apply), wanted)


def test_pieces_on_two_threads():
    k, n = 1000, 3 * PIECE_BYTES // 4000 + 5
    a, b = left(16, k), integers(k, n)
    with use_threads(2):
        np.testing.assert_array_equal(product(a, b), a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize(
    ("dtype", "zero", "wanted"),
    [
        (np.int8, None, (np.int8, None)),
        (np.int8, 1, (np.int8, -1)),
        (np.uint8, None, (np.uint8, None)),
        (np.uint8, 128, (np.int8, None)),
        (np.uint8, 130, (np.int8, -2)),
        (np.uint8, range(100), (np.int16, None)),
    ],
)
def test_a_byte_holds_the_weights_unless_zero_points_differ(dtype, zero, wanted):
    b = integers(100, 100, dtype=dtype)
    strips = narrow_strips(b, None if zero is None else np.array(zero, dtype), 0, 100)
    assert (strips.whole.dtype, strips.offset) == wanted


@pytest.mark.parametrize(("rows", "k", "n"), [(16, 33, 64), (50, 512, 2048), (90, 700, 256)])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("threads", [1, 2])
def test_products_with_strips_that_are_read_where_they_are(rows, k, n, dtype, threads):
    a, weights = left(rows, k), integers(2, k, n, dtype=dtype)
    for b in weights:
        strips = narrow_strips(b, None, 0, k)
        assert np.shares_memory(strips.whole, b)
        with use_threads(threads):
            result = product(a, b)
        np.testing.assert_array_equal(result, a.astype(np.int64) @ b.astype(np.int64))
    part = narrow_strips(weights[1], None, 5, 31)
    np.testing.assert_array_equal(part.whole[0], weights[1, 5:31, :WIDTH])


@pytest.mark.parametrize(
    ("b", "zero"),
    [
        (integers(100, VIEWED_ROW + WIDTH), None),
        (integers(100, 100), None),
        (integers(128, 100).T, None),
        (integers(100, 128)[:, :64], None),
        (integers(100, 128), np.int8(1)),
    ],
)
def test_other_strips_are_copies(b, zero):
    strips = narrow_strips(b, None if zero is None else np.asarray(zero), 0, 100)
    assert strips.viewed is None
    assert not np.shares_memory(strips.whole, b)


def test_strips_that_are_views_keep_no_weights_alive():
    b = integers(100, 128)
    dead = weakref.ref(b)
    narrow_strips(b, None, 0, 100)
    del b
    gc.collect()
    assert dead() is None


def test_strips_are_kept_as_long_as_the_weights():
    b = integers(100, 100)
    first = narrow_strips(b, None, 0, 100)
    assert narrow_strips(b[:], np.zeros((), np.int8), 0, 100) is first
    assert narrow_strips(b, np.ones((), np.int8), 0, 100) is not first
    assert narrow_strips(b, None, 0, 50).whole.shape == (2, 50, WIDTH)
    assert not np.shares_memory(first.whole, b)
    address = b.ctypes.data
    del b
    gc.collect()
    from foldline.kernels.packed_weights import _kept

    assert not [key for key in _kept if key[0] == address]


def test_what_suits():
    assert suits_narrow_strips(LEAST_ROWS, 3900, WIDTH)
    assert not suits_narrow_strips(LEAST_ROWS - 1, 3900, WIDTH)
    assert not suits_narrow_strips(LEAST_ROWS, 4000, WIDTH)
    assert not suits_narrow_strips(LEAST_ROWS, 3900, WIDTH - 1)
    assert not suits_narrow_strips(LEAST_ROWS, 0, WIDTH)


def test_memory_to_widen_in_is_used_again_for_other_sizes():
    for rows, k, n in (SIZES[0], SIZES[4], SIZES[3], SIZES[0]):
        a, b = left(rows, k), integers(k, n)
        np.testing.assert_array_equal(product(a, b), a.astype(np.int64) @ b.astype(np.int64))
