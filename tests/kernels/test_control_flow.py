from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from foldline.importer import import_model
from foldline.kernels.control_flow import ValueType, if_, loop, scan, scan_8, sequence_map
from foldline.lowering import lower
from foldline.support.errors import KernelFailed
from tests.lowering.models import assert_same, every_kind, model, program


class Given:
    """A body that is a Python function."""

    def __init__(
        self,
        function: Callable[..., tuple[Any, ...]],
        results: Sequence[ValueType],
        parameters: Sequence[ValueType] = (ValueType(), ValueType()),
    ):
        self.function = function
        self.results = results
        self.parameters = parameters

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        return self.function(*inputs)


F32 = np.dtype(np.float32)
UNTYPED = ValueType()


def _oracle(source: onnx.ModelProto, feed: dict[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(source.SerializeToString(), options)
    return list(session.run(None, feed))


def _assert_like_oracle(graph: str, *inputs: Any, head: str | None = None) -> list[Any]:
    """Every kind of run gives what ONNX Runtime gives."""
    head = head or '<ir_version: 8, opset_import: ["" : 17]>'
    source = model(graph, head)
    names = [value.name for value in source.graph.input]
    expected = _oracle(source, dict(zip(names, inputs, strict=True)))
    kept = [x.copy() for x in inputs]
    for result in every_kind(program(graph, head), inputs):
        assert_same(result, expected)
    assert_same(inputs, kept)
    return expected


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("condition", [True, False])
def test_if_runs_one_branch(shape: tuple[int, ...], condition: bool) -> None:
    taken: list[str] = []

    def branch(name: str) -> Given:
        return Given(lambda: (taken.append(name), np.array(name, object))[1:], [UNTYPED], ())

    cond = np.full(shape, condition)
    result = if_(cond, then_branch=branch("then"), else_branch=branch("else"))
    assert taken == [result.item()] == ["then" if condition else "else"]


def test_if_needs_one_element() -> None:
    nothing = Given(lambda: (), [], ())
    with pytest.raises(ValueError, match="size 1"):
        if_(np.array([True, False]), then_branch=nothing, else_branch=nothing)


def test_branches_use_outer_values_and_may_return_them() -> None:
    graph = """g (float[3] x, bool c) => (float[3] y, float[3] z) {
        a = Neg(x)
        b = If(c) <
            then_branch = t () => (float[3] p) { p = Identity(a) },
            else_branch = e () => (float[3] q) { q = Add(a, x) }
        >
        d = Exp(x)
        e2 = Exp(d)
        z = Neg(e2)
        y = Abs(b) }"""
    x = np.array([1, -2, 0.5], np.float32)
    for condition in (True, False):
        a = -x
        expected = np.abs(a if condition else a + x)
        for y, z in every_kind(program(graph), [x, np.array(condition)]):
            assert_same([y], [expected])
            assert_same([z], [-np.exp(np.exp(x))])


def test_an_outer_value_that_a_branch_returns_is_not_overwritten() -> None:
    # In a plan, `a` may be in the arena; `b` may be `a` itself; `d` must not take its memory.
    graph = """g (float[4] x, bool c) => (float[4] y) {
        a = Neg(x)
        b = If(c) <
            then_branch = t () => (float[4] p) { p = Identity(a) },
            else_branch = e () => (float[4] q) { q = Identity(x) }
        >
        d = Mul(x, x)
        f = Mul(d, x)
        y = Sub(b, f) }"""
    x = np.array([1, 2, 3, 4], np.float32)
    for (y,) in every_kind(program(graph), [x, np.array(True)]):
        assert_same([y], [-x - x * x * x])


def test_branches_may_have_other_shapes() -> None:
    graph = """g (float[4] x, bool c) => (float[K] y) <int64[1] z = {0}, int64[1] two = {2}> {
        b = If(c) <
            then_branch = t () => (float[2] p) { p = Slice(x, z, two) },
            else_branch = e () => (float[4] q) { q = Neg(x) }
        >
        y = Neg(b) }"""
    ready = program(graph)
    x = np.array([1, 2, 3, 4], np.float32)
    for turn in range(8):
        condition = turn % 3 == 0
        assert_same(ready.run([x, np.array(condition)]), [-x[:2] if condition else x])
    assert len(ready.plans()) == 1


def _loop(trip: str, cond: str) -> str:
    return f"""g (int64 n, bool c, float[2] x) => (float[2] y, float[K, 2] s, int64[K] i) {{
        y, s, i = Loop({trip}, {cond}, x) <
            body = b (int64 turn, bool going, float[2] state)
                => (bool next, float[2] new, float[2] out, int64 index)
            <float[2] one = {{1, 2}}, int64 limit = {{3}}> {{
                next = Less(turn, limit)
                new = Add(state, one)
                out = Mul(new, x)
                index = Identity(turn)
            }}
        > }}"""


@pytest.mark.parametrize("trips", [0, 1, 3, 10, -1])
@pytest.mark.parametrize(("trip", "cond"), [("n", ""), ("", "c"), ("n", "c")])
@pytest.mark.parametrize("going", [True, False])
def test_loop_stops_by_count_or_condition(trips: int, trip: str, cond: str, going: bool) -> None:
    x = np.array([1, -2], np.float32)
    _assert_like_oracle(_loop(trip, cond), np.array(trips), np.array(going), x)


def test_a_loop_without_turns_gives_empty_outputs_of_the_declared_types() -> None:
    body = Given(
        lambda *inputs: inputs,
        [UNTYPED, UNTYPED, ValueType(F32, (2, None)), ValueType(np.dtype(object), ()), UNTYPED],
    )
    state, first, second, third = loop(np.array(0), None, np.ones(3), body=body)
    np.testing.assert_array_equal(state, np.ones(3))
    assert (first.shape, first.dtype) == ((0, 2, 0), F32)
    assert (second.shape, second.dtype) == ((0,), np.dtype(object))
    assert (third.shape, third.dtype) == ((0,), F32)


def test_the_node_may_know_the_types_of_a_body_that_does_not() -> None:
    source = model(_loop("n", "c"))
    body = source.graph.node[0].attribute[0].g
    for output in body.output:
        output.ClearField("type")
    ready = lower(import_model(source))
    x = np.zeros(2, np.float32)
    for _, s, i in every_kind(ready, [np.array(0), np.array(True), x]):
        assert (s.shape, s.dtype) == ((0, 2), F32)
        assert (i.shape, i.dtype) == ((0,), np.dtype(np.int64))


def test_loop_counter_and_condition_have_the_rank_the_body_declares() -> None:
    seen: list[Any] = []

    def run(index: Any, flag: Any) -> tuple[Any, ...]:
        seen.append((index.shape, index.dtype, flag.shape))
        return (np.array([True]),)

    vector = ValueType(None, (1,))
    loop(np.array([2]), np.array([True]), body=Given(run, [UNTYPED], [vector, ValueType()]))
    assert seen == [((1,), np.dtype(np.int64), ())] * 2


def test_loop_refuses_scan_outputs_of_different_shapes() -> None:
    body = Given(lambda i, c: (c, np.zeros(int(i))), [UNTYPED, UNTYPED])
    with pytest.raises(ValueError, match=r"shape \(0,\) in turn 0, \(1,\) in turn 1"):
        loop(np.array(2), None, body=body)


def test_loop_state_may_grow() -> None:
    graph = """g (int64 n, float[K] x) => (float[L] y) {
        y = Loop(n, , x) <
            body = b (int64 turn, bool going, float[A] state) => (bool next, float[B] new) {
                next = Identity(going)
                f = Cast<to = 1>(turn)
                r = Reshape(f, one)
                new = Concat<axis = 0>(state, r)
            }
        > }"""
    graph = graph.replace("=> (float[L] y) {", "=> (float[L] y) <int64[1] one = {1}> {")
    _assert_like_oracle(graph, np.array(7), np.array([9], np.float32))


def test_loops_nest_and_read_values_of_all_levels() -> None:
    graph = """g (int64 n, float[2] x) => (float[2] y, float[K, L, 2] s) {
        a = Neg(x)
        y, s = Loop(n, , x) <
            body = b (int64 i, bool p, float[2] outer) => (bool q, float[2] out, float[L, 2] t) {
                q = Identity(p)
                m = Add(outer, a)
                out, t = Loop(n, , m) <
                    body = c (int64 j, bool u, float[2] inner)
                        => (bool v, float[2] new, float[2] seen) {
                        v = Identity(u)
                        new = Add(inner, outer)
                        seen = Mul(new, a)
                    }
                >
            }
        > }"""
    _assert_like_oracle(graph, np.array(3), np.array([1, 0.5], np.float32))


def test_loop_carries_sequences() -> None:
    graph = """g (int64 n, float[2] x) => (int64 k, float[M] y) {
        empty = SequenceEmpty<dtype = 1>()
        seq = Loop(n, , empty) <
            body = b (int64 i, bool p, seq(float[2]) s) => (bool q, seq(float[2]) t) {
                q = Identity(p)
                f = Cast<to = 1>(i)
                v = Add(x, f)
                t = SequenceInsert(s, v)
            }
        >
        k = SequenceLength(seq)
        y = ConcatFromSequence<axis = 0>(seq) }"""
    _assert_like_oracle(graph, np.array(3), np.array([1, 2], np.float32))


def test_a_failing_body_names_the_node_and_the_loop() -> None:
    graph = """g (int64 n, float[2] x) => (float[K] y) {
        [outer] y = Loop(n, ) <
            body = b (int64 i, bool p) => (bool q, float out) {
                q = Identity(p)
                [inner] out = Gather(x, i)
            }
        > }"""
    ready = program(graph)
    for _ in range(3):
        with pytest.raises(KernelFailed, match=r"onnx.Gather \(node 'inner'\)") as caught:
            ready.run([np.array(3), np.zeros(2, np.float32)])
        assert caught.value.__notes__ == ["in a body of onnx.Loop (node 'outer')"]


def _scan(attributes: str) -> str:
    return f"""g (float[2] x, float[A, B] u, float[C, D] v)
        => (float[2] y, float[E, F] p, float[G, H] q) {{
        y, p, q = Scan <num_scan_inputs = 2 {attributes},
            body = b (float[2] s, float[2] a, float[2] c)
                => (float[2] new, float[2] first, float[2] second) {{
                w = Mul(a, x)
                new = Add(s, w)
                first = Sub(new, c)
                second = Neg(a)
            }}
        >(x, u, v) }}"""


@pytest.mark.parametrize("in_axes", [(0, 0), (1, 0), (-1, 1)])
@pytest.mark.parametrize("in_directions", [(0, 0), (1, 0)])
@pytest.mark.parametrize("out_axes", [(0, 0), (1, -1)])
@pytest.mark.parametrize("out_directions", [(0, 0), (0, 1)])
def test_scan_axes_and_directions(
    in_axes: tuple[int, int],
    in_directions: tuple[int, int],
    out_axes: tuple[int, int],
    out_directions: tuple[int, int],
) -> None:
    attributes = f"""
        , scan_input_axes = {list(in_axes)}, scan_input_directions = {list(in_directions)}
        , scan_output_axes = {list(out_axes)}, scan_output_directions = {list(out_directions)}"""
    rng = np.random.default_rng(0)
    u, v = (
        np.moveaxis(rng.standard_normal((3, 2)).astype(np.float32), 0, axis).copy()
        for axis in in_axes
    )
    _assert_like_oracle(_scan(attributes), np.array([1, 2], np.float32), u, v)


def test_scan_without_states_and_with_defaults() -> None:
    graph = """g (float[A, 2] u) => (float[A] p) {
        p = Scan <num_scan_inputs = 1,
            body = b (float[2] a) => (float out) {
                out = ReduceSum<keepdims = 0>(a)
            }
        >(u) }"""
    _assert_like_oracle(graph, np.arange(6, dtype=np.float32).reshape(3, 2))


def test_scan_over_nothing_is_empty() -> None:
    body = Given(lambda s, a: (s, a), [UNTYPED, ValueType(F32, (4,))])
    state, out = scan(np.ones(2), np.zeros((0, 4), np.float32), body=body, num_scan_inputs=1)
    np.testing.assert_array_equal(state, np.ones(2))
    assert out.shape == (0, 4)


def test_scan_refuses_inputs_of_different_lengths() -> None:
    body = Given(lambda a, b: (a,), [UNTYPED])
    with pytest.raises(ValueError, match=r"lengths \[2, 3\]"):
        scan(np.zeros(2), np.zeros(3), body=body, num_scan_inputs=2)


def test_scan_of_strings_keeps_the_dtype() -> None:
    body = Given(lambda a: (a,), [UNTYPED])
    words = np.array(["a", "b"], object)
    result = scan(words, body=body, num_scan_inputs=1, scan_output_directions=[1])
    assert result.tolist() == ["b", "a"]


@pytest.mark.parametrize("lengths", [None, [3, 1]])
@pytest.mark.parametrize("direction", [0, 1])
def test_scan_8_runs_every_batch_entry_over_its_length(
    lengths: list[int] | None, direction: int
) -> None:
    body = Given(lambda s, a: (s + a, s * 10 + a), [UNTYPED, UNTYPED])
    start = np.array([[1.0], [2.0]])
    series = np.arange(1.0, 7).reshape(2, 3, 1)
    state, out = scan_8(
        None if lengths is None else np.array(lengths),
        start,
        series,
        body=body,
        num_scan_inputs=1,
        directions=[direction],
    )
    for entry, length in enumerate(lengths or [3, 3]):
        s, expected = start[entry], np.zeros((3, 1))
        order = range(length)
        for turn, t in enumerate(reversed(order) if direction else order):
            expected[turn] = s * 10 + series[entry, t]
            s = s + series[entry, t]
        np.testing.assert_array_equal(out[entry], expected)
        np.testing.assert_array_equal(state[entry], s)


def test_scan_8_as_onnx_runtime() -> None:
    graph = """g (int64[2] n, float[2, 2] x, float[2, A, 2] u)
        => (float[2, 2] y, float[2, A, 2] p) {
        y, p = Scan <num_scan_inputs = 1,
            body = b (float[2] s, float[2] a) => (float[2] new, float[2] out) {
                new = Add(s, a)
                out = Mul(new, a)
            }
        >(n, x, u) }"""
    rng = np.random.default_rng(1)
    _assert_like_oracle(
        graph,
        np.array([2, 3]),
        rng.standard_normal((2, 2)).astype(np.float32),
        rng.standard_normal((2, 3, 2)).astype(np.float32),
        head='<ir_version: 4, opset_import: ["" : 8]>',
    )


def test_sequence_map_takes_tensors_and_sequences() -> None:
    body = Given(lambda a, b, c: (a + b, a * c), [UNTYPED, UNTYPED])
    first, second = [np.array([1, 2]), np.array([3])], [np.array(10), np.array(20)]
    sums, products = sequence_map(first, second, np.array(3), body=body)
    assert [x.tolist() for x in sums] == [[11, 12], [23]]
    assert [x.tolist() for x in products] == [[3, 6], [9]]


def test_sequence_map_of_nothing() -> None:
    body = Given(lambda a: (a,), [UNTYPED])
    assert sequence_map([], body=body) == []


def test_the_trip_count_may_be_a_vector_of_one_element() -> None:
    ready = program(_loop("n", "c").replace("int64 n", "int64[1] n"))
    y, s, _ = ready.run([np.array([2]), np.array(True), np.ones(2, np.float32)])
    assert s.shape == (2, 2)
    assert y.tolist() == [3, 5]
