from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import threadpoolctl

from foldline.kernels.registry import kernel
from foldline.session import NodeArg, Session
from foldline.support.errors import InvalidArgumentError, KernelFailed
from tests.lowering import kernels as told
from tests.lowering.models import assert_same, in_threads, program

GRAPH = "g (float[N, 3] x, int64 k) => (float[N, 3] y, int64 m) { y = Neg(x) m = Add(k, k) }"

inner: list[Session] = []
"""Sessions that `Nested` runs."""


@kernel("BlasThreads", domain=told.DOMAIN)
def blas_threads(x: Any) -> Any:
    """How many threads BLAS may use now."""
    info = threadpoolctl.threadpool_info()
    counts = [entry["num_threads"] for entry in info if entry["user_api"] == "blas"]
    return np.array(max(counts), np.int64)


@kernel("Nested", domain=told.DOMAIN)
def run_nested(x: Any) -> Any:
    """The same, after runs of other sessions."""
    for session in inner:
        session.run(None, {"x": x})
    return blas_threads(x)


def _session(graph: str = GRAPH, threads: int | None = 1) -> Session:
    return Session(program(graph), threads)


def _x(n: int = 2) -> Any:
    return np.arange(3 * n, dtype=np.float32).reshape(n, 3)


def test_inputs_and_outputs_are_described() -> None:
    session = _session("g (float[N, 3] x, seq(string[]) s) => (float[N, 3] y, bool z) "
                       "{ y = Neg(x) k = SequenceLength(s) z = Equal(k, k) }")  # fmt: skip
    assert session.get_inputs() == [
        NodeArg("x", "tensor(float)", ["N", 3]),
        NodeArg("s", "seq(tensor(string))", None),
    ]
    assert session.get_outputs() == [
        NodeArg("y", "tensor(float)", ["N", 3]),
        NodeArg("z", "tensor(bool)", []),
    ]


def test_outputs_are_chosen_ordered_and_repeated_by_name() -> None:
    session = _session()
    feed = {"x": _x(), "k": np.array(3)}
    for _ in range(4):
        assert_same(session.run(None, feed), [-_x(), np.array(6)])
        m, y, again = session.run(["m", "y", "y"], feed)
        assert_same([m, y, again], [np.array(6), -_x(), -_x()])
        assert not np.shares_memory(y, again)
        assert session.run([], feed) == []


def test_an_unknown_output_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no output 'yy'; did you mean 'y'\?"):
        _session().run(["yy"], {"x": _x(), "k": 3})


def test_threads_must_be_positive() -> None:
    with pytest.raises(InvalidArgumentError, match="at least 1, got 0"):
        _session(threads=0)
    assert _session(threads=None).threads >= 1


def test_overridable_initializers_may_be_left_out() -> None:
    session = _session("g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }")
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    assert [arg.name for arg in session.get_overridable_initializers()] == ["w"]
    x = np.zeros(2, np.float32)
    for _ in range(4):
        assert_same(session.run(None, {"x": x}), [np.array([1, 2], np.float32)])
        assert_same(session.run(None, {"x": x, "w": x + 5}), [x + 5])
    with pytest.raises(InvalidArgumentError, match="'w' is double"):
        session.run(None, {"x": x, "w": np.zeros(2)})


def test_eight_threads_on_one_session_equal_serial_results() -> None:
    graph = """g (float[N, 64] x, float[64, 64] w) => (float[N, 64] y, float[64, N] t) {
        a = MatMul(x, w)
        b = Softmax(a)
        c = Transpose(b)
        d = ReduceMean<axes = [1]>(c)
        e = Sub(c, d)
        t = Exp(e)
        y = Transpose(t) }"""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((64, 64)).astype(np.float32)
    feeds = [{"x": rng.standard_normal((n, 64)).astype(np.float32), "w": w} for n in (1, 50, 300)]
    serial = [_session(graph).run(None, feed) for feed in feeds]
    session = _session(graph, threads=2)

    def body(thread: int) -> None:
        for turn in range(50):
            which = (turn + thread) % 3
            assert_same(session.run(None, feeds[which]), serial[which])

    in_threads(8, body)


def test_the_callers_state_of_numpy_is_untouched() -> None:
    session = _session("g (float[4] x) => (float[4] y) { a = Exp(x) y = Mul(a, a) }")
    x = np.full(4, 1000, np.float32)
    with np.errstate(all="raise"):
        before = np.geterr(), np.getbufsize()
        for _ in range(4):
            assert_same(session.run(None, {"x": x}), [np.full(4, np.inf, np.float32)])
            assert (np.geterr(), np.getbufsize()) == before


def test_a_run_that_failed_leaves_the_session_as_it_was() -> None:
    session = _session("g (float[N] x, int64[1] i) => (float[M] y) { a = Neg(x) y = Gather(a, i) }")
    x = np.arange(3, dtype=np.float32)
    for _ in range(4):
        assert_same(session.run(None, {"x": x, "i": np.array([2])}), [np.float32([-2])])
        with pytest.raises(KernelFailed, match=r"(?s)Gather.*inputs: float32\[3\], int64\[1\]"):
            session.run(None, {"x": x, "i": np.array([5])})


def test_intermediate_values_can_be_seen() -> None:
    session = _session("g (float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }")
    x = np.ones(2, np.float32)
    assert_same([session.values({"x": x}, ["a"])["a"]], [-x])
    with pytest.raises(InvalidArgumentError, match="no value 'b'"):
        session.values({"x": x}, ["b"])


def test_the_callers_blas_threads_come_back() -> None:
    plain = _session("g (float[2] x) => (int64 n) { n = test.lowering.BlasThreads(x) }")
    nesting = _session("g (float[2] x) => (int64 n) { n = test.lowering.Nested(x) }")
    failing = _session("g (float[2] x) => (float[2] y) { y = test.lowering.Fail(x) }")
    feed = {"x": np.zeros(2, np.float32)}
    inner.append(plain)
    try:
        with threadpoolctl.threadpool_limits(2, user_api="blas"):
            before = threadpoolctl.threadpool_info()
            assert plain.run(None, feed) == [1]
            assert threadpoolctl.threadpool_info() == before
            assert nesting.run(None, feed) == [1]
            assert threadpoolctl.threadpool_info() == before
            with pytest.raises(KernelFailed):
                failing.run(None, feed)
            assert threadpoolctl.threadpool_info() == before
            in_threads(4, lambda index: plain.run(None, feed))
            assert threadpoolctl.threadpool_info() == before
    finally:
        inner.clear()
