"""rotary-embedding: which pairs are found, and that turning them keeps bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.rotary_embedding import RotaryEmbedding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import Array, check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import SPECIAL, file_results, results
from tests.stages.passes.fusion.graphs import check_bits, normal, only

PASS = RotaryEmbedding()
HALVES = "a, b = Split <axis = {axis}> (x, sizes)"
SLICES = "a = Slice(x, zero, half, last) b = Slice(x, half, end, last)"
PAIRS = "a = Slice(x, zero, end, last, two) b = Slice(x, one, end, last, two)"
JOIN = "n = Neg(b) t = Concat <axis = {join}> (n, a)"
STACK = (
    "n = Neg(b) n1 = Unsqueeze(n, {new}) a1 = Unsqueeze(a, {new})"
    " w = Concat <axis = -1> (n1, a1) t = Reshape(w, flat)"
)
END = "p = Mul(x, c) q = Mul(t, s) y = Add(p, q)"
NUMBERS = (
    "int64[2] sizes = {4, 4}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},"
    " int64[1] half = {4}, int64[1] last = {-1}, int64[1] end = {100}, int64[1] early = {2},"
    " int64[4] flat = {0, 0, 0, 8}"
)


def graph(body: str, x: str = "N,3,S,8", c: str = "N,1,S,8", opset: int = 21) -> ModuleOp:
    text = (
        f"g (float[{x}] x, float[{c}] c, float[{c}] s) => (float[{x}] y) <{NUMBERS}> {{ {body} }}"
    )
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def feed(batch: int = 2, length: int = 5) -> dict[str, Array]:
    angles = normal(batch, 1, length, 8, seed=1)
    return {"x": normal(batch, 3, length, 8), "c": np.cos(angles), "s": np.sin(angles)}


def spelling(parts: str, turned: str = JOIN, end: str = END, **names: Any) -> str:
    given = {"axis": -1, "join": -1, "new": "last", **names}
    return f"{parts} {turned} {end}".format(**given)


FORMS = {
    "halves": spelling(HALVES),
    "halves of axis 3": spelling(HALVES, axis=3, join=3),
    "slices": spelling(SLICES),
    "other orders": spelling(HALVES, end="p = Mul(c, x) q = Mul(s, t) y = Add(q, p)"),
    "interleaved": spelling(PAIRS, STACK),
}


@pytest.mark.parametrize("form", FORMS)
def test_pairs_are_turned_at_once_to_the_bit(form: str) -> None:
    module = graph(FORMS[form])
    before = len(op_types(module))
    for run in (results, file_results):
        copy = module.clone()
        got = run(PASS, copy, feed())
        check_bits(got.fused, got.parts)
        assert op_types(copy) == ["RotaryEmbedding"]
        written = [n for n in export_model(copy).graph.node if n.op_type != "Constant"]
        assert len(written) <= before
        found = only(copy, "RotaryEmbedding").attribute_values()["interleaved"]
        assert found == int(form == "interleaved")


@pytest.mark.parametrize("form", ["halves", "interleaved"])
def test_special_numbers(form: str) -> None:
    x = np.resize(np.array(SPECIAL, np.float32), (2, 3, 5, 8))
    got = results(PASS, graph(FORMS[form]), {**feed(), "x": x})
    np.testing.assert_array_equal(got.fused, got.parts)
    signs = np.signbit([got.fused, got.parts])[:, ~np.isnan(got.parts)]
    np.testing.assert_array_equal(signs[0], signs[1])


@pytest.mark.parametrize("form", ["halves", "interleaved"])
def test_empty(form: str) -> None:
    got = results(PASS, graph(FORMS[form]), feed(length=0))
    assert got.fused.shape == (2, 3, 0, 8)


def test_cosines_that_enlarge_what_is_turned() -> None:
    module = graph(FORMS["halves"], x="1,3,1,8", c="N,1,S,8")
    got = results(PASS, module, {**feed(), "x": normal(1, 3, 1, 8)})
    check_bits(got.fused, got.parts)
    assert op_types(module) == ["RotaryEmbedding"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (spelling(HALVES, axis=2, join=2), "joined along the last axis"),
        (spelling(HALVES, join=1), "joined along the last axis"),
        (spelling(HALVES, axis=1), "split along axis 1 of 4"),
        (spelling(SLICES.replace("zero, half", "zero, early")), "a Slice takes range(0, 2)"),
        (spelling(SLICES.replace("half, end", "early, end")), "a Slice takes range(2, 8)"),
        (spelling(PAIRS), "a Slice takes range(0, 8, 2)"),
        (spelling(SLICES, STACK), "a Slice takes range(0, 4)"),
        (spelling(PAIRS, STACK, new="early"), "not stacked along a new last axis"),
    ],
)
def test_other_pairs_are_left_alone(body: str, reason: str) -> None:
    sizes = NUMBERS.replace("{4, 4}", "{2, 2}") if "axis = 2" in body else NUMBERS
    text = f"g (float[2,2,4,8] x, float[C] c, float[C] s) => (float[] y) <{sizes}> {{ {body} }}"
    module = from_onnx(text)
    check_unchanged(PASS, module, reason)


def test_halves_that_are_none() -> None:
    numbers = NUMBERS.replace("{4, 4}", "{3, 5}")
    inputs = "float[2,8] x, float[8] c, float[8] s"
    module = from_onnx(f"g ({inputs}) => (float[] y) <{numbers}> {{ {FORMS['halves']} }}")
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module, "not known to be halves")


def test_parts_that_others_read() -> None:
    module = graph(FORMS["halves"].replace("y = Add(p, q)", "y0 = Add(p, q) y = Add(y0, t)"))
    check_unchanged(PASS, module, "is read outside as well")


def test_before_operator_set_13() -> None:
    body = spelling("a, b = Split <axis = -1, split = [4, 4]> (x)")
    module = graph(body, opset=12)
    got = file_results(PASS, module, feed())
    check_bits(got.fused, got.parts)
    assert op_types(module) == ["RotaryEmbedding"]


def test_results_are_those_of_attention_layers_one_after_another() -> None:
    body = FORMS["halves"].replace("y = Add(p, q)", "z = Add(p, q)")
    again = (
        "a2, b2 = Split <axis = -1> (z, sizes) n2 = Neg(b2) t2 = Concat <axis = -1> (n2, a2)"
        " p2 = Mul(z, c) q2 = Mul(t2, s) y = Add(p2, q2)"
    )
    module = graph(f"{body} {again}")
    got = results(PASS, module, feed())
    check_bits(got.fused, got.parts)
    assert op_types(module) == ["RotaryEmbedding"] * 2


def test_run_twice_changes_nothing_more() -> None:
    module = graph(FORMS["halves"])
    run_pass(PASS, module)
    assert run_pass(PASS, module).rewriter.changes == 0
