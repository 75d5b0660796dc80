"""Products in blocks that OpenBLAS multiplies where they lie."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.kernels import block_products, small_products
from foldline.kernels.block_products import WeightProducts, strip_width
from foldline.kernels.small_products import block_product, in_strips
from foldline.kernels.tiled_products import matrix_product

SINGLE = np.dtype(np.float32)


@pytest.fixture
def in_place(monkeypatch):
    monkeypatch.setattr(block_products, "multiplies_in_place", lambda: True)


def _normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("rows", "k", "n", "width"),
    [
        (12544, 16, 32, 32),
        (10, 100, 1000, 1000),
        (784, 128, 128, 128),
        (784, 512, 128, 32),
        (196, 256, 256, 64),
        (169, 512, 1000, 32),
        (169, 400, 1000, 64),
        (1000, 200, 88, 32),
        (196, 2304, 256, 32),
        (49, 4608, 512, 0),
        (300, 512, 290, 0),
        (5000, 30, 24, 0),
        (192, 32, 200, 0),
        (1, 16, 32, 0),
        (9, 0, 32, 0),
    ],
)
def test_width(in_place, rows, k, n, width):
    assert strip_width(rows, k, n, SINGLE) == width
    assert strip_width(rows, k, n, np.dtype(np.float64)) == 0


@pytest.mark.parametrize(("names", "width"), [(("SkylakeX",), 64), (("Haswell",), 0), ((), 0)])
def test_only_where_small_products_are_not_packed(monkeypatch, names, width):
    small_products.multiplies_in_place.cache_clear()
    monkeypatch.setattr(small_products, "architectures", lambda: frozenset(names))
    assert strip_width(196, 256, 256, SINGLE) == width
    small_products.multiplies_in_place.cache_clear()


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(120, 300, 88), (50, 700, 1000), (3000, 16, 32), (200, 90, 96), (49, 512, 300)],
)
def test_equal_columns_give_equal_results(m, k, n):
    a, b, out = _normal(m, k), np.repeat(_normal(k, 1), n, axis=1), np.empty((m, n), np.float32)
    width = strip_width(m, k, n, SINGLE)
    if not width:
        pytest.skip("this OpenBLAS packs small products")
    for call in block_product(a, in_strips(b, width), out):
        call()
    np.testing.assert_array_equal(out, np.repeat(out[:, :1], n, axis=1))


@pytest.mark.parametrize("width", [0, 16, 64])
def test_weights_are_packed_once_and_parts_finished(width):
    weights, left = _normal(64, 20), _normal(9, 20)
    products = WeightProducts(width, matrix_product(9, 20, 64))
    known = products.packed(weights, _turned)
    assert known is not None
    assert products.packed(weights, _turned) is known
    assert products.packed(None, _turned) is None
    out, seen = np.empty((9, 64), np.float32), []
    products.bound(left, known, out, lambda part, *place: seen.append((part.shape, *place)))()
    assert seen == [((9, 64), 0, 0, 9, 64)]
    np.testing.assert_allclose(out, left.astype(float) @ weights.T, rtol=1e-4, atol=1e-4)


def _turned(weights):
    return np.ascontiguousarray(weights.T)
