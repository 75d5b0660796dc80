"""Targets of Reshape: numbers, copies and what is left over."""

from __future__ import annotations

import pytest

from foldline.stages.symbols.expression import Expr, constant, symbol
from foldline.stages.symbols.targets import reshape_target

N, S = symbol("N"), symbol("S")
FOUR = constant(4)


@pytest.mark.parametrize(
    ("sizes", "out", "given", "expected"),
    [
        ((N, S, FOUR), (N, S * 4), (N, S * 4), None),
        ((N, FOUR, FOUR), (N, constant(16)), (N, 16), [0, 16]),
        ((N, S, FOUR, FOUR), (N, S, constant(16)), (N, S, 16), [0, 0, 16]),
        ((N, S, FOUR), (N * S, FOUR), (None, 4), [-1, 4]),
        ((FOUR, N), (N, FOUR), (N, 4), [-1, 4]),
        # A -1 of the model stays where it is.
        ((N, S, FOUR), (N, S * 4), (N, -1), [0, -1]),
        ((N, S), (S, N), (S, -1), None),
        # Numbers come first, though 0 would do.
        ((N, FOUR), (N, FOUR), (N, 4), [0, 4]),
        # A number 0 is written only where it copies a 0.
        ((N, constant(0)), (N, constant(0)), (N, 0), [0, 0]),
        ((constant(0), N), (N, constant(0)), (N, 0), None),
        ((N, constant(0)), (N * 2, constant(0)), (None, 0), None),
        ((), (N,), (N,), [-1]),
    ],
)
def test_reshape_targets(
    sizes: tuple[Expr, ...],
    out: tuple[Expr, ...],
    given: tuple[Expr | int | None, ...],
    expected: list[int] | None,
) -> None:
    assert reshape_target(sizes, out, given) == expected
