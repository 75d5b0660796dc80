"""The measure of error itself: it must see what is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.zoo.limits import FLOAT32, HALF, error, limit, worst_error


@pytest.mark.parametrize(
    ("actual", "expected", "value"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.25),
        ([0.0], [1e-6], 1e-3),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([np.nan], [1.0], math.inf),
        ([np.inf], [1.0], math.inf),
        ([1.0], [np.nan], math.inf),
        ([-np.inf], [np.inf], math.inf),
        ([], [], 0.0),
        ([[1.0]], [1.0], math.inf),
        (["a"], ["a"], 0.0),
        (["a"], ["b"], math.inf),
    ],
)
def test_error_of_a_tensor(actual: list, expected: list, value: float) -> None:
    assert error(np.array(actual), np.array(expected)) == pytest.approx(value)


def test_another_kind_of_element_is_an_error() -> None:
    assert error(np.array([1]), np.array([1.0])) == math.inf


def test_error_of_maps_and_sequences() -> None:
    expected = [{0: 0.5, 1: 1.0}]
    assert error([{0: 0.5, 1: 0.5}], expected) == pytest.approx(0.5)
    assert error([{0: 0.5, 2: 1.0}], expected) == math.inf
    assert error([], expected) == math.inf
    assert worst_error([np.ones(2)], []) == math.inf


def test_limits_of_the_kinds() -> None:
    assert limit("float32") == FLOAT32 == 1e-4
    assert limit("half") == HALF == 2e-3
    assert limit("quantised", spread=0.2) == pytest.approx(0.3)
    assert limit("quantised") == FLOAT32
