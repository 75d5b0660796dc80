"""dynamic-quantize-matmul."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.passes.fusion.dynamic_quantize_matmul import DynamicQuantizeMatmul
from foldline.stages.passes.fusion.matmul_integer_fusion import MatmulIntegerFusion
from tests.stages.check import check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.graphs import normal
from tests.stages.passes.fusion.quantised import check_same_bits, codes, module, scale

PASS = DynamicQuantizeMatmul()
WEIGHTS = {"B": codes(12, 5), "ws": normal(5), "bz": codes(5, seed=3), "bias": normal(5, seed=4)}
QUANTISE = ("DynamicQuantizeLinear", "x", "a xs xz")
PRODUCT = [
    ("Mul", "xs ws", "s"),
    ("MatMulInteger", "a B xz bz", "t"),
    ("Cast", "t", "f", {"to": 1}),
    ("Mul", "f s", "m"),
    ("Add", "bias m", "y"),
]


def graph(*more: Any, outputs: tuple[str, ...] = ("y",), **weights: Any) -> ModuleOp:
    """A product whose input is quantised, after matmul-integer-fusion."""
    made = module(
        [QUANTISE, *PRODUCT, *more],
        {**WEIGHTS, **weights},
        {"x": (np.float32, ["N", 12])},
        outputs=outputs,
    )
    run_pass(MatmulIntegerFusion(), made)
    return made


X = {
    "normal": normal(4, 12),
    "zeros": np.zeros((2, 12), np.float32),
    "nothing": np.zeros((0, 12), np.float32),
    "one sign": np.abs(normal(4, 12)),
}


@pytest.mark.parametrize("kind", X)
@pytest.mark.parametrize("weight_scale", [normal(5), scale(0.25)])
def test_becomes_one_node_of_the_same_bits(kind: str, weight_scale: Any):
    before = graph(ws=weight_scale)
    check_same_bits(PASS, before, {"x": X[kind]})
    run_pass(PASS, before)
    assert op_types(before) == ["DynamicQuantizeMatMul"]


def test_the_file_has_the_nodes_it_had():
    before = graph()
    run_pass(PASS, before)
    nodes = [n.op_type for n in export_model(before).graph.node if n.op_type != "Constant"]
    assert sorted(nodes) == sorted([QUANTISE[0], *(node[0] for node in PRODUCT)])


def test_what_several_products_share_stays_shared():
    more = [
        ("Mul", "xs ws", "s2"),
        ("MatMulInteger", "a B2 xz bz", "t2"),
        ("Cast", "t2", "f2", {"to": 1}),
        ("Mul", "f2 s2", "y2"),
    ]
    before = graph(*more, outputs=("y", "y2"), B2=codes(12, 5, seed=9))
    check_unchanged(PASS, before, "the result of DynamicQuantizeLinear is read outside")
    assert op_types(before).count("MatMulIntegerToFloat") == 2


def test_the_zero_point_of_another_tensor_is_none():
    nodes = [QUANTISE, *PRODUCT]
    nodes[2] = ("MatMulInteger", "a B other bz", "t")
    made = module(
        nodes, {**WEIGHTS, "other": np.full((), 7, np.uint8)}, {"x": (np.float32, ["N", 12])}
    )
    run_pass(MatmulIntegerFusion(), made)
    check_unchanged(PASS, made)
