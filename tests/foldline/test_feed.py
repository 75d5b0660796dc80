from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.session import Session
from foldline.support.errors import InvalidArgumentError
from tests.lowering.models import assert_same, program

GRAPH = "g (float[N, 3] x, int64 k) => (float[N, 3] y, int64 m) { y = Neg(x) m = Add(k, k) }"


def _session(graph: str = GRAPH, threads: int | None = 1) -> Session:
    return Session(program(graph), threads)


def _x(n: int = 2) -> Any:
    return np.arange(3 * n, dtype=np.float32).reshape(n, 3)


def test_strides_of_inputs_do_not_decide_bits() -> None:
    session = _session("g (float[A, B] x) => (float[A, 1] y) { y = ReduceMean<axes = [1]>(x) }")
    x = np.random.default_rng(0).standard_normal((67, 67)).astype(np.float32)
    strided = np.asfortranarray(x)
    for _ in range(4):
        assert_same(session.run(None, {"x": strided}), session.run(None, {"x": x}))
    assert strided.flags.f_contiguous


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": ...}, r"input 'x' is missing, tensor\(float\) \[N, 3\]"),
        ({"x": None}, r"input 'x' is missing"),
        ({"xs": 1}, r"no input 'xs'; did you mean 'x'\?"),
        ({"x": _x().astype(np.float64)}, r"input 'x' is double, expected float"),
        ({"k": np.array(3, np.int32)}, r"input 'k' is int32, expected int64"),
        ({"k": np.float64(3)}, r"input 'k' is double, expected int64"),
        ({"x": _x()[0]}, r"input 'x' has rank 1 \(shape \[3\]\), expected rank 2"),
        ({"k": np.array([3])}, r"input 'k' has rank 1 \(shape \[1\]\), expected rank 0"),
        ({"x": np.zeros((2, 4), np.float32)}, r"input 'x' has size 4 on axis 1.*expected 3"),
        ({"x": np.array([["a", "b", "c"]])}, r"input 'x' is .*U1, expected float"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    session = _session()
    feed = {"x": _x(), "k": np.array(3), **change}
    feed = {name: value for name, value in feed.items() if value is not ...}
    with pytest.raises(InvalidArgumentError, match=message):
        session.run(None, feed)
    assert_same(session.run(["y"], {"x": _x(), "k": 3}), [-_x()])


def _element(dtype: str) -> Session:
    return _session(f"g ({dtype}[K] x) => ({dtype}[K] y) {{ y = Identity(x) }}")


@pytest.mark.parametrize(
    ("dtype", "given", "expected"),
    [
        ("float", [1, 2.5], np.array([1, 2.5], np.float32)),
        ("float", [0.1], np.array([0.1], np.float32)),
        ("float", (2**24,), np.array([2**24], np.float32)),
        ("float", [float("nan"), float("inf")], np.array([np.nan, np.inf], np.float32)),
        ("float16", [1], np.array([1], np.float16)),
        ("bfloat16", [1.5], np.array([1.5], ml_dtypes.bfloat16)),
        ("int4", [-8, 7], np.array([-8, 7], ml_dtypes.int4)),
        ("int8", [-128, 127], np.array([-128, 127], np.int8)),
        ("uint64", [2**64 - 1], np.array([2**64 - 1], np.uint64)),
        ("bool", [True, False], np.array([True, False])),
        ("int32", [], np.array([], np.int32)),
        ("string", ["ü", ""], np.array(["ü", ""], object)),
        ("string", np.array(["ü", "b"]), np.array(["ü", "b"], object)),
    ],
)
def test_python_values_with_an_exact_meaning_are_taken(
    dtype: str, given: Any, expected: Any
) -> None:
    (y,) = _element(dtype).run(None, {"x": given})
    assert_same([y], [expected])


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("float", [2**24 + 1]),
        ("float", [1e300]),
        ("float", [True]),
        ("float", ["1"]),
        ("float16", [65536]),
        ("int8", [128]),
        ("uint8", [-1]),
        ("int4", [8]),
        ("int64", [1.0]),
        ("int4", [1.0]),
        ("bool", [1]),
    ],
)
def test_python_values_without_are_refused(dtype: str, given: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"input 'x' is .* as {dtype}"):
        _element(dtype).run(None, {"x": given})


def test_sequences_and_optionals() -> None:
    session = _session(
        "g (seq(float[K]) s, optional(float[2]) o) => (int64 n, bool h)"
        " { n = SequenceLength(s) h = OptionalHasElement(o) }"
    )
    x = np.zeros(2, np.float32)
    assert session.run(None, {"s": [x, [1.0]], "o": None}) == [2, False]
    assert session.run(None, {"s": [], "o": x}) == [0, True]
    with pytest.raises(InvalidArgumentError, match="'s', element 1, is double, expected float"):
        session.run(None, {"s": [x, x.astype(float)], "o": x})
    with pytest.raises(InvalidArgumentError, match="'s' is ndarray, expected a list"):
        session.run(None, {"s": x, "o": x})
    with pytest.raises(InvalidArgumentError, match="'o' is missing"):
        session.run(None, {"s": []})
