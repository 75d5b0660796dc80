"""Products in tiles or strips: values, threads, and what a constant matrix changes."""

import numpy as np
import pytest

from foldline.kernels.parallel import use_threads
from foldline.kernels.small_products import multiplies_in_place
from foldline.kernels.strips import suits_strips
from foldline.kernels.tiled_products import flat_product, matrix_product

IN_STRIPS = pytest.mark.skipif(
    not multiplies_in_place(), reason="this OpenBLAS packs small products"
)


def normal(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize(
    ("m", "k", "n"), [(2048, 256, 192), (96, 512, 2048), (2048, 512, 33), (700, 3, 5)]
)
def test_tiles_do_not_depend_on_threads(m, k, n):
    a, b = normal(m, k), normal(k, n, seed=1)
    multiply = matrix_product(m, k, n)
    results = []
    for threads in (1, 2, 3):
        out = np.full((m, n), np.nan, np.float32)
        with use_threads(threads):
            multiply(a, b, out)
        results.append(out)
    np.testing.assert_allclose(results[0], a.astype(float) @ b, rtol=1e-4, atol=1e-4)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


@pytest.mark.parametrize(
    ("m", "k", "n"), [(32, 512, 700), (8, 1100, 200), (65, 300, 200), (1, 9, 9)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_matrix_gives_the_same_bits(m, k, n, dtype):
    a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype, seed=1)
    plain, constant = np.empty((m, n), dtype), np.empty((m, n), dtype)
    flat_product(m, k, n, a.dtype)(a, b, plain)
    flat_product(m, k, n, a.dtype, b)(a, b, constant)
    assert plain.tobytes() == constant.tobytes()
    np.testing.assert_allclose(plain, a.astype(float) @ b, rtol=1e-4, atol=1e-4)


@IN_STRIPS
@pytest.mark.parametrize(
    ("rows", "k", "n"),
    [
        (2, 1024, 1000),
        (17, 700, 130),
        (31, 3072, 65),
        (50, 512, 577),
        (129, 1536, 401),
        (641, 384, 100),
    ],
)
def test_equal_rows_and_columns_give_equal_results_in_strips(rows, k, n):
    assert suits_strips(rows, k, n)
    a = np.repeat(np.abs(normal(1, k)) * np.float32(1e3), rows, axis=0)
    b = np.ascontiguousarray(np.broadcast_to(normal(k, 1, seed=1), (k, n)))
    out = np.empty((rows, n), np.float32)
    flat_product(rows, k, n)(a, b, out)
    assert np.unique(out).size == 1


@IN_STRIPS
def test_rows_and_columns_may_be_left_out_of_strips():
    a, b = normal(64, 512), normal(512, 640, seed=1)

    def product(a, b):
        assert suits_strips(len(a), *b.shape)
        out = np.empty((len(a), b.shape[1]), np.float32)
        flat_product(len(a), *b.shape)(a, b, out)
        return out

    whole = product(a, b)
    for rows in (5, 13, 31, 63):
        np.testing.assert_array_equal(product(a[:rows], b), whole[:rows])
    np.testing.assert_array_equal(product(a, b[:, 256:]), whole[:, 256:])
