"""Tests of expressions: normal forms, and that every operation computes what it says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.stages.symbols.expression import (
    MAX_SIZE,
    Expr,
    at_most,
    broadcast,
    constant,
    exact_quotient,
    floordiv,
    maximum,
    minimum,
    mod,
    simplest,
    symbol,
    vanishes_with,
)
from tests.stages.symbols.evaluate import evaluate

N, S, H = symbol("N"), symbol("S"), symbol("H")


def test_equal_expressions_are_one_object() -> None:
    assert (N + 1) * (N - 1) is N * N - 1
    assert symbol("N") is N
    assert constant(7) - 7 is constant(0)
    assert S * N is N * S
    assert N + S is not N - S


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (constant(0), "0"),
        (constant(-3), "-3"),
        (N * S * 12 - 2 * S + 1, "12*N*S - 2*S + 1"),
        (-N, "-N"),
        (floordiv(H + 1, 2), "floordiv(H + 1, 2)"),
        (maximum(0, S - 3), "max(0, S - 3)"),
    ],
)
def test_text(expr: Expr, text: str) -> None:
    assert str(expr) == text


def test_quotients_of_quotients_are_one() -> None:
    assert floordiv(floordiv(H, 2), 2) is floordiv(H, 4)
    assert floordiv(floordiv(H + 1, 2) + 1, 2) is floordiv(H + 3, 4)
    assert floordiv(floordiv(H, 2) * 2, 4) is floordiv(H, 4)
    assert floordiv(8 * N + 9, 8) is N + 1
    assert floordiv(2 * N + 3, 4) is floordiv(N + 1, 2)
    assert floordiv(N * S, S) is N


def test_a_quotient_times_its_divisor_is_not_the_dividend() -> None:
    assert floordiv(H, 8) * 8 is not H
    assert mod(8 * H, 8) is constant(0)
    assert mod(9 * H + 17, 8) is mod(H + 1, 8)


def test_exact_quotients() -> None:
    assert exact_quotient(12 * N * S, 4 * S) is 3 * N
    assert exact_quotient((N + S) * (N - H), N - H) is N + S
    assert exact_quotient(N * N - S * S, N - S) is N + S
    assert exact_quotient(N, 2) is None
    assert exact_quotient(N + 1, N) is None
    assert exact_quotient(N, 0) is None
    assert exact_quotient(0, N) is constant(0)


def test_division_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        floordiv(N, 0)
    with pytest.raises(ZeroDivisionError):
        mod(N, 0)


def test_extremes() -> None:
    assert minimum(S, minimum(S, 512)) is minimum(S, 512)
    assert maximum(0, S) is S
    assert minimum(3, 5) is constant(3)
    assert maximum(minimum(S, 512), S) is S
    assert minimum(S + 1, S) is S
    assert maximum(0, S - 3) is not S - 3


def test_broadcast() -> None:
    assert broadcast(N, N) is N
    assert broadcast(N, 1) is N
    assert broadcast(N, 7) is constant(7)
    assert broadcast(N, 0) is constant(0)
    assert broadcast(3, 4) is None
    both = broadcast(N, S)
    assert both is not None
    assert broadcast(both, N) is both
    assert broadcast(S, both) is both
    assert broadcast(both, 5) is constant(5)


def test_broadcast_with_a_cut() -> None:
    assert broadcast(S, minimum(S, 512)) is S
    assert broadcast(minimum(S, 512), S) is S
    # If 0 were possible beside S = 1, the result would be 0.
    assert broadcast(S, minimum(S, N)) is not S


def test_what_is_certain_not_to_be_negative() -> None:
    assert (N * S + 3).is_nonneg
    assert floordiv(N + 1, 2).is_nonneg
    assert mod(N - 5, 8).is_nonneg
    assert maximum(0, S - 3).is_nonneg
    assert not (N - 1).is_nonneg
    assert not floordiv(N - 3, 2).is_nonneg
    assert not minimum(N, S - 1).is_nonneg


def test_at_most() -> None:
    assert at_most(minimum(S, 512), S)
    assert at_most(floordiv(S, 2), S)
    assert at_most(S, maximum(S, N))
    assert not at_most(S, minimum(S, 512))
    assert not at_most(N, S)


def test_what_vanishes_together() -> None:
    both = broadcast(N, S)
    assert both is not None
    assert vanishes_with(both, N)
    assert not vanishes_with(N, both)
    assert vanishes_with(N * S * 4, N)
    assert vanishes_with(both * H, 2 * both)
    assert vanishes_with(N + 1, N + 1)
    assert not vanishes_with(N, N * S)
    assert not vanishes_with(N + S, N)
    assert vanishes_with(N, constant(4))
    assert not vanishes_with(N, constant(0))


def test_simplest_prefers_what_is_older_and_shorter() -> None:
    assert simplest([N * S + 1, S, N]) is N


def test_size_is_bounded() -> None:
    expr = N
    while not expr.is_unwieldy:
        expr = minimum(expr + S, floordiv(expr * H + 1, 3))
    assert MAX_SIZE < expr.size < MAX_SIZE * 20
    power = N + S + H
    for _ in range(200):
        power = power * power
        if power.is_unwieldy:
            break
    assert len(power.terms) <= MAX_SIZE


Operation = tuple[Callable[[Expr, Expr], Expr], Callable[[int, int], int]]
OPERATIONS: list[Operation] = [
    (lambda a, b: a + b, lambda a, b: a + b),
    (lambda a, b: a - b, lambda a, b: a - b),
    (lambda a, b: a * b, lambda a, b: a * b),
    (floordiv, lambda a, b: a // b),
    (mod, lambda a, b: a % b),
    (minimum, min),
    (maximum, max),
]


@settings(max_examples=300, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 2, 3, 7, 16]), min_size=3, max_size=3),
    steps=st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 99), st.integers(0, 99)),
        max_size=10,
    ),
    numbers=st.lists(st.integers(-9, 9), min_size=3, max_size=3),
)
def test_every_operation_computes(
    sizes: list[int], steps: list[tuple[Operation, int, int]], numbers: list[int]
) -> None:
    values = dict(zip("NSH", sizes, strict=True))
    pool = [(N, sizes[0]), (S, sizes[1]), (H, sizes[2])]
    pool += [(constant(number), number) for number in numbers]
    for (symbolic, numeric), first, second in steps:
        (a, x), (b, y) = pool[first % len(pool)], pool[second % len(pool)]
        try:
            expected = numeric(x, y)
            expr = symbolic(a, b)
        except ZeroDivisionError:
            continue
        assert evaluate(expr, values) == expected, f"{expr} of {values}"
        assert expected >= 0 or not expr.is_nonneg
        pool.append((expr, expected))


@settings(max_examples=300, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 2, 5]), min_size=2, max_size=2),
    limit=st.integers(0, 3),
    picks=st.lists(st.integers(0, 99), min_size=3, max_size=3),
)
def test_broadcasts_that_succeed_compute(sizes: list[int], limit: int, picks: list[int]) -> None:
    values = dict(zip("NS", sizes, strict=True))
    pool = [N, S, constant(1), constant(limit), minimum(N, limit), minimum(S, N)]
    exprs = [pool[pick % len(pool)] for pick in picks]
    numbers = {evaluate(expr, values) for expr in exprs} - {1}
    if len(numbers) > 1:
        return  # The operator fails.
    found: Expr | None = exprs[0]
    for expr in exprs[1:]:
        assert found is not None
        found = broadcast(found, expr)
    assert found is not None
    assert evaluate(found, values) == (numbers or {1}).pop()
