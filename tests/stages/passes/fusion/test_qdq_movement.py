"""qdq-movement: codes that are moved, chosen or left where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.passes.fusion.qdq_movement import QdqMovement
from tests.stages.check import Array, check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.graphs import Node
from tests.stages.passes.fusion.quantised import check_same_bits, codes, dq, module, q, scale

PASS = QdqMovement()


def graph(
    *middle: Node,
    value: float = 0.07,
    after: float | None = None,
    dtype: Any = np.int8,
    opset: int = 17,
    outputs: tuple[str, ...] = ("y",),
    zeros: tuple[int, int] = (5, 5),
    **weights: Array,
) -> ModuleOp:
    """DequantizeLinear of a, nodes from `af` to `c`, QuantizeLinear."""
    held = {
        "a_s": scale(value),
        "a_z": np.full((), zeros[0], dtype),
        "y_s": scale(value if after is None else after),
        "y_z": np.full((), zeros[1], dtype),
        "b_s": scale(value),
        "b_z": np.full((), zeros[0], dtype),
        **weights,
    }
    inputs = {"a": (dtype, (1, 4, 6, 8))}
    nodes = [dq("a", "af")]
    if any("bf" in node[1].split() for node in middle):
        nodes.append(dq("b", "bf"))
        inputs["b"] = (dtype, (1, 2, 6, 8))
    last = q("c" if middle else "af", "y")
    return module([*nodes, *middle, last], held, inputs, opset=opset, outputs=outputs)


MOVERS: dict[str, tuple[Node, dict[str, Array]]] = {
    "Transpose": (("Transpose", "af", "c", {"perm": [0, 2, 3, 1]}), {}),
    "Reshape": (("Reshape", "af r", "c"), {"r": np.array([4, -1])}),
    "Flatten": (("Flatten", "af", "c"), {}),
    "Squeeze": (("Squeeze", "af r", "c"), {"r": np.array([0])}),
    "Slice": (("Slice", "af s e", "c"), {"s": np.array([0, 1]), "e": np.array([1, 3])}),
    "Gather": (("Gather", "af i", "c", {"axis": 3}), {"i": np.array([[7, 0]])}),
    "MaxPool": (("MaxPool", "af", "c", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}), {}),
    "Concat": (("Concat", "af bf", "c", {"axis": 1}), {}),
}


@pytest.mark.parametrize("name", MOVERS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_movers(name: str, dtype: Any):
    middle, weights = MOVERS[name]
    before = graph(middle, dtype=dtype, **weights)
    feed = {"a": codes(1, 4, 6, 8, dtype=dtype)}
    if name == "Concat":
        feed["b"] = codes(1, 2, 6, 8, dtype=dtype, seed=2)
    check_same_bits(PASS, before, feed)
    run_pass(PASS, before)
    assert op_types(before) == [name]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("value", [0.07, 1e-38, 1e-45, 1e36, 3.1e35, 1 / 3])
@pytest.mark.parametrize("zero", [0, 5, 127])
def test_every_code_comes_back_under_any_scale(dtype: Any, value: float, zero: int):
    held = {"a_s": scale(value), "a_z": np.full((), zero, dtype)}
    held |= {"y_s": scale(value), "y_z": np.full((), zero, dtype)}
    nodes = [dq("a", "af"), q("af", "m"), ("Identity", "m", "y")]
    nodes[1] = ("QuantizeLinear", "af y_s y_z", "m")
    before = module(nodes, held, {"a": (dtype, (256,))})
    x = np.arange(256, dtype=np.uint8).view(dtype)
    after = before.clone()
    run_pass(PASS, after)
    assert op_types(after) == ["Identity"]
    check_same_bits(PASS, before, {"a": x})


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"after": 0.08}, "its scale is 0.07, that of the result 0.08"),
        ({"zeros": (5, 6)}, "its zero point is 5, that of the result 6"),
        ({"y_z": np.full((), 5, np.uint8)}, "its codes are int8, those of the result uint8"),
        ({"value": 3e38}, "its largest codes stand for infinities"),
        ({"outputs": ("y", "c")}, None),
    ],
)
def test_left_alone(keywords: dict[str, Any], reason: str | None):
    check_unchanged(PASS, graph(MOVERS["Transpose"][0], **keywords), reason)


def test_max_pool_of_bytes_needs_operator_set_12():
    middle, weights = MOVERS["MaxPool"]
    check_unchanged(
        PASS, graph(middle, opset=11, **weights), "MaxPool of this operator set does not take"
    )


def test_max_pool_with_indices_is_left_alone():
    middle = ("MaxPool", "af", "c places", {"kernel_shape": [3, 3]})
    before = graph(middle, outputs=("y", "places"))
    check_unchanged(PASS, before)


def test_a_concat_of_different_scales_is_left_alone():
    check_unchanged(PASS, graph(MOVERS["Concat"][0], b_s=scale(0.5)), "its scale is 0.5")
