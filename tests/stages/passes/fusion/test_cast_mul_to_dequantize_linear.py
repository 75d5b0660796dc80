"""cast-mul-to-dequantize-linear: weights that are cast and scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.dialects.fold.flags import no_need_reason
from foldline.stages.passes.fusion.cast_mul_to_dequantize_linear import CastMulToDequantizeLinear
from foldline.stages.passes.quantisation.protect_quantisation import ProtectQuantisation
from tests.stages.check import Array, check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.graphs import normal, only, operand
from tests.stages.passes.fusion.quantised import check_same_bits, codes, module, proto, scale

PASS = CastMulToDequantizeLinear()


def graph(
    w: Array,
    s: Array,
    zero: Array | None = None,
    opset: int = 17,
    to: int = 1,
    outputs: tuple[str, ...] = ("y",),
) -> ModuleOp:
    """A weight that is cast, maybe shifted, scaled, and multiplied."""
    weights = {"w": w, "s": s}
    nodes: list[Any] = [("Cast", "w", "f", {"to": to})]
    if zero is not None:
        weights["z"] = zero
        nodes.append(("Sub", "f z", "c"))
    nodes.append(("Mul", "f s" if zero is None else "s c", "d"))
    nodes.append(("MatMul", "x d", "y"))
    kind = {1: np.float32, 11: np.float64}[to]
    return module(nodes, weights, {"x": (kind, ["N", w.shape[0]])}, opset=opset, outputs=outputs)


SCALES = {
    "number": scale(0.02),
    "one element": scale(0.02, 1),
    "columns": normal(4),
    "columns of a row": normal(1, 4),
    "rows": normal(6, 1),
}


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("zero", [None, 3.0])
def test_bits_are_kept(kind: str, dtype: Any, zero: float | None):
    point = None if zero is None else scale(zero)
    before = graph(codes(6, 4, dtype=dtype), SCALES[kind], point)
    check_same_bits(PASS, before, {"x": normal(3, 6)})
    run_pass(PASS, before)
    assert op_types(before) == ["DequantizeLinear", "MatMul"]
    node = only(before, "DequantizeLinear")
    assert operand(node, 0).dtype == dtype
    axis = {"columns": 1, "columns of a row": 1, "rows": 0}.get(kind)
    assert operand(node, 1).shape == (() if axis is None else (6 if axis == 0 else 4,))
    assert axis is None or node.attribute_values()["axis"] == axis


def test_special_scales_keep_their_bits():
    values = np.array([np.inf, -0.0, 1e-45, -3e38], np.float32)
    before = graph(codes(6, 4), values)
    after = before.clone()
    run_pass(PASS, after)
    compiled = [foldline.lowering.lower(m, grades=("fast", "reference")) for m in (before, after)]
    first, second = (foldline.session.Session(p, 1) for p in compiled)
    found = [s.values({"x": normal(1, 6)}, ["d"])["d"] for s in (first, second)]
    np.testing.assert_array_equal(found[0].view(np.uint32), found[1].view(np.uint32))


@pytest.mark.parametrize(("opset", "ok"), [(10, True), (12, True), (9, False)])
def test_operator_sets_with_one_scale(opset: int, ok: bool):
    before = graph(codes(6, 4), scale(0.02), opset=opset)
    run_pass(PASS, before)
    assert ("DequantizeLinear" in op_types(before)) == ok


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"s": normal(4), "opset": 12}, "DequantizeLinear of operator set 12 has one scale"),
        ({"s": normal(6, 4)}, "is not along one axis"),
        ({"s": normal(1, 1, 4)}, "raises the rank"),
        ({"s": scale(1), "zero": scale(0.5)}, "0.5, is no int8"),
        ({"s": scale(1), "zero": scale(200)}, "200, is no int8"),
        ({"s": scale(1), "zero": normal(4)}, "what is subtracted has shape [4]"),
        ({"s": np.full((), 0.1), "to": 11}, "the Cast is to f64"),
        ({"s": scale(1), "outputs": ("y", "f")}, "read outside"),
    ],
)
def test_left_alone(keywords: dict[str, Any], reason: str):
    check_unchanged(PASS, graph(codes(6, 4), **keywords), reason)


def test_integers_of_more_bits_are_no_weights():
    check_unchanged(PASS, graph(codes(6, 4, dtype=np.int16), scale(0.1)))


def test_the_new_node_is_kept_from_folding_as_the_old_ones_were():
    before = graph(codes(6, 4), scale(0.1))
    run_pass(ProtectQuantisation(), before)
    run_pass(PASS, before)
    reason = no_need_reason(only(before, "DequantizeLinear"))
    assert reason is not None
    assert "MatMul" in reason


def test_weights_stay_integers_in_the_file_and_nodes_get_fewer():
    w, s = codes(256, 384), normal(1, 384)
    model = proto(
        [("Cast", "w", "f", {"to": 1}), ("Mul", "f s", "d"), ("MatMul", "x d", "y")],
        {"w": w, "s": s},
        {"x": (np.float32, ["N", 256])},
    )
    for level in ("O2", "O3"):
        exported = foldline.optimize(model, options={"oo.level": level})
        kinds = [node.op_type for node in exported.graph.node if node.op_type != "Constant"]
        assert kinds == ["DequantizeLinear", "MatMul"]
        assert exported.ByteSize() <= 1.02 * model.ByteSize()


def test_the_product_takes_its_bias_and_activation_in():
    model = proto(
        [
            *(("Cast", "w", "f", {"to": 1}), ("Mul", "f s", "d"), ("MatMul", "x d", "m")),
            *(("Add", "m b", "a"), ("Relu", "a", "y")),
        ],
        {"w": codes(256, 384), "s": normal(1, 384), "b": normal(384)},
        {"x": (np.float32, ["N", 256])},
    )
    compiled = foldline.compile(model)
    assert op_types(compiled.module) == ["DequantizeLinear", "Linear"]
    x = {"x": normal(5, 256)}
    plain = foldline.compile(model, options={"oo.level": "O0"}).session().run(None, x)[0]
    for _ in range(3):
        found = compiled.session().run(None, x)[0]
        np.testing.assert_array_equal(found.view(np.uint32), plain.view(np.uint32))
    kinds = [n.op_type for n in compiled.to_proto().graph.node if n.op_type != "Constant"]
    assert kinds == ["DequantizeLinear", "Gemm", "Relu"]
