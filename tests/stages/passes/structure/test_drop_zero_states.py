"""drop-zero-states: zeros are what is there when nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.dialects.onnx.structure import NoneOp
from foldline.stages.passes.structure.drop_zero_states import DropZeroStates
from tests.stages.check import (
    Array,
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    nodes,
    parse,
    run_pass,
    splat,
)

PASS = DropZeroStates()
INPUTS = "%x: tensor<5x2x3xf32>, %w: tensor<1x16x3xf32>, %r: tensor<1x16x4xf32>"
HIDDEN = "{hidden_size = 4 : i64}"
ZEROS = splat(0, (1, 2, 4), np.float32)


def lstm(inputs: str, before: str = "") -> str:
    types = "tensor<5x1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>"
    return f"{before}\n%y, %h, %c = onnx.LSTM({inputs}) {HIDDEN} : {types}\nreturn(%y, %h, %c)"


def test_states_of_zeros_go_and_absent_inputs_at_the_end_too() -> None:
    text = lstm("%x, %w, %r, %n, %n, %z, %z", f"%n = onnx.none() : !onnx.absent\n%z = {ZEROS}")
    after = lstm("%x, %w, %r", "%n = onnx.none() : !onnx.absent")
    check_pass(PASS, parse(text, INPUTS), parse(after, INPUTS))


def test_the_absent_value_is_made_where_there_is_none() -> None:
    zeros = constant(np.zeros((1, 2, 4)), np.float32)
    inputs = f"{INPUTS}, %b: tensor<1x32xf32>, %l: tensor<2xi32>, %s: tensor<1x2x4xf32>"
    text = lstm("%x, %w, %r, %b, %l, %z, %s", f"%z = {zeros}")
    after = lstm("%x, %w, %r, %b, %l, %n, %s", "%n = onnx.none() : !onnx.absent")
    check_pass(PASS, parse(text, inputs), parse(after, inputs))


def test_one_absent_value_serves_two_nodes() -> None:
    module = from_onnx("""g (float[5,2,3] x, float[1,4,3] w, float[1,4,4] r) => (float[5,1,2,4] y)
    <float[1,2,4] z = {0,0,0,0,0,0,0,0}, int32[2] l = {5, 4}> {
        a, b = RNN <hidden_size = 4> (x, w, r, , l, z)
        c = LSTM <hidden_size = 1> (x, w, r, , l, z, b)
        d = LSTM <hidden_size = 1> (x, w, r, , l, z, b)
        y = Identity(a)
    }""")
    run_pass(PASS, module)
    assert sum(isinstance(op, NoneOp) for op in module.walk()) == 1
    rnn, first, second, _ = nodes(module)
    assert (len(rnn.operands), len(first.operands), len(second.operands)) == (5, 7, 7)
    assert first.operand(5) is None


@pytest.mark.parametrize("state", [np.float32([0.0, -0.0]), np.float32([0, 1e-45]), [np.nan, 0]])
def test_other_states_stay(state: Array) -> None:
    value = constant(np.tile(np.asarray(state), 4).reshape(1, 2, 4), np.float32)
    text = lstm("%x, %w, %r, %n, %n, %z", f"%n = onnx.none() : !onnx.absent\n%z = {value}")
    check_unchanged(PASS, parse(text, INPUTS), "input 5 is constant, but not all +0")


def test_computed_states_are_no_candidates() -> None:
    text = lstm("%x, %w, %r, %n, %n, %s", "%n = onnx.none() : !onnx.absent")
    context = check_unchanged(PASS, parse(text, f"{INPUTS}, %s: tensor<1x2x4xf32>"))
    assert not list(context.remarks)


@pytest.mark.parametrize(("operator", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_values_are_the_same_bits(operator: str, gates: int) -> None:
    states = "z, z" if operator == "LSTM" else "z"
    module = from_onnx(
        f"""g (float[5,2,3] x, float[1,{gates * 4},3] w, float[1,{gates * 4},4] r)
        => (float[5,1,2,4] y, float[1,2,4] h) <float[1,2,4] z = {{0,0,0,0,0,0,0,0}}> {{
            y, h = {operator} <hidden_size = 4> (x, w, r, , , {states})
        }}"""
    )
    random = np.random.default_rng(0)
    feed = {
        "x": random.standard_normal((5, 2, 3), np.float32),
        "w": random.standard_normal((1, gates * 4, 3), np.float32),
        "r": random.standard_normal((1, gates * 4, 4), np.float32),
    }
    check_values(PASS, module, feed)
    assert len(nodes(module)[0].operands) == 3


STATES = [
    "z = ConstantOfShape(d)",
    "z = ConstantOfShape <value = float[1] {0}> (d)",
    "f = Constant <value = float[1, 1, 4] {0, 0, 0, 0}> () z = Expand(f, d)",
    """i = Constant <value_ints = [0]> () e = Constant <value_ints = [1]> () p = ConstantOfShape(dd)
    z = Slice(p, i, e)""",
    "k = Constant <value_ints = [1, 1]> () p = ConstantOfShape(dd) z, o = Split <axis = 0> (p, k)",
]


@pytest.mark.parametrize("state", STATES)
def test_zeros_of_computed_shape_go_with_their_shape(state: str) -> None:
    module = from_onnx(f"""g (float[5,N,3] x, float[1,16,3] w, float[1,16,4] r)
    => (float[p,q,n,s] y) <int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}}> {{
        n = Shape <start = 1, end = 2> (x) d = Concat <axis = 0> (one, n, four)
        dd = Concat <axis = 0> (two, n, four) {state}
        y, h = LSTM <hidden_size = 4> (x, w, r, , , z, z) }}""")
    random = np.random.default_rng(0)
    feed = {
        "x": random.standard_normal((5, 2, 3), np.float32),
        "w": random.standard_normal((1, 16, 3), np.float32),
        "r": random.standard_normal((1, 16, 4), np.float32),
    }
    check_values(PASS, module, feed)
    left = [op.op_type for op in nodes(module)]
    assert "LSTM" in left
    assert not {"ConstantOfShape", "Expand", "Slice", "Split"} & set(left)


def test_other_numbers_of_computed_shape_stay() -> None:
    module = from_onnx("""g (float[5,N,3] x, float[1,16,3] w, float[1,16,4] r, int64[3] d)
    => (float[p,q,n,s] y) { z = ConstantOfShape <value = float[1] {-0.0}> (d)
        y, h = LSTM <hidden_size = 4> (x, w, r, , , z) }""")
    check_unchanged(PASS, module, "input 5 is constant, but not all +0")
