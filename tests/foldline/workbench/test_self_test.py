"""The self test is right on a sound machine, and sees what is wrong on another."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.kernels import exact_products
from foldline.workbench import self_test
from foldline.workbench.self_test import TESTS


@pytest.mark.parametrize("name", TESTS)
def test_right_here(name: str) -> None:
    assert TESTS[name]() == ""


def test_a_wrong_value_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = exact_products.product
    monkeypatch.setattr(
        "foldline.kernels.exact_matmul.product", lambda a, b: right(a, b) + np.float32(1)
    )
    assert TESTS["exact mode"]().startswith("'m' is [[3000000.25]]")


def test_a_wrong_number_of_nodes_is_seen() -> None:
    graph = "(float[2] x) => (float[2] y) { y = Sin (x) }"
    feed = {"x": np.zeros(2, np.float32)}
    assert self_test._compared(graph, feed, [0, 0], nodes=3) == "1 nodes are left, expected 3"
    assert self_test._compared(graph, feed, [0, 0], nodes=1) == ""
    assert "'y'" in self_test._compared(graph, feed, [0, -0.0], nodes=1)


def test_a_failure_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> str:
        raise MemoryError("none left")

    monkeypatch.setattr(self_test, "TESTS", {"big": fails, "small": str})
    assert list(self_test.self_test()) == [
        ("big", "MemoryError: none left"),
        ("small", ""),
    ]
