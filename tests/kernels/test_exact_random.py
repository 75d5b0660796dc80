"""Numbers and classes drawn in exact mode."""

from __future__ import annotations

import hashlib
import math
from statistics import NormalDist
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import random as fast
from foldline.kernels.exact_random import multinomial, random_normal, random_normal_like

CLASSES = np.array([[0, -np.inf, np.log(3)], [-np.inf, 2, 2]], np.float32)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4, 5), (0, 3), (2, 0)])
@pytest.mark.parametrize("code", [1, 10, 11, 16])
def test_shapes_and_types(shape: tuple[int, ...], code: int) -> None:
    dtype = {1: np.float32, 10: np.float16, 11: np.float64, 16: ml_dtypes.bfloat16}[code]
    found = random_normal(shape=shape, dtype=code, seed=1.0)
    assert (found.shape, found.dtype) == (shape, dtype)
    like = random_normal_like(np.zeros(shape, np.int64), dtype=code, seed=1.0)
    assert like.tobytes() == found.tobytes()


def test_the_dtype_is_that_of_the_input_unless_given() -> None:
    assert random_normal_like(np.zeros(3, np.float64), seed=1.0).dtype == np.float64
    with pytest.raises(ValueError, match="no float type"):
        random_normal_like(np.zeros(3, np.int64), seed=1.0)


def test_a_seed_gives_the_same_numbers_and_without_one_each_run_draws_afresh() -> None:
    draws = [random_normal(shape=(50,), seed=seed).tobytes() for seed in (1.5, 1.5, -0.0, 0.0)]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3
    assert random_normal(shape=(50,)).tobytes() != random_normal(shape=(50,)).tobytes()


def test_bits_do_not_change() -> None:
    found = hashlib.sha256()
    for code in (1, 11):
        found.update(random_normal(shape=(1001,), dtype=code, seed=7.0, scale=1.7).tobytes())
    found.update(multinomial(CLASSES, sample_size=500, seed=7.0).tobytes())
    assert found.hexdigest()[:16] == "e2ed87f588e86ff7"


def test_they_are_of_box_and_muller() -> None:
    """In float64, by libm: the exact functions err by two ulp at most."""
    pairs = np.random.Generator(np.random.PCG64(0x40E00000)).random((2, 500))
    radius = [math.sqrt(-2 * math.log(1 - u)) for u in pairs[0]]
    turned = zip(radius, (2 * math.pi * v for v in pairs[1]), strict=True)
    points = [(r * math.cos(a), r * math.sin(a)) for r, a in turned]
    expected = np.array(points).T.reshape(-1)
    found = random_normal(shape=(1000,), dtype=11, seed=7.0)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    single = random_normal(shape=(1000,), seed=7.0)
    assert single.tobytes() == found.astype(np.float32).tobytes()


def test_they_are_normal() -> None:
    """Kolmogorov and Smirnov: 1.63 / sqrt(n) is exceeded once in a hundred draws."""
    drawn = np.sort(random_normal(shape=(20_000,), dtype=11, seed=3.0, mean=2.0, scale=3.0))
    expected = np.array([NormalDist(2, 3).cdf(x) for x in drawn])
    places = np.arange(20_001) / 20_000
    distance = max(np.abs(expected - places[1:]).max(), np.abs(expected - places[:-1]).max())
    assert distance < 1.63 / math.sqrt(20_000)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("seed", [0.5, 5.0])
def test_classes_are_those_of_fast_mode(dtype: Any, seed: float) -> None:
    """The same numbers are drawn; only one at a border of two classes could fall elsewhere."""
    given = CLASSES.astype(dtype)
    for code, kind in ((6, np.int32), (7, np.int64)):
        found = multinomial(given, sample_size=1000, dtype=code, seed=seed)
        assert found.dtype == kind
        np.testing.assert_array_equal(
            found, fast.multinomial(given, sample_size=1000, dtype=code, seed=seed)
        )
    assert set(multinomial(given[1:], sample_size=1000).ravel().tolist()) == {1, 2}
    assert multinomial(given[:0]).shape == (0, 1)
