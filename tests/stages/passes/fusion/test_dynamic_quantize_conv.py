"""dynamic-quantize-conv."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.passes.fusion.conv_integer_fusion import ConvIntegerFusion
from foldline.stages.passes.fusion.dynamic_quantize_conv import DynamicQuantizeConv
from tests.stages.check import check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.graphs import normal
from tests.stages.passes.fusion.quantised import check_same_bits, codes, module, scale

PASS = DynamicQuantizeConv()
WEIGHTS = {
    "w": codes(5, 4, 3, 3),
    "ws": normal(5, 1, 1),
    "wz": np.full((), 5, np.int8),
    "b": codes(1, 5, 1, 1, dtype=np.int32) >> 12,
    "bias": normal(5, 1, 1, seed=4),
}
QUANTISE = ("DynamicQuantizeLinear", "x", "a xs xz")
PRODUCT = [
    ("Mul", "ws xs", "s"),
    ("ConvInteger", "a w xz wz", "t", {"pads": [1, 0, 1, 1], "strides": [2, 1]}),
    ("Add", "b t", "i"),
    ("Cast", "i", "f", {"to": 1}),
    ("Mul", "f s", "m"),
    ("Add", "bias m", "y"),
]


def graph(
    *more: Any, product: Any = PRODUCT, outputs: tuple[str, ...] = ("y",), **weights: Any
) -> ModuleOp:
    """A convolution whose input is quantised, after conv-integer-fusion."""
    made = module(
        [QUANTISE, *product, *more],
        {**WEIGHTS, **weights},
        {"x": (np.float32, ["N", 4, "H", "W"])},
        outputs=outputs,
    )
    run_pass(ConvIntegerFusion(), made)
    return made


X = {
    "normal": normal(2, 4, 8, 9),
    "zeros": np.zeros((1, 4, 5, 5), np.float32),
    "one sign": np.abs(normal(1, 4, 6, 6)),
}
SHORT = [*PRODUCT[:2], ("Cast", "t", "f", {"to": 1}), ("Mul", "f s", "y")]


@pytest.mark.parametrize("kind", X)
@pytest.mark.parametrize("weight_scale", [normal(5, 1, 1), scale(0.25)])
@pytest.mark.parametrize("product", [PRODUCT, SHORT], ids=["both sums", "no sum"])
def test_becomes_one_node_of_the_same_bits(kind: str, weight_scale: Any, product: Any):
    before = graph(product=product, ws=weight_scale)
    check_same_bits(PASS, before, {"x": X[kind]})
    run_pass(PASS, before)
    assert op_types(before) == ["DynamicQuantizeConv"]


def test_the_file_has_the_nodes_it_had():
    before = graph()
    run_pass(PASS, before)
    nodes = [n.op_type for n in export_model(before).graph.node if n.op_type != "Constant"]
    assert sorted(nodes) == sorted([QUANTISE[0], *(node[0] for node in PRODUCT)])


def test_what_several_convolutions_share_stays_shared():
    more = [
        ("Mul", "xs ws", "s2"),
        ("ConvInteger", "a w2 xz wz", "t2"),
        ("Cast", "t2", "f2", {"to": 1}),
        ("Mul", "f2 s2", "y2"),
    ]
    before = graph(*more, outputs=("y", "y2"), w2=codes(5, 4, 3, 3, seed=9))
    check_unchanged(PASS, before, "the result of DynamicQuantizeLinear is read outside")
    assert op_types(before).count("ConvIntegerToFloat") == 2
