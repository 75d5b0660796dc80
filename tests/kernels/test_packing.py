"""Spec runtime-rewrites sections 4 and 5: packed B, and the contract of tile epilogues."""

import threading
from collections import Counter

import numpy as np
import pytest

from foldline.kernels.exact_products import product
from foldline.kernels.packing import (
    BLAS,
    EXACT,
    pack_b,
    packed_b_length,
    run,
    run_packed,
    tiles_of,
    unpack_b,
)
from foldline.kernels.parallel import use_threads

PATHS = [BLAS, *EXACT.values()]
by_path = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bits(array):
    return np.ascontiguousarray(array).view(np.uint32)


def columns(path):
    width = path.width or 8
    return (1, width - 1, width, width + 1, 3 * width)


def test_section_4_worked_example():
    b = np.arange(600 * 20, dtype=np.float32).reshape(600, 20) + 1
    packed = pack_b(EXACT[8], b)
    assert packed.shape == (14_400,)
    assert packed[10_593] == b[300, 17]
    assert packed[14_395] == b[599, 19]
    assert packed[12_288] == b[512, 0]
    assert packed[12_992] == b[512, 8]
    assert packed[13_696] == b[512, 16]
    assert packed[6_144] == b[256, 0]
    assert np.count_nonzero(packed == 0) == 2_400


