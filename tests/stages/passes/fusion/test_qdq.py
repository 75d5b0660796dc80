"""qdq, spec runtime-rewrites row 3.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.exporter import export_model
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.qdq import Qdq
from foldline.support.passes import PASSES
from tests.stages.check import Array, check_unchanged, op_types, run_pass, values
from tests.stages.passes.fusion.graphs import Node, normal, only, operand
from tests.stages.passes.fusion.quantised import (
    codes,
    dq,
    module,
    proto,
    q,
    scale,
    session_values,
)

PASS = Qdq()
MAPS = 5
PADS = {"pads": [1, 1, 1, 1]}
X_SCALE, W_SCALE, Y_SCALE = 0.02, 0.01, 0.25


def zero(dtype: Any, value: int) -> Array:
    return np.full((), value, dtype)


def conv(
    dtype: Any = np.int8,
    weight: Any = np.int8,
    bias: str = "int32",
    limit: Node | None = None,
    per_map: bool = True,
    window: dict[str, Any] | None = None,
    opset: int = 17,
    shape: tuple[Any, ...] = ("N", 4, "H", "W"),
    w_shape: tuple[int, ...] = (MAPS, 4, 3, 3),
    nodes: dict[int, Node] | None = None,
    outputs: tuple[str, ...] = ("y",),
    **weights: Any,
) -> ModuleOp:
    """DequantizeLinear of x, w and maybe a bias, Conv, maybe a limit, QuantizeLinear."""
    maps = w_shape[0]
    w_scale = np.linspace(0.5, 1.5, maps).astype(np.float32) * np.float32(W_SCALE)
    least = np.iinfo(dtype).min
    held = {
        "x_s": scale(X_SCALE),
        "x_z": zero(dtype, least + 100),
        "w": codes(*w_shape, dtype=weight),
        "w_s": w_scale if per_map else scale(W_SCALE),
        "w_z": np.zeros(maps if per_map else (), weight) + weight(0 if weight == np.int8 else 128),
        "y_s": scale(Y_SCALE),
        "y_z": zero(dtype, least + 120),
    }
    held |= {"w_z": held["w_z"].astype(weight), "cap": scale(6), "floor": scale(0)}
    if bias == "int32":
        held |= {"b": codes(maps, dtype=np.int32) >> 14, "b_s": held["x_s"] * held["w_s"]}
        held["b_z"] = np.zeros(held["b_s"].shape, np.int32)
    elif bias == "float":
        held["bf"] = normal(maps) * 10
    held |= weights
    axis = {"axis": 0} if per_map else {}
    graph: list[Node] = [dq("x", "xf"), ("DequantizeLinear", "w w_s w_z", "wf", axis)]
    if bias == "int32":
        graph.append(("DequantizeLinear", "b b_s b_z", "bf", axis))
    graph.append(("Conv", "xf wf" + " bf" * (bias != ""), "c", PADS if window is None else window))
    if limit is not None:
        graph.append(limit)
    graph.append(q("c" if limit is None else "r", "y"))
    for place, node in (nodes or {}).items():
        graph[place] = node
    return module(graph, held, {"x": (dtype, shape)}, opset=opset, outputs=outputs)


def within_a_quantum(before: ModuleOp, feed: dict[str, Array], wanted_types: list[str]) -> None:
    """The file and the session are at most one code off, and the file has these nodes."""
    after = before.clone()
    run_pass(PASS, after)
    assert op_types(after) == wanted_types
    old = session_values(before, feed)[0].astype(int)
    for found in (session_values(after, feed)[0], values(after, feed)[0], values(before, feed)[0]):
        assert np.abs(found.astype(int) - old).max(initial=0) <= 1
    assert len(np.unique(old)) > 20 or not old.size


TYPES = [(np.int8, np.int8), (np.uint8, np.uint8), (np.uint8, np.int8)]


@pytest.mark.parametrize(("dtype", "weight"), TYPES)
@pytest.mark.parametrize("bias", ["", "int32", "float"])
@pytest.mark.parametrize("per_map", [True, False])
def test_row_3_1_conv_within_one_quantum(dtype: Any, weight: Any, bias: str, per_map: bool):
    opset = 17 if per_map else 11
    before = conv(dtype, weight, bias, per_map=per_map, opset=opset)
    within_a_quantum(before, {"x": codes(2, 4, 9, 8, dtype=dtype)}, ["QLinearConv"])


@pytest.mark.parametrize(
    ("window", "w_shape", "shape"),
    [
        ({"group": 2}, (6, 2, 3, 3), (1, 4, 7, 7)),
        ({"group": 4, "pads": [2, 2, 2, 2]}, (4, 1, 5, 5), (2, 4, 6, 6)),
        ({"strides": [2, 2], "auto_pad": "SAME_UPPER"}, (6, 4, 3, 3), (1, 4, 7, 8)),
        ({"dilations": [2, 1]}, (5, 4, 2, 3), (1, 4, 7, 7)),
        ({}, (5, 4, 1, 1), (1, 4, 7, 7)),
        ({}, (5, 4, 3), (2, 4, 9)),
    ],
)
def test_row_3_1_windows(window: Any, w_shape: Any, shape: Any):
    before = conv(window=window, w_shape=w_shape, shape=shape)
    within_a_quantum(before, {"x": codes(*shape)}, ["QLinearConv"])


def test_row_3_1_saturates_at_both_ends():
    before = conv(y_s=scale(0.005))
    feed = {"x": codes(2, 4, 9, 8)}
    found = session_values(before, feed)[0]
    assert (found == 127).sum() > 20
    assert (found == -128).sum() > 20
    within_a_quantum(before, feed, ["QLinearConv"])


def test_row_3_1_nothing_in_nothing_out():
    before = conv()
    run_pass(PASS, before)
    assert session_values(before, {"x": codes(0, 4, 9, 8)})[0].shape == (0, 5, 9, 8)


def test_row_3_1_the_bias_becomes_the_integers_that_it_was():
    before = conv()
    bias = next(op for op in before.walk() if op.name == "onnx.Conv").operands[2].owner.operands[0]
    run_pass(PASS, before)
    assert only(before, "QLinearConv").operands[8] is bias


def test_row_3_1_a_float_bias_is_rounded_to_int32_of_the_scale_of_the_product():
    before = conv(bias="float", per_map=False, bf=np.array([1, -1, 0.25, 0, 3], np.float32))
    run_pass(PASS, before)
    found = operand(only(before, "QLinearConv"), 8)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, [5000, -5000, 1250, 0, 15000])


RELU: Node = ("Relu", "c", "r")
CLIP: Node = ("Clip", "c floor cap", "r")


@pytest.mark.parametrize("limit", [RELU, CLIP])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_row_3_1_a_limit_goes_where_saturation_does_the_same(limit: Node, dtype: Any):
    least = np.iinfo(dtype).min
    before = conv(dtype, dtype, limit=limit, y_z=zero(dtype, least), y_s=scale(6 / 255))
    within_a_quantum(before, {"x": codes(2, 4, 9, 8, dtype=dtype)}, ["QLinearConv"])


@pytest.mark.parametrize(
    ("limit", "held", "reason"),
    [
        (RELU, {"y_z": zero(np.int8, -127)}, "Relu limits the codes to -127"),
        (CLIP, {"y_z": zero(np.int8, -128), "y_s": scale(0.1)}, "limits the codes to -128 and -68"),
        (CLIP, {"floor": scale(8)}, "Clip has bounds 8 and 6"),
    ],
)
def test_row_3_1_a_limit_that_saturation_does_not_do_stays(limit: Node, held: Any, reason: str):
    check_unchanged(PASS, conv(limit=limit, **held), reason)


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"w_z": np.array([0, 0, 1, 0, 0], np.int8)}, "zero points of the maps differ"),
        ({"b_s": np.full(MAPS, 100, np.float32)}, "does not fit into int32"),
        ({"bias": "float", "bf": np.full(MAPS, 1e9, np.float32)}, "does not fit into int32"),
        ({"bias": "float", "y_s": scale(1e-4)}, "quanta of the result"),
        ({"b": np.full(MAPS, 2**31 - 100000, np.int32)}, "may not fit into int32"),
        ({"x_s": np.full((), np.inf, np.float32), "bias": ""}, "not positive and finite"),
        ({"y_s": np.full((), -1, np.float32)}, "not positive and finite"),
        ({"y_z": zero(np.uint8, 3)}, "the codes of the result are uint8"),
        ({"outputs": ("y", "c")}, "read outside"),
        ({"nodes": {1: ("Cast", "w", "wf", {"to": 1})}}, "the weight: it is not dequantised"),
        ({"weight": np.uint8}, "the codes of the input are int8, those of the weight uint8"),
    ],
)
def test_row_3_1_left_alone(keywords: dict[str, Any], reason: str):
    check_unchanged(PASS, conv(**keywords), reason)


def unusual(attribute: dict[str, int], place: int) -> ModuleOp:
    """A convolution of operator set 23 whose nodes have an attribute of its."""
    nodes = [("DequantizeLinear", "x x_s x_z", "xf"), ("Conv", "xf wf", "c"), q("c", "y")]
    nodes[place] = (*nodes[place][:3], attribute)
    held = {"x_s": scale(0.1), "x_z": zero(np.int8, 0), "wf": normal(2, 3, 1, 1)}
    held |= {"y_s": scale(0.1), "y_z": zero(np.int8, 0)}
    return module(nodes, held, {"x": (np.int8, (1, 3, 4, 4))}, opset=23)


@pytest.mark.parametrize(
    ("attribute", "place", "reason"),
    [
        ({"output_dtype": 1}, 0, "its output_dtype is 1"),
        ({"precision": 1}, 2, "its precision is 1"),
        ({"output_dtype": 3}, 2, "its output_dtype is 3"),
    ],
)
def test_row_3_1_unusual_quantisation_is_left_alone(attribute: Any, place: int, reason: str):
    context = check_unchanged(PASS, unusual(attribute, place))
    assert any(reason in remark.message for remark in context.remarks) or place == 2


def test_row_3_1_blocks_are_left_alone():
    nodes = [
        dq("a", "af"),
        ("DequantizeLinear", "b b_s", "bf", {"axis": 0, "block_size": 4}),
        ("MatMul", "af bf", "c"),
        q("c", "y"),
    ]
    held = {"a_s": scale(0.1), "a_z": zero(np.int8, 0), "b": codes(8, 3), "b_s": normal(2, 3) ** 2}
    held |= {"y_s": scale(1), "y_z": zero(np.int8, 0)}
    before = module(nodes, held, {"a": (np.int8, (2, 8))}, opset=21)
    check_unchanged(PASS, before, "its block_size is 4")


def test_row_3_1_a_dequantised_input_that_others_read_stays_for_them():
    nodes = [
        dq("x", "xf"),
        ("DequantizeLinear", "w w_s w_z", "wf", {}),
        ("Conv", "xf wf", "c"),
        q("c", "y"),
        ("Sigmoid", "xf", "z"),
    ]
    held = {"x_s": scale(0.02), "x_z": zero(np.int8, 3), "w": codes(5, 4, 1, 1)}
    held |= {
        "w_s": scale(0.01),
        "w_z": zero(np.int8, 0),
        "y_s": scale(0.1),
        "y_z": zero(np.int8, 0),
    }
    before = module(nodes, held, {"x": (np.int8, (1, 4, 3, 3))}, outputs=("y", "z"))
    run_pass(PASS, before)
    assert sorted(op_types(before)) == ["DequantizeLinear", "QLinearConv", "Sigmoid"]


def matmul(
    dtype: Any = np.int8,
    weight: Any = np.int8,
    b_scale: Array | None = None,
    product: Node = ("MatMul", "af bf", "c"),
    b_axis: int = 1,
    a_shape: tuple[Any, ...] = (2, "N", 12),
    runtime: bool = False,
    **weights: Any,
) -> ModuleOp:
    """DequantizeLinear of a and b, a product, QuantizeLinear."""
    least = np.iinfo(dtype).min
    held = {
        "a_s": scale(0.02),
        "a_z": zero(dtype, least + 100),
        "b": codes(12, 6, dtype=weight),
        "b_s": scale(0.01) if b_scale is None else b_scale,
        "y_s": scale(0.3),
        "y_z": zero(dtype, least + 128),
        "C": normal(6),
        **weights,
    }
    held["b_z"] = np.zeros(held["b_s"].shape, weight)
    inputs = {"a": (dtype, a_shape)}
    if runtime:
        inputs["b"] = (weight, held.pop("b").shape)
    dq_b = ("DequantizeLinear", "b b_s b_z", "bf", {"axis": b_axis})
    return module([dq("a", "af"), dq_b, product, q("c", "y")], held, inputs)


@pytest.mark.parametrize(("dtype", "weight"), TYPES)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("runtime", [False, True])
def test_row_3_1_matmul_within_one_quantum(dtype: Any, weight: Any, columns: bool, runtime: bool):
    per_column = np.linspace(0.005, 0.015, 6).astype(np.float32) if columns else None
    before = matmul(dtype, weight, per_column, runtime=runtime)
    feed = {"a": codes(2, 5, 12, dtype=dtype)}
    if runtime:
        feed["b"] = codes(12, 6, dtype=weight)
    within_a_quantum(before, feed, ["QLinearMatMul"])


@pytest.mark.parametrize("transposed", [0, 1])
def test_row_3_1_gemm_without_c(transposed: int):
    b = codes(6, 12) if transposed else codes(12, 6)
    per_column = np.linspace(0.005, 0.015, 6).astype(np.float32)
    before = matmul(
        b=b,
        b_scale=per_column,
        b_axis=0 if transposed else 1,
        a_shape=("N", 12),
        product=("Gemm", "af bf", "c", {"transB": transposed}),
    )
    within_a_quantum(before, {"a": codes(30, 12)}, ["QLinearMatMul"])
    run_pass(PASS, before)
    wanted = b.T if transposed else b
    np.testing.assert_array_equal(operand(only(before, "QLinearMatMul"), 3), wanted)


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"product": ("Gemm", "af bf", "c", {"alpha": 2.0})}, "alpha is 2.0, not 1"),
        ({"product": ("Gemm", "af bf", "c", {"transA": 1}), "a_shape": (12, 2)}, "transA is set"),
        ({"product": ("Gemm", "af bf C", "c", {"beta": 2.0})}, "beta is 2.0, not 1"),
        ({"product": ("Gemm", "af bf C", "c"), "C": normal(1)}, "not one number for each of 6"),
        ({"product": ("Gemm", "af bf C", "c"), "runtime": True}, "second factor is not constant"),
        ({"product": ("Gemm", "af bf C", "c"), "y_s": scale(1e-5)}, "quanta of the result"),
        (
            {"b_scale": scale(0.1, 12), "b_axis": 0},
            "a scale for each index of axis 0, not a column",
        ),
        ({"product": ("MatMul", "af bf", "c"), "a_shape": (12,)}, "two axes or more"),
    ],
)
def test_row_3_1_products_left_alone(keywords: dict[str, Any], reason: str):
    is_gemm = keywords.get("product", ("",))[0] == "Gemm"
    keywords = {**({"a_shape": ("N", 12)} if is_gemm else {}), **keywords}
    check_unchanged(PASS, matmul(**keywords), reason)


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("shape", [(6,), (1, 6)])
def test_row_3_1_gemm_with_c(transposed: int, columns: bool, shape: Any):
    before = matmul(
        b=codes(6, 12) if transposed else codes(12, 6),
        b_scale=np.linspace(0.005, 0.015, 6).astype(np.float32) if columns else None,
        b_axis=0 if transposed else 1,
        a_shape=("N", 12),
        product=("Gemm", "af bf C", "c", {"transB": transposed}),
        C=normal(*shape) * 5,
    )
    within_a_quantum(before, {"a": codes(30, 12)}, ["QLinearGemm"])
    run_pass(PASS, before)
    exported = export_model(before).graph.node
    assert [node.op_type for node in exported if node.op_type != "Constant"] == [
        *("DequantizeLinear", "DequantizeLinear", "Gemm", "QuantizeLinear")
    ]


def model() -> Any:
    """A model of one quantised convolution, large enough that its weights would not be folded."""
    graph = [
        q("x", "xq"),
        ("DequantizeLinear", "xq xq_s xq_z", "xf"),
        ("DequantizeLinear", "w w_s w_z", "wf"),
        ("Conv", "xf wf", "c"),
        q("c", "y"),
    ]
    held = {"xq_s": scale(0.02), "xq_z": zero(np.uint8, 128), "w": codes(64, 64, 3, 3)}
    held |= {"w_s": scale(0.01), "w_z": zero(np.int8, 0), "y_s": scale(1), "y_z": zero(np.uint8, 9)}
    return proto(graph, held, {"x": (np.float32, ("N", 64, 8, 8))})


def kinds(given: Any) -> list[str]:
    return [node.op_type for node in given.graph.node if node.op_type != "Constant"]


def test_row_3_1_weights_are_not_folded_before_and_stay_integers_in_the_file():
    exported = foldline.optimize(model())
    assert kinds(exported) == ["QuantizeLinear", "QLinearConv"]
    assert exported.ByteSize() <= 1.02 * model().ByteSize()


def test_row_3_1_exact_mode_leaves_quantised_nodes():
    assert not PASSES["qdq"].preserves_bits
    assert PASSES["qdq"].level == "O3"
    compiled = foldline.compile(model(), options={"mode": "exact"})
    assert "QLinearConv" not in op_types(compiled.module)
    assert op_types(compiled.module).count("DequantizeLinear") == 2


def test_row_3_1_a_second_run_changes_nothing():
    before = conv()
    run_pass(PASS, before)
    context: PassContext = check_unchanged(PASS, before)
    assert not [remark for remark in context.remarks if remark.kind == "applied"]
