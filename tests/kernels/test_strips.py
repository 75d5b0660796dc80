"""Products in strips: values, tiles, threads, and how long strips are kept."""

import gc

import numpy as np
import pytest

from foldline.kernels import strips as module
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import GRADES, Operand, find_kernel, run_once
from foldline.kernels.strips import (
    WIDTH,
    StripProduct,
    Strips,
    strips_of,
    suits_strips,
)


@pytest.fixture(autouse=True)
def in_place(monkeypatch):
    """On every machine."""
    monkeypatch.setattr(module, "multiplies_in_place", lambda: True)


SIZES = [
    (2, 500, 1030),
    (5, 700, 640),
    (17, 300, 200),
    (33, 1100, 70),
    (64, 3900, 64),
    (40, 500, 65),
    (65, 384, 250),
    (131, 1540, 384),
    (1025, 40, 100),
]


def integers(*shape, seed=0):
    """Such that sums of products are exact."""
    return np.random.default_rng(seed).integers(-30, 30, shape).astype(np.float32)


def product(a, b, apply=None):
    assert suits_strips(len(a), *b.shape)
    out = np.full((len(a), b.shape[1]), np.nan, np.float32)
    StripProduct(len(a), *b.shape)(a, Strips(b), out, apply)
    return out


@pytest.mark.parametrize(("rows", "k", "n"), SIZES)
def test_products_of_any_sizes(rows, k, n):
    a, b = integers(rows, k), integers(k, n, seed=1)
    np.testing.assert_array_equal(product(a, b), np.matmul(a, b))


@pytest.mark.parametrize(("rows", "k", "n"), SIZES)
def test_every_element_is_finished_once(rows, k, n):
    a, b = integers(rows, k), integers(k, n, seed=1)

    def apply(tile, row0, col0, rows, cols):
        assert tile.shape == (rows, cols)
        tile += np.arange(col0, col0 + cols) + 1000 * np.arange(row0, row0 + rows)[:, None]

    places = np.arange(n) + 1000 * np.arange(rows)[:, None]
    wanted = (np.matmul(a, b).astype(np.float64) + places).astype(np.float32)
    np.testing.assert_array_equal(product(a, b, apply), wanted)


def test_where_strips_are_used():
    assert suits_strips(32, 512, 512)
    assert not suits_strips(1, 4096, 4096)
    assert suits_strips(1000, 512, 512)
    assert not suits_strips(8, 100, 100)
    assert not suits_strips(8, 5000, 500)
    assert not suits_strips(0, 512, 512)
    assert not suits_strips(64, 512, 63)
    assert not suits_strips(32, 512, 512, np.dtype(np.float64))


def test_strips_are_slower_where_blas_packs(monkeypatch):
    monkeypatch.setattr(module, "multiplies_in_place", lambda: False)
    assert not suits_strips(32, 512, 512)


@pytest.mark.parametrize(("rows", "k", "n"), [(48, 700, 3000), (1030, 300, 200), (130, 390, 200)])
def test_threads_do_not_matter(rows, k, n):
    random = np.random.default_rng(2)
    a, b = random.standard_normal((rows, k)), random.standard_normal((k, n))
    a, b = a.astype(np.float32), b.astype(np.float32)
    expected = product(a, b)
    for threads in (2, 3):
        with use_threads(threads):
            np.testing.assert_array_equal(product(a, b).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("op_type", ["MatMul", "Gemm", "Linear"])
def test_constants_give_the_same_bits(op_type):
    random = np.random.default_rng(3)
    a, b = random.standard_normal((24, 520)), random.standard_normal((520, 150))
    arrays = a.astype(np.float32), b.astype(np.float32)
    a, b = arrays
    entry = find_kernel(
        "foldline" if op_type == "Linear" else "",
        op_type,
        1 if op_type == "Linear" else 13,
        GRADES["fast"],
    )
    first = Operand(a.shape, a.dtype)
    varying = run_once(entry.function(first, Operand(b.shape, b.dtype)), arrays)
    constant = run_once(entry.function(first, Operand(b.shape, b.dtype, b)), arrays)
    matmul = find_kernel("", "MatMul", 13, GRADES["fast"])
    expected = run_once(matmul.function(first, Operand(b.shape, b.dtype)), arrays)
    for found in (varying, constant):
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))
    np.testing.assert_allclose(expected, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)


def test_tiles_cut_the_longer_side():
    for rows, k, n, tiles in ((1030, 300, 200, 4), (48, 700, 3000, 4), (128, 384, 384, 3)):
        seen = []
        a, b = integers(rows, k), integers(k, n, seed=1)
        product(a, b, lambda tile, *place, seen=seen: seen.append(place))
        assert len(seen) == tiles
        assert sum(height * width for _, _, height, width in seen) == rows * n
        assert all((width if rows > n else height) == min(rows, n) for *_, height, width in seen)


def test_nan_and_infinity_go_through():
    a, b = integers(8, 512), integers(512, 320, seed=1)
    a[3, 4], b[7, 300] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(product(a, b), np.matmul(a, b))


def test_strips_are_made_once_and_go_with_the_matrix():
    b = integers(128, 192)
    strips = strips_of(b)
    assert strips_of(b) is strips
    assert strips_of(b.reshape(-1).reshape(128, 192)) is strips
    assert strips_of(b.reshape(192, 128)) is not strips
    other = strips_of(b[:, :64])
    assert other is not strips
    assert other.whole.shape == (1, 128, WIDTH)
    address = b.ctypes.data
    del b
    gc.collect()
    from foldline.kernels.packed_weights import _kept

    assert not [key for key in _kept if key[0] == address]
