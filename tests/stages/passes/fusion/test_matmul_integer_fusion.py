"""matmul-integer-fusion, spec runtime-rewrites row 3.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.exporter import export_model
from foldline.stages.passes.fusion.matmul_integer_fusion import MatmulIntegerFusion
from foldline.support.passes import PASSES
from tests.stages.check import Array, check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.graphs import normal
from tests.stages.passes.fusion.quantised import check_same_bits, codes, module, proto, scale

PASS = MatmulIntegerFusion()


def graph(
    a: tuple[Any, Any] = (np.uint8, ["N", 12]),
    b: Array | None = None,
    zeros: str = "az bz",
    tail: list[Any] | None = None,
    scale_input: tuple[Any, Any] | None = None,
    outputs: tuple[str, ...] = ("y",),
    **weights: Array,
) -> ModuleOp:
    """MatMulInteger, Cast, and a tail that by default scales and adds a bias."""
    b = codes(12, 5) if b is None else b
    held = {
        "B": b,
        "az": np.full((), 3, a[0]),
        "bz": np.full((), 5, b.dtype),
        "bias": normal(5),
        "s": scale(0.01),
        **weights,
    }
    inputs: dict[str, Any] = {"a": a}
    if scale_input is not None:
        inputs["s"] = scale_input
        del held["s"]
    nodes = [("MatMulInteger", f"a B {zeros}".strip(), "t"), ("Cast", "t", "f", {"to": 1})]
    tail = [("Mul", "f s", "m"), ("Add", "m bias", "y")] if tail is None else tail
    return module([*nodes, *tail], held, inputs, outputs=outputs)


TAILS = {
    "Mul": [("Mul", "f s", "y")],
    "Mul the other way": [("Mul", "s f", "y")],
    "Add": [("Mul", "f s", "m"), ("Add", "m bias", "y")],
    "Add the other way": [("Mul", "s f", "m"), ("Add", "bias m", "y")],
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("zeros", ["", "az", "az bz", "_ bz"])
def test_row_3_2_becomes_one_node_of_the_same_bits(tail: str, zeros: str):
    before = graph(tail=TAILS[tail], zeros=zeros)
    feed = {"a": codes(7, 12, dtype=np.uint8)}
    check_same_bits(PASS, before, feed)
    run_pass(PASS, before)
    assert op_types(before) == ["MatMulIntegerToFloat"]


@pytest.mark.parametrize("a_type", [np.int8, np.uint8])
@pytest.mark.parametrize("b_type", [np.int8, np.uint8])
def test_row_3_2_types(a_type: Any, b_type: Any):
    before = graph((a_type, [2, "N", 12]), codes(12, 5, dtype=b_type), s=normal(5))
    check_same_bits(PASS, before, {"a": codes(2, 3, 12, dtype=a_type)})
    run_pass(PASS, before)
    assert op_types(before) == ["MatMulIntegerToFloat"]


@pytest.mark.parametrize("shape", [[], [1], [5], [1, 5]])
def test_row_3_2_the_scale_may_be_computed_when_the_model_runs(shape: list[int]):
    before = graph(scale_input=(np.float32, shape))
    check_same_bits(PASS, before, {"a": codes(4, 12, dtype=np.uint8), "s": normal(*shape)})
    run_pass(PASS, before)
    assert op_types(before) == ["MatMulIntegerToFloat"]


def test_row_3_2_the_product_of_scales_stays_a_node_of_its_own():
    nodes = [
        ("DynamicQuantizeLinear", "x", "a xs xz"),
        ("Mul", "xs ws", "s"),
        ("MatMulInteger", "a B xz", "t"),
        ("Cast", "t", "f", {"to": 1}),
        ("Mul", "f s", "y"),
    ]
    before = module(nodes, {"B": codes(4, 3), "ws": scale(0.1)}, {"x": (np.float32, ["N", 4])})
    check_same_bits(PASS, before, {"x": normal(6, 4)})
    run_pass(PASS, before)
    assert op_types(before) == ["DynamicQuantizeLinear", "Mul", "MatMulIntegerToFloat"]


def test_row_3_2_the_file_has_the_nodes_it_had():
    text = graph()
    run_pass(PASS, text)
    exported = export_model(text)
    assert [node.op_type for node in exported.graph.node if node.op_type != "Constant"] == [
        *("MatMulInteger", "Cast", "Mul", "Add")
    ]


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"scale_input": (np.float32, ["N", 1])}, "is not one for each of 5"),
        ({"scale_input": (np.float32, [1, 1, 1])}, "raises the rank"),
        ({"scale_input": (np.float32, ["M"])}, "is not one for each of 5"),
        ({"outputs": ("y", "f")}, "read outside"),
        ({"outputs": ("y", "t")}, "read outside"),
        ({"a": (np.uint8, [12])}, "two axes or more"),
        ({"b": codes(2, 12, 5), "a": (np.uint8, [2, 3, 12])}, "and a matrix"),
    ],
)
def test_row_3_2_left_alone(keywords: dict[str, Any], reason: str):
    check_unchanged(PASS, graph(tail=TAILS["Mul"], **keywords), reason)


def test_row_3_2_a_cast_to_another_type_is_left_alone():
    nodes = [
        ("MatMulInteger", "a B", "t"),
        ("Cast", "t", "f", {"to": 11}),
        ("Mul", "f s", "y"),
    ]
    weights = {"B": codes(4, 3), "s": np.full((), 0.1)}
    check_unchanged(PASS, module(nodes, weights, {"a": (np.uint8, [2, 4])}))


@pytest.mark.parametrize("shape", [[7, 5], [7, 1]])
def test_row_3_2_what_is_no_bias_stays_behind(shape: list[int]):
    before = graph((np.uint8, [7, 12]), bias=normal(*shape))
    check_same_bits(PASS, before, {"a": codes(7, 12, dtype=np.uint8)})
    run_pass(PASS, before)
    assert op_types(before) == ["MatMulIntegerToFloat", "Add"]


def test_row_3_2_nan_zero_and_empty():
    before = graph(s=np.array([np.nan, -0.0, 0, np.inf, -1], np.float32), bias=scale(-0.0, 5))
    for rows in (0, 1, 3):
        feed = {"a": codes(rows, 12, dtype=np.uint8)}
        check_same_bits(PASS, before, feed)


def test_row_3_2_runs_in_exact_mode():
    assert PASSES["matmul-integer-fusion"].preserves_bits
    model = proto(
        [("MatMulInteger", "a B", "t"), ("Cast", "t", "f", {"to": 1}), ("Mul", "f s", "y")],
        {"B": codes(12, 5), "s": scale(0.3)},
        {"a": (np.uint8, ["N", 12])},
    )
    compiled = foldline.compile(model, options={"mode": "exact"})
    assert op_types(compiled.module) == ["MatMulIntegerToFloat"]
    a = codes(3, 12, dtype=np.uint8)
    plain = foldline.compile(model, options={"mode": "exact", "oo.level": "O0"})
    found, wanted = (c.session().run(None, {"a": a})[0] for c in (compiled, plain))
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
