"""Plans hold float16 in float32 between steps that compute so; the bits are those of the run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from foldline.kernels.half import HALF, SINGLE
from foldline.kernels.registry import GRADES
from foldline.lowering.program import Program
from tests.lowering.models import assert_same, every_kind, program

SHAPE = (1, 8, 33, 35)
HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
WEIGHTS = "float16[8, 8, 3, 3] w, float16[8, 1, 3, 3] d, float16[8] b, float16[8, 1, 1] c"
CONV = "t = Conv<pads = [1, 1, 1, 1]>(x, w, b)"

READERS = {
    "chain": "v = Abs(b) u = BatchNormalization(t, b, b, b, v) s = HardSigmoid(u) y = Mul(u, s)",
    "depthwise": "u = Relu(t) y = Conv<group = 8, strides = [2, 1]>(u, d)",
    "squeeze and excite": "m = GlobalAveragePool(t) n = Sigmoid(m) y = Mul(t, n)",
    "a reader that takes float16": "u = Exp(t) y = Add(u, t)",
    "a view": "f = Flatten<axis = 2>(t) y = Relu(f)",
    "two outputs": "y = Relu(t) z = Add(y, t)",
    "an output that is read": "u = Relu(t) y = Neg(u) z = Add(y, u)",
    "pools": "u = MaxPool<kernel_shape = [3, 2]>(t) y = AveragePool<kernel_shape = [2, 2]>(u)",
    "no half": "h = Cast<to = 1>(t) g = Relu(h) y = Cast<to = 10>(g)",
    "over and over": "u = Add(t, c) v = Mul(u, u) s = Sub(v, u) y = Add(s, t)",
    "a condition": "m = ReduceMax<keepdims = 0>(t) e = Cast<to = 9>(m) y = If(e) <then_branch ="
    " p () => (float16[1, 8, 33, 35] a) { a = Relu(t) }, else_branch = q () =>"
    " (float16[1, 8, 33, 35] k) { k = Neg(t) }>",
}


def ready(readers: str) -> Program:
    outputs = "float16 y, float16[1, 8, 33, 35] z" if " z = " in readers else "float16 y"
    graph = f"g (float16[1, 8, 33, 35] x, {WEIGHTS}) => ({outputs}) {{ {CONV} {readers} }}"
    return program(graph, HEAD)


def inputs() -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    shapes = (SHAPE, (8, 8, 3, 3), (8, 1, 3, 3), (8,), (8, 1, 1))
    return [rng.standard_normal(shape).astype(np.float16) for shape in shapes]


def held(compiled: Program) -> dict[str, bool]:
    """Of the operators of a plan, whether their results are held."""
    (pool,) = compiled.plans()
    return {
        planned.call.kernel.op_type: planned.place is not None and planned.place.dtype == SINGLE
        for planned in pool.plan.calls
    }


@pytest.mark.parametrize("readers", READERS.values(), ids=READERS)
def test_the_bits_are_those_of_the_generic_run(readers: str) -> None:
    generic, *others = every_kind(ready(readers), inputs())
    assert generic[0].dtype == HALF
    for results in others:
        assert_same(results, generic)
        assert [r.tobytes() for r in results] == [r.tobytes() for r in generic]


def test_a_value_is_held_where_all_its_readers_take_it() -> None:
    compiled = ready("u = Relu(t) v = Neg(u) w1 = Exp(v) y = Add(w1, u)")
    every_kind(compiled, inputs())
    found = held(compiled)
    assert (found["Conv"], found["Relu"]) == (True, True)
    # Exp reads what Neg gives.
    assert (found["Neg"], found["Exp"], found["Add"]) == (False, False, False)


def test_what_leaves_or_is_cast_is_not_held() -> None:
    compiled = ready("u = Relu(t) h = Cast<to = 1>(u) g = Neg(h) y = Cast<to = 10>(g)")
    every_kind(compiled, inputs())
    assert (held(compiled)["Conv"], held(compiled)["Relu"]) == (True, False)


def test_exact_programs_hold_nothing() -> None:
    graph = f"g (float16[1, 8, 33, 35] x, {WEIGHTS}) => (float16 y) {{ {CONV} y = Relu(t) }}"
    compiled = program(graph, HEAD, grades=GRADES["exact"])
    every_kind(compiled, inputs())
    assert not any(held(compiled).values())


OPERATORS = (
    "Neg({a})",
    "Relu({a})",
    "Sigmoid({a})",
    "HardSwish({a})",
    "Exp({a})",
    "Identity({a})",
    "Transpose({a})",
    "Add({a}, {b})",
    "Mul({a}, {b})",
    "Max({a}, {b})",
    "Sum({a}, {b}, {a})",
    "MatMul({a}, {b})",
    "Softmax({a})",
)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    choose = random.Random(seed)
    names, lines = ["x", "w"], list[str]()
    for step in range(12):
        a, b = choose.choice(names[-4:]), choose.choice(names)
        names.append(f"v{step}")
        lines.append(f"v{step} = {choose.choice(OPERATORS).format(a=a, b=b)}")
    outputs = ", ".join(f"float16[97, 97] {name}" for name in {names[-1], choose.choice(names[3:])})
    graph = f"g (float16[97, 97] x, float16[97, 97] w) => ({outputs}) {{ {' '.join(lines)} }}"
    rng = np.random.default_rng(seed)
    given = [(rng.standard_normal((97, 97)) / 9).astype(np.float16) for _ in range(2)]
    generic, *others = every_kind(program(graph, HEAD), given)
    for results in others:
        assert_same(results, generic)
