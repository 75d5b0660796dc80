"""conv-integer-fusion: row 3.2 of spec runtime-rewrites for convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.passes.fusion.conv_integer_fusion import ConvIntegerFusion
from tests.stages.check import check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.graphs import normal
from tests.stages.passes.fusion.quantised import check_same_bits, codes, module, scale

PASS = ConvIntegerFusion()
MAPS = 5


def graph(
    tail: list[Any],
    x: tuple[Any, ...] = (np.uint8, ["N", 4, "H", "W"]),
    window: dict[str, Any] | None = None,
    outputs: tuple[str, ...] = ("y",),
    **weights: Any,
) -> ModuleOp:
    """ConvInteger to `t` and a tail."""
    held = {
        "w": codes(MAPS, 4, 3, 3),
        "xz": np.full((), 3, x[0]),
        "wz": np.full((), 5, np.int8),
        "b": codes(1, MAPS, 1, 1, dtype=np.int32) >> 12,
        "bias": normal(MAPS, 1, 1),
        "s": scale(-0.01),
        **weights,
    }
    conv = ("ConvInteger", "x w xz wz", "t", window or {"pads": [1, 1, 1, 1]})
    return module([conv, *tail], held, {"x": x}, outputs=outputs)


CAST = ("Cast", "i", "f", {"to": 1})
TAILS = {
    "scaled": [("Cast", "t", "f", {"to": 1}), ("Mul", "f s", "y")],
    "integers added": [("Add", "t b", "i"), CAST, ("Mul", "s f", "y")],
    "both added": [("Add", "b t", "i"), CAST, ("Mul", "f s", "m"), ("Add", "bias m", "y")],
    "floats added": [("Cast", "t", "f", {"to": 1}), ("Mul", "f s", "m"), ("Add", "m bias", "y")],
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize(
    "window", [{"pads": [1, 1, 1, 1]}, {"strides": [2, 1], "auto_pad": "SAME_UPPER"}]
)
def test_becomes_one_node_of_the_same_bits(tail: str, window: dict[str, Any]):
    before = graph(TAILS[tail], window=window)
    check_same_bits(PASS, before, {"x": codes(2, 4, 8, 9, dtype=np.uint8)})
    run_pass(PASS, before)
    assert op_types(before) == ["ConvIntegerToFloat"]


def test_a_scale_for_each_map_and_groups():
    before = graph(
        TAILS["both added"],
        w=codes(6, 2, 3, 3),
        b=np.full((6, 1, 1), 7, np.int32),
        bias=normal(1, 6, 1, 1),
        s=normal(1, 6, 1, 1),
        window={"group": 2},
    )
    check_same_bits(PASS, before, {"x": codes(1, 4, 5, 5, dtype=np.uint8)})
    run_pass(PASS, before)
    assert op_types(before) == ["ConvIntegerToFloat"]


def test_the_file_has_the_nodes_it_had():
    before = graph(TAILS["both added"])
    run_pass(PASS, before)
    nodes = [n.op_type for n in export_model(before).graph.node if n.op_type != "Constant"]
    assert nodes == ["ConvInteger", "Add", "Cast", "Mul", "Add"]


@pytest.mark.parametrize(
    ("tail", "keywords", "reason"),
    [
        ("scaled", {"s": normal(5)}, "is not one for each of 5"),
        ("scaled", {"s": normal(1, 1, MAPS, 1, 1)}, "raises the rank"),
        ("scaled", {"outputs": ("y", "t")}, "read outside"),
        ("both added", {"outputs": ("y", "i")}, None),
    ],
)
def test_left_alone(tail: str, keywords: dict[str, Any], reason: str | None):
    x = (np.uint8, [1, 4, 5, 5])
    check_unchanged(PASS, graph(TAILS[tail], x, **keywords), reason)


def test_integers_that_are_a_whole_image_stay_outside():
    before = graph(
        TAILS["integers added"], (np.uint8, [1, 4, 5, 5]), b=codes(1, 5, 5, 5).astype("i")
    )
    check_unchanged(PASS, before)


def test_a_whole_image_of_floats_stays_behind():
    before = graph(TAILS["floats added"], (np.uint8, [1, 4, 5, 5]), bias=normal(1, 5, 5, 5))
    check_same_bits(PASS, before, {"x": codes(1, 4, 5, 5, dtype=np.uint8)})
    run_pass(PASS, before)
    assert op_types(before) == ["ConvIntegerToFloat", "Add"]
