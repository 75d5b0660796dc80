"""Two values: the same bits, or how far apart, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.value_difference import Allowed, difference

EXACT = Allowed(None, 0)


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    "value",
    [
        f32(1, np.nan, np.inf, -0.0),
        np.zeros((0, 3), np.float16),
        np.array(np.nan + 1j, np.complex64),
        np.array(["a", "b"], object),
        [f32(1), f32(2, 3)],
        None,
    ],
    ids=str,
)
def test_a_value_is_itself(value: Any) -> None:
    assert difference(value, value, EXACT) == (0.0, "")


def test_any_nan_is_any_other_and_zeros_have_signs() -> None:
    quiet, other = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    assert difference(f32(quiet), f32(other), EXACT) == (0.0, "")
    assert difference(f32(1, 0), f32(1, -0.0), EXACT) == (
        0.0,
        "1 of 2 values differ, [1]: 0.0 and -0.0",
    )


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (f32(1), np.array([1.0]), "float32[1] against float64[1]"),
        (f32(1), f32(1, 2), "float32[1] against float32[2]"),
        (None, f32(1), "present against absent"),
        ([f32(1)], [], "1 elements against 0"),
        ([f32(1), f32(2)], [f32(1), f32(2, 2)], "element 1: float32[1] against float32[2]"),
        (f32(1, np.inf), f32(np.inf, 1), "2 of 2 values differ, [0]: 1.0 and inf"),
        (np.array(["a"], object), np.array(["b"], object), "1 of 1 values differ, [0]: a and b"),
    ],
)
def test_what_cannot_be_close(x: Any, y: Any, message: str) -> None:
    assert difference(x, y, Allowed(1.0, 1)) == (np.inf, message)


def test_errors_are_relative_to_the_largest_value() -> None:
    x, y = f32(0.5, 8), f32(1.5, 8)
    error, message = difference(x, y, Allowed(0.1, 0))
    assert (error, message) == (1 / 8, "1 of 2 values differ, [0]: 0.5 and 1.5")
    assert difference(x, y, Allowed(0.2, 0)) == (1 / 8, "")
    assert difference(f32(0), f32(1e-4), EXACT)[0] == pytest.approx(0.1)


def test_steps_are_of_integers_alone() -> None:
    x, y = np.array([0, 255], np.uint8), np.array([1, 254], np.uint8)
    assert difference(x, y, Allowed(None, 1))[1] == ""
    assert difference(x, y[::-1], Allowed(None, 1))[1] != ""
    assert difference(f32(0), f32(1), Allowed(None, 1))[1] != ""
