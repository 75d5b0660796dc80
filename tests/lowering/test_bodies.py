"""Bodies run by plans of their own once they have seen shapes a few times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.lowering import Program
from foldline.lowering.bodies import PLAN_AFTER, BodyProgram
from foldline.lowering.instances import Pool
from foldline.support.errors import KernelFailed
from tests.lowering.models import assert_same, in_threads, program

RUNS = PLAN_AFTER + 4

BRANCHES = """g (float[N] x, bool c) => (float[N] y, float[N] z) {
    a = Neg(x)
    y, z = If(c) <
        then_branch = t () => (float[N] p, float[N] q) { u = Abs(a) v = Exp(u) p = Neg(v) q = Add(p, x) },
        else_branch = e () => (float[N] r, float[N] s) { r = Identity(a) s = Identity(x) }
    > }"""  # noqa: E501


def _bodies(ready: Program) -> dict[str, BodyProgram]:
    found: dict[str, BodyProgram] = {}
    for call in ready._routine.calls:  # pyright: ignore[reportPrivateUsage]
        for name, body in call.bodies.items():
            assert isinstance(body, BodyProgram)
            found[name] = body
    return found


def _plans(ready: Program, name: str) -> list[Pool]:
    return _bodies(ready)[name].plans.all()


def _floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _branches(x: Any, condition: bool) -> list[Any]:
    p = -np.exp(np.abs(-x))
    return [p, p + x] if condition else [-x, x]


def test_a_branch_gets_a_plan_and_the_other_none() -> None:
    ready = program(BRANCHES)
    for seed in range(RUNS):
        x = _floats(5, seed=seed)
        assert_same(ready.run([x, np.array(True)]), _branches(x, True))
    (pool,) = _plans(ready, "then_branch")
    assert pool.idle
    assert pool.plan.arena_bytes > 0
    assert not _plans(ready, "else_branch")


def test_what_a_branch_returns_is_not_in_its_arena() -> None:
    # Were it there, the next run of the branch would change what the first one gave.
    graph = """g (int64 n, bool c, float[2] x) => (float[K, 2] s) {
        s = Loop(n, c) <body = b (int64 turn, bool going) => (bool next, float[2] out) {
            next = Identity(going)
            f = Cast<to = 1>(turn)
            out = If(going) <
                then_branch = t () => (float[2] p) { u = Mul(x, f) v = Add(u, f) p = Identity(v) },
                else_branch = e () => (float[2] q) { q = Identity(x) }
            >
        }> }"""
    ready = program(graph)
    x = _floats(2)
    turns = np.arange(40, dtype=np.float32)[:, None]
    for _ in range(RUNS):
        assert_same(ready.run([np.array(40), np.array(True), x]), [x * turns + turns])


def test_shapes_take_turns() -> None:
    ready = program(BRANCHES)
    for run in range(4 * RUNS):
        x = _floats(run % 3 + 1, seed=run)
        condition = run % 2 == 0
        assert_same(ready.run([x, np.array(condition)]), _branches(x, condition))
    assert len(_plans(ready, "then_branch")) == len(_plans(ready, "else_branch")) == 3


def test_plans_of_a_body_are_bounded() -> None:
    ready = program(BRANCHES)
    for n in range(1, 21):
        for _ in range(RUNS):
            ready.run([_floats(n), np.array(True)])
    assert len(_plans(ready, "then_branch")) == 8


def test_many_threads_run_one_body() -> None:
    ready = program(BRANCHES)

    def body(thread: int) -> None:
        for run in range(60):
            x = _floats(1 + (run + thread) % 3, seed=run)
            condition = bool(thread % 2)
            assert_same(ready.run([x, np.array(condition)]), _branches(x, condition))

    in_threads(8, body)


LOOP = """g (int64 n, bool c, float[K] x) => (float[L] y) {
    y = Loop(n, c, x) <body = b (int64 turn, bool going, float[A] state)
        => (bool next, float[B] new) {
        next = Identity(going)
        u = Neg(state)
        v = Abs(u)
        NEW
    }> }"""
STEADY = LOOP.replace("NEW", "new = Add(v, x)")
GROWING = LOOP.replace("NEW", "new = Concat<axis = 0>(v, x)")


def test_a_loop_of_equal_shapes_gets_a_plan_within_one_run() -> None:
    ready = program(STEADY)
    x = _floats(4)
    assert_same(ready.run([np.array(50), np.array(True), x]), [_steady(50, x)])
    assert len(_plans(ready, "body")) == 1


def _steady(turns: int, x: Any) -> Any:
    state = x
    for _ in range(turns):
        state = np.abs(-state) + x
    return state


def test_a_loop_of_growing_shapes_gets_no_plan_but_for_its_first_turn() -> None:
    ready = program(GROWING)
    x = _floats(3)
    for _ in range(RUNS):
        (y,) = ready.run([np.array(40), np.array(True), x])
        np.testing.assert_array_equal(y, np.concatenate([np.abs(x)] * 40 + [x]))
    assert len(_plans(ready, "body")) <= 1


def test_a_branch_that_shapes_choose_is_part_of_the_plan_around_it() -> None:
    graph = """g (float[N] x) => (float[K] y) <int64 zero = {0}, int64 one = {1}> {
        s = Shape(x)
        n = Gather(s, zero)
        c = Equal(n, one)
        b = If(c) <
            then_branch = t () => (float[M] p) { p = Neg(x) },
            else_branch = e () => (float[M] q) {
                d = Not(c)
                q = If(d) <
                    then_branch = i () => (float[M] u) { v = Mul(x, x) u = Exp(v) },
                    else_branch = j () => (float[M] w) { w = Identity(x) }
                >
            }
        >
        a = Abs(b)
        y = Sqrt(a) }"""
    ready = program(graph)
    for size in (1, 4):
        x = _floats(size)
        expected = np.sqrt(np.abs(-x if size == 1 else np.exp(x * x)))
        for _ in range(4):
            np.testing.assert_array_equal(ready.run([x])[0], expected)
        plan = ready.plans()[-1].plan
        operators = [planned.call.kernel.op_type for planned in plan.calls]
        inner = ["Neg"] if size == 1 else ["Mul", "Exp"]
        assert operators == [*inner, "Abs", "Sqrt"]
        assert {planned.kind for planned in plan.calls} <= {"out", "fresh"}
        assert plan.owned == (True,)


def test_a_value_that_a_chosen_branch_hands_on_outlives_the_if() -> None:
    graph = """g (float[N] x) => (float[N] y) <int64 zero = {0}, int64 four = {4}> {
        s = Shape(x)
        n = Gather(s, zero)
        c = Equal(n, four)
        a = Neg(x)
        b = If(c) <
            then_branch = t () => (float[N] p) { p = Identity(a) },
            else_branch = e () => (float[N] q) { q = Abs(a) }
        >
        d = Mul(x, x)
        f = Add(d, x)
        g = Mul(f, b)
        y = Sub(g, a) }"""
    ready = program(graph)
    x = _floats(4)
    for _ in range(5):
        np.testing.assert_array_equal(ready.run([x])[0], (x * x + x) * -x + x)


def test_what_a_planned_body_raises_says_where() -> None:
    graph = """g (float[N] x, bool c, int64 i) => (float y) {
        y = If(c) <
            then_branch = t () => (float p) { a = Neg(x) p = Gather(a, i) },
            else_branch = e () => (float q) { q = ReduceSum<keepdims = 0>(x) }
        > }"""
    ready = program(graph)
    x, yes = _floats(3), np.array(True)
    for _ in range(RUNS):
        assert_same(ready.run([x, yes, np.array(1)]), [-x[1]])
    assert len(_plans(ready, "then_branch")) == 1
    for _ in range(2):
        with pytest.raises(KernelFailed, match=r"onnx.Gather \(output 'p'\)") as caught:
            ready.run([x, yes, np.array(9)])
        assert any("onnx.If" in note for note in caught.value.__notes__)
        assert_same(ready.run([x, yes, np.array(2)]), [-x[2]])


def test_bodies_that_take_sequences_run_without_plan() -> None:
    graph = """g (seq(float[2]) x, bool c) => (float[2] y) <int64 zero = {0}> {
        y = If(c) <
            then_branch = t () => (float[2] p) { p = SequenceAt(x, zero) },
            else_branch = e () => (float[2] q) { a = SequenceAt(x, zero) q = Neg(a) }
        > }"""
    ready = program(graph)
    x = _floats(2)
    for condition in (True, False) * RUNS:
        assert_same(ready.run([[x], np.array(condition)]), [x if condition else -x])
    assert not _plans(ready, "then_branch")


def test_a_plan_keeps_nothing_that_a_body_was_given() -> None:
    ready = program(BRANCHES)
    for _ in range(RUNS):
        ready.run([_floats(3), np.array(True)])
    (pool,) = _plans(ready, "then_branch")
    for instance in pool.idle:
        frame = instance._frame  # pyright: ignore[reportPrivateUsage]
        assert all(frame[slot] is None for slot in pool.plan.moving)
