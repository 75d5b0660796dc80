"""Products with k ascending: against the definition, sliced, threaded, without einsum."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.kernels import exact_products
from foldline.kernels.exact_products import einsum_is_exact, integer_product, product
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


def test_integers_are_exact_and_wrap() -> None:
    a = np.array([[100, 100]], np.int8)
    assert product(a, a.T) == np.int8((20000 + 128) % 256 - 128)
    big = np.array([[1 << 40]], np.int64)
    assert integer_product(big, big) == 0
    assert integer_product(np.full((1, 3), 255, np.int32), np.full((3, 1), 255, np.int32)) == 195075
    with pytest.raises(TypeError, match="integers are wanted"):
        integer_product(np.ones((1, 1)), np.ones((1, 1)))
