"""qdq-element-wise: activations, sums, products and norms between Q and DQ keep their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.exporter import export_model
from foldline.stages.passes.fusion.qdq_element_wise import QdqElementWise
from foldline.support.passes import PASSES
from tests.stages.check import Array, check_unchanged, nodes, op_types, run_pass
from tests.stages.passes.fusion.graphs import Node, statistics
from tests.stages.passes.fusion.quantised import check_same_bits, codes, dq, module, q, scale

PASS = QdqElementWise()


def zero(dtype: Any, value: int) -> Array:
    return np.full((), value, dtype)


def graph(
    *middle: Node,
    dtype: Any = np.int8,
    opset: int = 17,
    outputs: tuple[str, ...] = ("y",),
    shape: tuple[Any, ...] = ("N", 3, "W"),
    second: tuple[Any, ...] = (3, 1),
    dq_axis: int | None = None,
    **weights: Any,
) -> ModuleOp:
    """DequantizeLinear of a and maybe b, nodes from `af` and `bf` to `c`, QuantizeLinear."""
    point = 5 if dtype == np.int8 else 130
    held = {
        "a_s": scale(0.05),
        "a_z": zero(dtype, point),
        "b_s": scale(0.03),
        "b_z": zero(dtype, point + 1),
        "y_s": scale(0.04),
        "y_z": zero(dtype, point - 3),
        "low": scale(-1),
        "high": scale(2),
        **weights,
    }
    nodes = [dq("a", "af", dq_axis)]
    inputs = {"a": (dtype, shape)}
    if any("bf" in node[1].split() for node in middle):
        nodes.append(dq("b", "bf"))
        inputs["b"] = (dtype, second)
    return module([*nodes, *middle, q("c", "y")], held, inputs, opset=opset, outputs=outputs)


ACTIVATIONS: dict[str, Node] = {
    "Relu": ("Relu", "af", "c"),
    "Sigmoid": ("Sigmoid", "af", "c"),
    "Tanh": ("Tanh", "af", "c"),
    "HardSwish": ("HardSwish", "af", "c"),
    "HardSigmoid": ("HardSigmoid", "af", "c", {"alpha": 0.25}),
    "LeakyRelu": ("LeakyRelu", "af", "c", {"alpha": 0.125}),
    "Clip": ("Clip", "af low high", "c"),
    "Clip below": ("Clip", "af _ high", "c"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_activations(name: str, dtype: Any):
    before = graph(ACTIVATIONS[name], dtype=dtype)
    check_same_bits(PASS, before, {"a": codes(4, 3, 50, dtype=dtype)})
    run_pass(PASS, before)
    assert op_types(before) == ["QLinearActivation"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("size", [(4, 3, 50), (1, 3, 1)])
def test_means_over_the_space(dtype: Any, size: tuple[int, ...]):
    before = graph(("GlobalAveragePool", "af", "c"), dtype=dtype)
    check_same_bits(PASS, before, {"a": codes(*size, dtype=dtype)})
    run_pass(PASS, before)
    (node,) = nodes(before)
    assert node.op_type == "QLinearGlobalAveragePool"
    assert str(node.results[0].type).split(",")[0].startswith("tensor<?x3x1x")


@pytest.mark.parametrize("op_type", ["Add", "Mul"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("order", ["af bf", "bf af"])
def test_sums_and_products(op_type: str, dtype: Any, order: str):
    before = graph((op_type, order, "c"), dtype=dtype)
    feed = {"a": codes(4, 3, 50, dtype=dtype), "b": codes(3, 1, dtype=dtype, seed=1)}
    check_same_bits(PASS, before, feed)
    run_pass(PASS, before)
    assert op_types(before) == [f"QLinear{op_type}"]


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("shape", [(2, 3, 7), (1, 3, 30, 40), (0, 3, 4)])
def test_norms(opset: int, shape: Any):
    norm = ("BatchNormalization", "af gamma beta mean var", "c", {"epsilon": 0.01})
    before = graph(norm, shape=("N", 3, *shape[2:]), opset=opset, **statistics(3))
    check_same_bits(PASS, before, {"a": codes(*shape)})
    run_pass(PASS, before)
    assert op_types(before) == ["QLinearBatchNormalization"]


def test_nothing_in_nothing_out():
    before = graph(ACTIVATIONS["Sigmoid"])
    check_same_bits(PASS, before, {"a": codes(0, 3, 5)})


def test_the_file_has_no_more_nodes_than_before():
    """An input that two operators dequantise is dequantised once in the file, as it was."""
    held = {f"{n}_{p}": scale(0.1) if p == "s" else zero(np.int8, 3) for n in "axy" for p in "sz"}
    nodes: list[Node] = [dq("a", "af"), ("Sigmoid", "af", "s"), q("s", "x"), dq("x", "xf")]
    nodes += [("Mul", "af xf", "m"), q("m", "y")]
    before = module(nodes, held, {"a": (np.int8, (2, 3))})
    run_pass(PASS, before)
    assert op_types(before) == ["QLinearActivation", "QLinearMul"]
    found = [n.op_type for n in export_model(before).graph.node if n.op_type != "Constant"]
    assert sorted(found) == sorted(node[0] for node in nodes)


@pytest.mark.parametrize(
    ("middle", "keywords", "reason"),
    [
        (ACTIVATIONS["Relu"], {"outputs": ("y", "c")}, None),
        (ACTIVATIONS["Relu"], {"y_z": zero(np.uint8, 3)}, "the input is int8, the result uint8"),
        (ACTIVATIONS["Relu"], {"a_s": scale(0)}, "not positive and finite"),
        (
            ACTIVATIONS["Relu"],
            {"a_s": scale(0.1, 3), "a_z": np.zeros(3, np.int8), "dq_axis": 1},
            "a scale for each index of an axis",
        ),
        (("Exp", "af", "c"), {}, None),
        (("Add", "af low", "c"), {}, "it is not dequantised"),
        (
            ("BatchNormalization", "af gamma beta mean var", "c"),
            {**statistics(3), "gamma": np.full(3, np.nan, np.float32)},
            "not finite",
        ),
    ],
)
def test_left_alone(middle: Node, keywords: dict[str, Any], reason: str | None):
    check_unchanged(PASS, graph(middle, **keywords), reason)


def test_runs_in_exact_mode():
    assert PASSES["qdq-element-wise"].preserves_bits
    before = graph(ACTIVATIONS["Sigmoid"])
    compiled = foldline.compile(export_model(before), options={"mode": "exact"})
    assert op_types(compiled.module) == ["QLinearActivation"]
