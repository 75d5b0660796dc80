"""Products with k ascending: against the definition, sliced, threaded, without einsum."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.kernels import exact_products
from foldline.kernels.exact_products import (
    einsum_is_exact,
    integer_product,
    multiplier,
    prepared,
    product,
)
from foldline.kernels.parallel import use_threads


def by_definition(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row times column, a number at a time."""
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = a.dtype.type(0)
            for k in range(a.shape[1]):
                total = total + a[i, k] * b[k, j]
            out[i, j] = total
    return out


def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


SHAPES = [(1, 1, 1), (3, 5, 4), (1, 40, 7), (7, 40, 1), (9, 33, 3), (4, 1, 17), (17, 9, 2)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
@pytest.mark.parametrize("by_einsum", [True, False])
def test_the_definition(
    m: int, k: int, n: int, dtype: type, by_einsum: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by_einsum:
        monkeypatch.setattr(exact_products, "einsum_is_exact", lambda dtype: False)
    a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
    expected = by_definition(a, b)
    assert product(a, b).tobytes() == expected.tobytes()
    assert product(np.asfortranarray(a), np.asfortranarray(b)).tobytes() == expected.tobytes()
    assert product(a.repeat(2, 1)[:, ::2], b[::-1].copy()[::-1]).tobytes() == expected.tobytes()


def test_the_order_is_seen() -> None:
    """Backwards, or by BLAS, the same numbers have other bits."""
    a, b = numbers(20, 300), numbers(300, 20)
    assert product(a, b).tobytes() != product(a[:, ::-1], b[::-1]).tobytes()
    np.testing.assert_allclose(product(a, b), a @ b, atol=1e-4)


def test_slices_do_not_matter() -> None:
    a, b = numbers(40, 70), numbers(70, 50)
    whole = product(a, b)
    for rows in (slice(0, 1), slice(3, 20), slice(39, 40)):
        assert product(a[rows], b).tobytes() == whole[rows].tobytes()
        assert product(a[rows][0], b).tobytes() == whole[rows][0].tobytes()
    for columns in (slice(0, 1), slice(5, 7), slice(11, 50)):
        assert product(a, b[:, columns]).tobytes() == whole[:, columns].tobytes()
        assert product(a, b[:, columns.start]).tobytes() == whole[:, columns.start].tobytes()
    assert product(a[2], b[:, 3]).tobytes() == whole[2, 3].tobytes()


@pytest.mark.parametrize("shape", [(300, 128, 300), (8, 1500, 1200), (1200, 1500, 8)])
def test_threads_do_not_matter(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = numbers(m, k), numbers(k, n)
    with use_threads(1):
        expected = product(a, b).tobytes()
    for threads in (2, 3, 8):
        with use_threads(threads):
            assert product(a, b).tobytes() == expected


def test_stacks() -> None:
    a, b = numbers(2, 1, 4, 5), numbers(3, 5, 6)
    result = product(a, b)
    assert result.shape == (2, 3, 4, 6)
    for i in range(2):
        for j in range(3):
            assert result[i, j].tobytes() == by_definition(a[i, 0], b[j]).tobytes()
    vector = numbers(5)
    assert product(vector, b).shape == (3, 6)
    assert product(a, vector).shape == (2, 1, 4)
    assert product(vector, vector).shape == ()


def test_nothing_to_add() -> None:
    assert product(numbers(2, 0), numbers(0, 3)).tolist() == [[0] * 3] * 2
    assert product(numbers(0, 2), numbers(2, 3)).shape == (0, 3)
    assert product(numbers(2, 3, 0), numbers(0, 0)).shape == (2, 3, 0)
    assert product(numbers(0), numbers(0)) == 0


def test_special_values() -> None:
    a = np.array([[np.inf, 1], [np.nan, 1], [-0.0, 0.0], [3e38, 3e38]], np.float32)
    b = np.array([[0.0, 1, -1], [1, -np.inf, 2]], np.float32)
    result = product(a, b)
    assert result.tobytes() == canonical_definition(a, b).tobytes()
    assert not np.signbit(product(-np.ones((1, 1), np.float32), np.zeros((1, 2), np.float32))).any()


def canonical_definition(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        out = by_definition(a, b)
    out[np.isnan(out)] = np.uint32(0x7FC00000).view(np.float32)
    return out


def test_the_trial_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def fused(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        wide = a[..., None].astype(np.float64) * b[:, None].astype(np.float64)
        for k in range(a.shape[2]):
            out[...] = (out + wide[:, :, k]).astype(a.dtype)

    assert einsum_is_exact(np.dtype(np.float32)) in (True, False)
    einsum_is_exact.cache_clear()
    monkeypatch.setattr(exact_products, "_by_einsum", fused)
    assert not einsum_is_exact(np.dtype(np.float32))
    einsum_is_exact.cache_clear()


@pytest.mark.parametrize("by_einsum", [True, False])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 40, 49), (2, 21, 33), (9, 40, 17), (300, 9, 100)])
def test_how_a_matrix_lies_does_not_matter(
    m: int, k: int, n: int, by_einsum: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turned round in strips, the last of which may be of one column, kept or not."""
    if not by_einsum:
        monkeypatch.setattr(exact_products, "einsum_is_exact", lambda dtype: False)
    a, b = numbers(m, k), numbers(k, n)
    expected = product(a, b).tobytes()
    if m < 10:
        assert expected == by_definition(a, b).tobytes()
    turned = np.asfortranarray(b)
    monkeypatch.setattr(exact_products, "STRIPPED", 0)
    for least in (1 << 30, 0):
        monkeypatch.setattr(exact_products, "VAST", least)
        for strip in (4, 16, 64):
            monkeypatch.setattr(exact_products, "STRIP", strip)
            for threads in (1, 2):
                with use_threads(threads):
                    assert product(a, turned).tobytes() == expected
            assert multiplier(turned)(a).tobytes() == expected
            stacked = product(np.stack([a, a]), np.stack([turned.T, turned.T]).swapaxes(1, 2))
            assert stacked.tobytes() == expected * 2


@pytest.mark.parametrize(("m", "n"), [(130, 40), (256, 127), (64, 32), (33, 31)])
def test_a_transposed_product_is_the_same(m: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = numbers(m, 25), numbers(25, n)
    found = product(a, b)
    assert found.flags.c_contiguous
    monkeypatch.setattr(exact_products, "LEAST_WIDTH", 0)
    monkeypatch.setattr(exact_products, "GOOD_WIDTH", 0)
    assert product(a, b).tobytes() == found.tobytes()


def test_prepared_integers() -> None:
    generator = np.random.default_rng(1)
    for rows, most in ((30, 127), (30, 30_000), (600, 127)):
        a = generator.integers(-255, 256, (3, rows), dtype=np.int32)
        b = generator.integers(-most, most + 1, (rows, 5), dtype=np.int32)
        wide, greatest = prepared(b)
        assert wide.dtype == (np.float32 if rows * 255 * most < 1 << 24 else np.float64)
        found = integer_product(a, wide, greatest)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, np.matmul(a, b))
    far = np.full((1, 8), 1 << 30, np.int32)
    wide, greatest = prepared(far.T)
    np.testing.assert_array_equal(integer_product(far, wide, greatest), np.matmul(far, far.T))


def test_integers_are_exact_and_wrap() -> None:
    a = np.array([[100, 100]], np.int8)
    assert product(a, a.T) == np.int8((20000 + 128) % 256 - 128)
    big = np.array([[1 << 40]], np.int64)
    assert integer_product(big, big) == 0
    assert integer_product(np.full((1, 3), 255, np.int32), np.full((3, 1), 255, np.int32)) == 195075
    with pytest.raises(TypeError, match="integers are wanted"):
        integer_product(np.ones((1, 1)), np.ones((1, 1)))
