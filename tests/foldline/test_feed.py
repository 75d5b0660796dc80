from __future__ import annotations

from collections import defaultdict
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import foldline
from foldline.session import Session
from foldline.support.errors import InvalidArgumentError
from tests.lowering.models import assert_same, model, program

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
    # What has fitted before is looked at with less care.
    for fitting in ({"x": _x(), "k": 3}, *[{"x": _x(), "k": np.array(3)}] * 3):
        with pytest.raises(InvalidArgumentError, match=message):
            session.run(None, feed)
        assert_same(session.run(["y"], fitting), [-_x()])
    with pytest.raises(InvalidArgumentError, match=message):
        session.run(None, feed)


class _Marked(np.ndarray[Any, Any]):
    """An array of another class."""


def test_the_latest_input_does_not_decide_what_the_next_one_is() -> None:
    session = _session()
    k = np.array(3)
    flipped = np.asfortranarray(_x(4))
    for x in [_x(2), _x(4), flipped, _x(2), _x(4)[::2], flipped, _x(2).view(_Marked)] * 3:
        y, m = session.run(None, {"x": x, "k": k})
        assert_same([y, m], [-np.array(x, order="C"), np.array(6)])
    with pytest.raises(InvalidArgumentError, match="no input 'z'"):
        session.run(None, {"x": _x(2), "k": k, "z": k})


def test_a_feed_that_makes_values_up_is_not_asked_to() -> None:
    feed = defaultdict(lambda: np.array(0), {"x": _x()})
    with pytest.raises(InvalidArgumentError, match="input 'k' is missing"):
        _session().run(None, feed)
    assert [*feed] == ["x"]


def test_a_model_without_inputs() -> None:
    session = _session("g () => (float[2] y) <float[2] c = {1, 2}> { y = Neg(c) }")
    for _ in range(4):
        assert_same(session.run(None, {}), [np.float32([-1, -2])])
        with pytest.raises(InvalidArgumentError, match="no input 'x'"):
            session.run(None, {"x": 1})


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


ML = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>'


@pytest.fixture(name="names", scope="module")
def _names() -> Session:
    """A session that takes a map of texts to floats, which ONNX's text form cannot write."""
    source = model("g (float x) => (float[1,2] y) { y = ai.onnx.ml.DictVectorizer"
                   '<string_vocabulary = ["a", "b"]>(x) }', ML)  # fmt: skip
    scalar = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    source.graph.input[0].type.CopyFrom(helper.make_map_type_proto(TensorProto.STRING, scalar))
    return foldline.compile(source).session()


def test_maps_are_dicts(names: Session) -> None:
    given = {"b": np.float32(2.5), "c": 1, "a": np.array(-1, np.float32)}
    (result,) = names.run(None, {"x": given})
    assert result.dtype == np.float32
    assert result.tolist() == [[-1, 2.5]]
    assert names.run(None, {"x": {}})[0].tolist() == [[0, 0]]
    assert names.get_inputs()[0].type == "map(string,tensor(float))"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3.0, r"input 'x' is float, expected a dict: map\(string,tensor\(float\)\)"),
        (np.zeros(2, np.float32), "input 'x' is ndarray, expected a dict"),
        ({1: 2.0}, "input 'x' has the key 1, expected str"),
        ({"a": np.float64(1)}, "input 'x', key 'a', is double, expected float"),
        ({"a": "b"}, "input 'x', key 'a', is 'b', which has no exact value as float"),
    ],
)
def test_what_is_no_map_of_the_kind_is_named(names: Session, given: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        names.run(None, {"x": given})


def test_keys_of_maps_may_be_integers_of_numpy() -> None:
    source = model("g (float x) => (float[1,N] y) { y = ai.onnx.ml.CastMap(x) }", ML)
    scalar = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    source.graph.input[0].type.CopyFrom(helper.make_map_type_proto(TensorProto.INT64, scalar))
    session = foldline.compile(source).session()
    assert session.run(None, {"x": {np.int64(3): 1.0, 2: 0.5}})[0].tolist() == [[0.5, 1]]
    for key in (True, "2", 2.0):
        with pytest.raises(InvalidArgumentError, match=f"has the key {key!r}, expected int"):
            session.run(None, {"x": {key: 1.0}})


@pytest.mark.parametrize(
    "given",
    [
        ["ü", "a\0"],
        np.array(["ü", "a\0"], object),
        np.array([b"\xc3\xbc", "a\0"], object),
        np.array(["ü".encode(), b"a\0"], object),
    ],
    ids=["list", "objects", "mixed", "bytes"],
)
def test_texts(given: Any) -> None:
    session = _session("g (string[2] x) => (string[2] y) { y = Identity(x) }")
    assert session.run(None, {"x": given})[0].tolist() == ["ü", "a\0"]


def test_fixed_width_texts() -> None:
    session = _session("g (string[2] x) => (string[2] y) { y = Identity(x) }")
    for given in (np.array(["ü", ""]), np.array(["ü".encode(), b""])):
        assert session.run(None, {"x": given})[0].tolist() == ["ü", ""]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", 3], r"input 'x', element \[1\], is int, expected str"),
        (np.array([None, "a"], object), r"element \[0\], is NoneType, expected str"),
        (np.array([b"a", b"\xff"]), r"element \[1\], is b'\\xff', which is no UTF-8"),
        (np.array([1, 2]), "input 'x' is int64, expected string"),
    ],
)
def test_what_is_no_text_is_named(given: Any, message: str) -> None:
    session = _session("g (string[2] x) => (string[2] y) { y = Identity(x) }")
    with pytest.raises(InvalidArgumentError, match=message):
        session.run(None, {"x": given})


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
