"""Exact kernels are made of what is on a list: a walk through the source of every one of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import foldline.kernels
from foldline.kernels.exact_bits import canonicalised
from foldline.kernels.precision import widening
from foldline.kernels.registry import Kernel, all_kernels, kernel
from foldline.kernels.softmax import softmax_reference
from tests.architecture import exact_sources
from tests.architecture.exact_sources import TRUSTED, violations

EXACT = [entry for entry in all_kernels() if entry.grade == "exact"]


def name_of(entry: Kernel) -> str:
    return f"{entry.domain or 'onnx'}.{entry.op_type}-{entry.since}"


@pytest.mark.parametrize("entry", EXACT, ids=name_of)
def test_an_exact_kernel_is_made_of_what_is_allowed(entry: Kernel) -> None:
    assert not list(violations(entry.function))


def test_there_are_many() -> None:
    assert len(EXACT) > 200
    assert foldline.kernels.__all__


def test_what_is_trusted_is_short_and_says_why() -> None:
    assert len(TRUSTED) <= 6
    assert all(TRUSTED.values())


def _exponential(x: Any) -> Any:
    return np.exp(x)


def _inner_product(x: Any) -> Any:
    return x @ x


def _power(x: Any, p: float) -> Any:
    return x**p


def _method(x: Any) -> Any:
    return x.sum()


def _reduction(x: Any) -> Any:
    return np.add.reduce(x)


def _nested(x: Any) -> Any:
    def inner() -> Any:
        return np.tanh(x)

    return inner()


def _handed_on(x: Any) -> Any:
    return list(map(np.log, x))


def _by_module(x: Any) -> Any:
    return np.linalg.norm(x)


_TABLE: dict[str, Any] = {"f": np.sin}


def _from_a_table(x: Any) -> Any:
    return _TABLE["f"](x)


def _by_default(x: Any, function: Any = np.cos) -> Any:
    return function(x)


def _elsewhere(x: Any) -> Any:
    return softmax_reference(x)


def _closure(function: Any) -> Callable[[Any], Any]:
    return lambda x: function(x)


@pytest.mark.parametrize(
    "function",
    [
        _exponential,
        _inner_product,
        _power,
        _method,
        _reduction,
        _nested,
        _handed_on,
        _by_module,
        _from_a_table,
        _by_default,
        _elsewhere,
        _closure(np.exp),
        widening(_exponential),
        canonicalised(np.exp),
    ],
    ids=lambda function: getattr(function, "__qualname__", str(function)),
)
def test_the_walk_sees(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_sources, "HOME", ("foldline.kernels", __name__))
    assert list(violations(function))


def test_the_walk_lets_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def allowed(x: Any) -> Any:
        return np.sqrt(x * x + 2.0**-52).astype(np.float32).reshape(-1)

    monkeypatch.setattr(exact_sources, "HOME", ("foldline.kernels", __name__))
    assert not list(violations(allowed))


def test_one_function_can_serve_two_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldline.kernels.registry._TABLE", {})

    @kernel("Copy", exact=True)
    def copy(x: Any) -> Any:
        return x.copy()

    assert [entry.grade for entry in all_kernels()] == ["reference", "exact"]
    assert all(entry.function is copy for entry in all_kernels())
    assert inspect.isfunction(copy)
