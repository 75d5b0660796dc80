from __future__ import annotations

import numpy as np
import pytest

from foldline.lowering.instances import Pool
from foldline.lowering.negation import MOST_BYTES, negation_taken_over
from tests.lowering.models import every_kind, program

X = np.array([0.5, -0.5, 0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, 1e30, -1e-40], np.float32)
C = "0.5, -0.5, -0.0, 0.0, -1.5, 1.0, 2.0, 3.0, -1e30, 1e-40"
HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def _functions(pool: Pool) -> list[object]:
    return [step[0] for step in pool.idle[0]._steps]


@pytest.mark.parametrize(
    ("before", "calls"),
    [
        *(("Add(u, c)", 3), ("Add(c, u)", 3), ("Mul(u, c)", 3), ("Mul(c, u)", 3)),
        *(("Sub(u, c)", 3), ("Sub(c, u)", 3), ("Sub(u, v)", 3)),
        *(("Add(u, v)", 4), ("Mul(u, v)", 4), ("Sqrt(u)", 4)),
    ],
)
def test_a_sigmoid_gives_the_bits_of_four_calls_in_three(before: str, calls: int) -> None:
    ready = program(
        f"g (float[10] x) => (float[10] y) <float[10] c = {{{C}}}> "
        f"{{ u = Abs(x) v = Sqrt(u) s = {before} t = Sigmoid(s) y = Exp(t) }}",
        HEAD,
    )
    first, *others = every_kind(ready, [X])
    for other in others:
        np.testing.assert_array_equal(other[0].view(np.int32), first[0].view(np.int32))
    functions = _functions(ready.plans()[0])
    assert functions.count(np.negative) == calls - 3
    assert functions[-2] is np.reciprocal


@pytest.mark.parametrize(
    "rest",
    ["t = Sigmoid(s) y = Add(s, t)", "t = Neg(s) y = Relu(t)", "r = Relu(s) y = Sigmoid(r)"],
)
def test_what_others_see_is_not_negated(rest: str) -> None:
    ready = program(
        f"g (float[10] x) => (float[10] y) <float[10] c = {{{C}}}> "
        f"{{ u = Abs(x) s = Sub(u, c) {rest} }}",
        HEAD,
    )
    first, *others = every_kind(ready, [X])
    for other in others:
        np.testing.assert_array_equal(other[0].view(np.int32), first[0].view(np.int32))
    assert np.subtract in _functions(ready.plans()[0])


def test_large_constants_are_not_copied() -> None:
    x, out = np.ones(MOST_BYTES, np.float32), np.empty(MOST_BYTES, np.float32)
    steps = [(np.negative, out, out), (np.exp, out, out)]
    assert negation_taken_over((np.add, x, x, out), steps, [x]) is None
    assert negation_taken_over((np.subtract, x, x, out), steps, [x]) is not None


def test_rank_0_and_another_destination() -> None:
    x, c, one, two = (np.array(value, np.float32) for value in (3, 2, 0, 0))
    steps = [(np.negative, one, two), (np.exp, one, two)]
    merged = negation_taken_over((np.multiply, x, c, one), steps, [c])
    assert merged is not None
    for function, *arguments in merged:
        function(*arguments)
    assert two == np.exp(np.float32(-6))
    assert negation_taken_over((np.multiply, x, c, two), steps, [c]) is None
