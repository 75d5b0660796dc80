from __future__ import annotations

from foldline.dialects.plan import CallOp, ConstantOp
from tests.lowering.models import program


def _calls(graph: str) -> list[CallOp]:
    ready = program(graph)
    return [op for op in ready.source.body.block.ops if isinstance(op, CallOp)]


def test_a_value_dies_where_it_is_read_last() -> None:
    first, second, third = _calls(
        "g (float[2] x) => (float[2] z) { a = Neg(x) b = Add(a, x) z = Mul(b, a) }"
    )
    assert first.positions("frees") == ()
    assert second.positions("frees") == (1,)
    assert third.positions("frees") == (0, 1)


def test_a_value_read_twice_dies_once() -> None:
    _, last = _calls("g (float[2] x) => (float[2] z) { a = Neg(x) z = Add(a, a) }")
    assert last.positions("frees") == (0,)


def test_outputs_and_constants_do_not_die() -> None:
    calls = _calls(
        "g (float[2] x) => (float[2] a, float[2] z) <float[2] c = {1, 2}>"
        "{ a = Neg(x) z = Add(a, c) }"
    )
    assert [call.positions("frees") for call in calls] == [(0,), ()]


def test_what_is_computed_once_comes_first_and_lives_on() -> None:
    ready = program(
        "g (float[2] x) => (float[2] z) <float[2] c = {1, 2}>"
        "{ a = Neg(x) k = Neg(c) m = Exp(k) z = Add(a, m) }"
    )
    ops = list(ready.source.body.block.ops)
    assert isinstance(ops[0], ConstantOp)
    calls = [op for op in ops if isinstance(op, CallOp)]
    assert [(c.operator[1], c.is_once) for c in calls] == [
        ("Neg", True),
        ("Exp", True),
        ("Neg", False),
        ("Add", False),
    ]
    assert [c.positions("frees") for c in calls] == [(), (0,), (0,), (0,)]
