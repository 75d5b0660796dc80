from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, DenseArrayBase, i64
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from foldline.dialects.onnx import ONNX
from foldline.dialects.onnx.attributes import TextsAttr
from foldline.dialects.plan import PLAN, CallOp, ProgramOp
from foldline.lowering import Program
from tests.lowering.models import assert_same, every_kind, program

GRAPH = """g (float[N, 2] x, int64 n) => (float[M, 2] y) <float[2] w = {1, 2}> {
    k = Exp(w)
    a = Clip(x, , k0)
    c = Shape(a)
    d = Reshape(a, c)
    y = Loop(n, , d) <
        body = b (int64 i, bool p, float[A, 2] s) => (bool q, float[B, 2] t) {
            q = Identity(p)
            u = Mul(s, k)
            t = Add(u, w)
        }
    > }""".replace("{1, 2}> {", "{1, 2}, float k0 = {3}> {")


def _parsed(text: str) -> ProgramOp:
    context = Context()
    for dialect in (Builtin, ONNX, PLAN):
        context.load_dialect(dialect)
    op = Parser(context, text).parse_op()
    assert isinstance(op, ProgramOp)
    return op


def _call() -> CallOp:
    ready = program("g (float[2] x) => (float[2] y) { y = Add(x, x) }")
    return next(op for op in ready.source.walk() if isinstance(op, CallOp))


def test_text_round_trips_and_what_is_read_runs() -> None:
    ready = program(GRAPH)
    again = _parsed(ready.text())
    again.verify()
    assert str(again) == ready.text()
    assert again.is_structurally_equivalent(ready.source)
    inputs = [np.array([[1, -2], [5, 0.5]], np.float32), np.array(2)]
    for actual, expected in zip(
        every_kind(Program(again), inputs), every_kind(ready, inputs), strict=True
    ):
        assert_same(actual, expected)


def test_a_plan_shows_where_results_are() -> None:
    ready = program(GRAPH)
    inputs = [np.ones((3, 2), np.float32), np.array(2)]
    every_kind(ready, inputs)
    text = ready.text(ready.plans()[0].plan)
    plan = _parsed(text)
    plan.verify()
    places = {
        op.operator[1]: op.texts("places") for op in plan.body.block.ops if isinstance(op, CallOp)
    }
    assert places == {
        "Exp": (),
        "Clip": ("arena 0",),
        "Shape": ("known",),
        "Reshape": ("view",),
        "Loop": ("generic",),
    }
    assert "arena_bytes = 64 : i64" in text
    assert "places" not in ready.text()


def test_accessors() -> None:
    ready = program(GRAPH)
    calls = [op for op in ready.source.body.block.ops if isinstance(op, CallOp)]
    loop = calls[-1]
    assert loop.operator == ("", "Loop", 16)
    assert loop.kernel.split() == ["reference", "foldline.kernels.control_flow.loop"]
    assert list(loop.bodies) == ["body"]
    assert len(loop.arguments) == 3
    assert loop.captures == (calls[0].results[0],)
    assert calls[0].is_once
    assert not loop.is_once
    assert loop.texts("facts") == ("open-shape",)


@pytest.mark.parametrize("key", ["frees", "shape_operands"])
def test_c1_positions_are_operands(key: str) -> None:
    call = _call()
    call.properties[key] = DenseArrayBase.from_list(i64, [2])
    with pytest.raises(VerifyException, match=f"C1: {key}"):
        call.verify()


def test_c2_one_region_a_body() -> None:
    call = _call()
    call.properties["bodies"] = TextsAttr(("body",))
    with pytest.raises(VerifyException, match="C2: 0 regions"):
        call.verify()


def test_c3_one_place_a_result() -> None:
    call = _call()
    call.properties["places"] = TextsAttr(("fresh", "fresh"))
    with pytest.raises(VerifyException, match="C3: 1 results"):
        call.verify()