@by_path
@pytest.mark.parametrize("k", [0, 1, 255, 256, 257, 512, 600])
def test_section_4_round_trip_padding_and_length(path, k):
    for n in columns(path):
        b = normal(k, n) + 10  # no zero among the elements
        packed = pack_b(path, b)
        width = path.width or n
        assert packed.shape == (k * -(-n // width) * width,)
        assert packed_b_length(path, n, k) == packed.size
        assert np.array_equal(bits(unpack_b(path, packed, n, k)), bits(b))
        assert np.count_nonzero(bits(packed) == 0) == packed.size - k * n


@by_path
def test_section_4_padding_is_plus_zero_whatever_stands_around(path):
    b = np.full((257, (path.width or 8) + 1), -0.0, np.float32)
    packed = pack_b(path, b)
    assert np.count_nonzero(bits(packed) == 0x80000000) == b.size
    assert np.count_nonzero(bits(packed) == 0) == packed.size - b.size


@by_path
def test_section_4_matrices_in_other_orders(path):
    b = normal(300, 21)
    expected = pack_b(path, b)
    assert np.array_equal(pack_b(path, np.asfortranarray(b)), expected)
    wide = np.zeros((600, 63), np.float32)
    wide[::2, ::3] = b
    assert np.array_equal(pack_b(path, wide[::2, ::3]), expected)
    assert np.array_equal(pack_b(path, np.ascontiguousarray(b.T), transposed=True), expected)


def test_section_4_what_is_in_c_order_is_not_copied_for_blas():
    b = normal(5, 7)
    assert np.shares_memory(pack_b(BLAS, b), b)
    assert not np.shares_memory(pack_b(BLAS, b, transposed=True), b)


@by_path
@pytest.mark.parametrize("k", [0, 1, 255, 256, 257, 600])
def test_section_4_packed_and_unpacked_products_have_the_same_bits(path, k):
    for n in columns(path):
        for m in (1, 5, 70):
            a, b = normal(m, k), normal(k, n, seed=1)
            plain, packed = np.empty((2, m, n), np.float32)
            run(path, a, b, plain)
            assert np.allclose(plain, a.astype(np.float64) @ b, atol=1e-3)
            for threads in (1, 3):
                packed.fill(7)
                with use_threads(threads):
                    run_packed(path, a, pack_b(path, b), packed)
                assert np.array_equal(bits(packed), bits(plain))


@by_path
def test_section_4_what_padding_makes_stays_out(path):
    """Infinity times the padding's zero is NaN: it must reach neither C nor its surroundings."""
    n = (path.width or 8) + 1
    a, b = normal(3, 5), np.abs(normal(5, n)) + 1
    a[0, 0], a[1, 1] = np.inf, np.nan
    guarded = np.full((5, n + 8), 7, np.float32)
    out = guarded[1:4, 4 : 4 + n]
    run_packed(path, a, pack_b(path, b), out)
    assert np.isposinf(out[0]).all()
    assert np.isnan(out[1]).all()
    assert np.isfinite(out[2]).all()
    guarded[1:4, 4 : 4 + n] = 7
    assert (guarded == 7).all()


class Recorder:
    """An epilogue that notes its tiles and adds 1 to each."""

    def __init__(self):
        self.tiles = []
        self.lock = threading.Lock()

    def apply(self, tile, row0, col0, rows, cols):
        assert tile.shape == (rows, cols)
        with self.lock:
            self.tiles.append((row0, col0, rows, cols))
        tile += 1


SIZES = [(1, 1, 1), (70, 3, 40), (129, 600, 513), (700, 300, 300), (64, 0, 32), (130, 0, 300)]


@by_path
@pytest.mark.parametrize("size", SIZES)
def test_section_5_tiles_cover_the_result_once_for_any_number_of_threads(path, size):
    m, k, n = size
    a, b = normal(m, k), normal(k, n, seed=1)
    packed, plain = pack_b(path, b), np.empty((m, n), np.float32)
    run(path, a, b, plain)
    seen = []
    for threads in (1, 2, 4, 8):
        recorder, guarded = Recorder(), np.full((m + 2, n + 2), 7, np.float32)
        with use_threads(threads):
            run_packed(path, a, packed, guarded[1:-1, 1:-1], recorder.apply)
        assert np.array_equal(bits(guarded[1:-1, 1:-1]), bits(plain + 1))
        guarded[1:-1, 1:-1] = 7
        assert (guarded == 7).all()
        seen.append(Counter(recorder.tiles))
    assert all(tiles == seen[0] for tiles in seen)
    assert seen[0] == Counter(tuple(tile) for tile in tiles_of(path, m, k, n))
    covered = np.zeros((m, n), int)
    for row0, col0, rows, cols in seen[0].elements():
        covered[row0 : row0 + rows, col0 : col0 + cols] += 1
    assert (covered == 1).all()


@by_path
@pytest.mark.parametrize("size", [(0, 5, 9), (9, 5, 0), (0, 0, 0)])
def test_section_5_an_empty_result_has_no_tile(path, size):
    m, k, n = size
    recorder, out = Recorder(), np.empty((m, n), np.float32)
    run_packed(path, normal(m, k), pack_b(path, normal(k, n)), out, recorder.apply)
    assert recorder.tiles == []
    assert tiles_of(path, m, k, n) == ()


@by_path
def test_section_5_without_a_sum_the_epilogue_gets_zeros(path):
    recorder, out = Recorder(), np.full((70, 5), 7, np.float32)
    run_packed(path, normal(70, 0), pack_b(path, normal(0, 5)), out, recorder.apply)
    assert (out == 1).all()
    assert Counter(recorder.tiles) == Counter(tuple(t) for t in tiles_of(path, 70, 0, 5))


@by_path
@pytest.mark.parametrize("threads", [1, 4])
def test_section_5_an_exception_surfaces_once_and_the_next_product_runs(path, threads):
    m, k, n = 700, 300, 300
    a, packed = normal(m, k), pack_b(path, normal(k, n, seed=1))
    out, recorder = np.empty((m, n), np.float32), Recorder()

    def fails(tile, row0, col0, rows, cols):
        raise ArithmeticError(f"at {row0}, {col0}")

    with use_threads(threads):
        with pytest.raises(ArithmeticError, match="at 0, 0"):
            run_packed(path, a, packed, out, fails)
        run_packed(path, a, packed, out, recorder.apply)
    assert len(recorder.tiles) == len(tiles_of(path, m, k, n)) > 1


def test_the_exact_path_has_the_bits_of_exact_mode_with_the_one_nan():
    a, b = normal(5, 300), normal(300, 21, seed=1)
    a[2, 3], b[7, 4] = np.inf, -np.inf
    b[3, 5] = 0
    for path in EXACT.values():
        out = np.empty((5, 21), np.float32)
        run_packed(path, a, pack_b(path, b), out)
        assert np.array_equal(bits(out), bits(product(a, b)))
        assert bits(out)[2, 5] == 0x7FC00000
