"""Programs drawn at random: a plan gives bit for bit what the shape-generic program gives.

The latter never writes over anything, so it tells what a plan must not do: overwrite what is read
later, free what a view or a body still shows, hand out what it keeps.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.lowering.models import assert_same, every_kind, program

N = 3
"""All values are N × N, so that any two fit any operator."""

UNARY = ("Neg({a})", "Abs({a})", "Relu({a})", "Transpose({a})", "Identity({a})", "Tanh({a})")
BINARY = ("Add({a}, {b})", "Sub({a}, {b})", "Mul({a}, {b})", "Max({a}, {b})", "MatMul({a}, {b})")
SHAPED = (
    "Reshape({a}, shape)",
    "Expand({a}, shape)",
    "Slice({a}, zero, three)",
    "Clip({a}, , top)",
    "Sum({a}, {b}, {a})",
    "Where(mask, {a}, {b})",
)
BRANCHES = """If(flag) <
    then_branch = t{i} () => (float[3, 3] p{i}) {{ p{i} = {then} }},
    else_branch = e{i} () => (float[3, 3] q{i}) {{ q{i} = {other} }}
>"""
LOOP = """Loop(turns, , {a}) <
    body = b{i} (int64 n{i}, bool g{i}, float[3, 3] s{i}) => (bool h{i}, float[3, 3] r{i}) {{
        h{i} = Identity(g{i})
        w{i} = {then}
        r{i} = Add(w{i}, s{i})
    }}
>"""


def _graph(seed: int) -> str:
    draw = random.Random(seed)
    values = ["x", "c"]
    lines: list[str] = []
    for i in range(draw.randrange(5, 25)):
        # Mostly recent values, so that many die young.
        a, b = (draw.choice(values[-4:] if draw.random() < 0.8 else values) for _ in range(2))
        kind = draw.random()
        pool = UNARY if kind < 0.35 else BINARY if kind < 0.75 else SHAPED
        line = draw.choice(pool).format(a=a, b=b)
        if kind > 0.88:
            then, other = (draw.choice((*UNARY, *BINARY)).format(a=a, b=b) for _ in range(2))
            form = draw.choice((BRANCHES, LOOP))
            line = form.format(i=i, a=a, then=then, other=other)
        lines.append(f"v{i} = {line}")
        values.append(f"v{i}")
    outputs = draw.sample(values[2:], draw.randrange(1, 4))
    declared = ", ".join(f"float[{N}, {N}] {name}" for name in outputs)
    constants = (
        "float[3, 3] c = {1, -2, 3, -4, 5, -6, 7, -8, 9}, float top = {2}, int64[2] shape = {3, 3},"
        "int64[1] zero = {0}, int64[1] three = {3}, bool[3] mask = {1, 0, 1}, int64 turns = {2}"
    )
    body = "\n".join(lines)
    return f"g (float[{N}, {N}] x, bool flag) => ({declared}) <{constants}> {{ {body} }}"


@pytest.mark.parametrize("seed", range(150))
def test_a_plan_gives_what_the_generic_program_gives(seed: int) -> None:
    ready = program(_graph(seed))
    x = np.random.default_rng(seed).standard_normal((N, N)).astype(np.float32)
    given = x.copy()
    for flag in (True, False):
        inputs = [x, np.array(flag)]
        frame_run = ready.values(inputs, [port.name for port in ready.outputs])
        expected = [frame_run[port.name] for port in ready.outputs]
        for result in every_kind(ready, inputs):
            assert_same(result, expected)
            for index, output in enumerate(result):
                assert not any(np.shares_memory(output, other) for other in result[:index])
                output[...] = np.nan
    assert_same([x], [given])
    assert len(ready.plans()) == 1
