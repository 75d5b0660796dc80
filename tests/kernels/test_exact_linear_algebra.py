"""Einsum and Det in exact mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.exact_linear_algebra import det, einsum
from foldline.kernels.exact_products import product


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("bij,bjk->bki", [(2, 3, 4), (2, 4, 5)]),
        ("ij->ji", [(3, 4)]),
        ("ij->", [(3, 4)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("i,j->ij", [(3,), (4,)]),
        ("i,i", [(5,), (5,)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (5, 2, 4, 6)]),
        ("...ij,jk", [(2, 3, 4), (4, 5)]),
        ("b...,b...->...b", [(2, 3), (2, 3)]),
        (" a b , b -> a ", [(3, 4), (4,)]),
        ("ij,kl->i", [(2, 3), (4, 5)]),
        ("iij->j", [(3, 3, 2)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [numbers(*shape) for shape in shapes]
    found = einsum(*arrays, equation=equation)
    expected = np.einsum(equation.replace(" ", ""), *arrays)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    integers = [(array * 10).astype(np.int32) for array in arrays]
    np.testing.assert_array_equal(
        einsum(*integers, equation=equation), np.einsum(equation.replace(" ", ""), *integers)
    )


def test_einsum_is_the_product() -> None:
    a, b = numbers(4, 30), numbers(30, 5)
    assert einsum(a, b, equation="ij,jk->ik").tobytes() == product(a, b).tobytes()
    assert einsum(a, equation="ij->i").tobytes() == product(a, np.ones(30, np.float32)).tobytes()


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk", [(2, 3)], "2 terms for 1 operands"),
        ("ij", [(2, 3, 4)], "does not fit an operand of rank 3"),
        ("ij,jk", [(2, 3), (4, 5)], "'j' is 3 and 4"),
    ],
)
def test_einsum_that_does_not_fit(equation: str, shapes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        einsum(*(numbers(*shape) for shape in shapes), equation=equation)


def test_determinants() -> None:
    x = numbers(2, 3, 4, 4)
    np.testing.assert_allclose(det(x), np.linalg.det(x), rtol=1e-4)
    assert det(x[1:]).tobytes() == det(x)[1:].tobytes()
    assert det(np.zeros((3, 3), np.float32)) == 0
    assert det(np.zeros((0, 0), np.float32)) == 1
    assert det(np.eye(3, dtype=np.float32)[[1, 0, 2]]) == -1
