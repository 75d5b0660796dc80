"""protect-quantisation: dequantised weights stay for the rewrites that look for them."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.dialects.fold import no_need_reason
from foldline.dialects.onnx.op import node_name
from foldline.stages.context import PassContext
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.quantisation.protect_quantisation import ProtectQuantisation
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.run import run_pipeline
from foldline.support.options import resolve
from tests.stages.check import check_unchanged, check_values, from_onnx, named, op_types

PASS = ProtectQuantisation()
HEAD = """g (float[2, 2] x) => (float[n, m] y) <int8[2, 2] w = {1, -2, 3, 4}, float s = {0.5},
    int8 z = {1}, float[2, 2] f = {1, 2, 3, 4}, int64[2] r = {2, 2}, int64 i = {0},
    int8[1, 1, 2, 2] k = {1, 2, 3, 4}, int64[2, 2] wide = {1, 2, 3, 4}> {"""


def protected(body: str) -> set[str]:
    """Names of the nodes that are not to be folded."""
    module = from_onnx(f"{HEAD} {body} }}")
    check_unchanged(PASS, module)
    return {node_name(op) or "" for op in module.walk() if no_need_reason(op) is not None}


READ = {
    "MatMul": "[q] d = DequantizeLinear(w, s, z) y = MatMul(x, d)",
    "MatMul_on_the_left": "[q] d = DequantizeLinear(w, s) y = MatMul(d, x)",
    "Gemm": "[q] d = DequantizeLinear(w, s, z) y = Gemm(x, d)",
    "Gather": "[q] d = DequantizeLinear(w, s, z) y = Gather(d, r)",
    "Conv": "[q] d = DequantizeLinear(k, s, z) u = Unsqueeze(x, r) y = Conv(u, d)",
    "ConvTranspose": "[q] d = DequantizeLinear(k, s) u = Unsqueeze(x, r) y = ConvTranspose(u, d)",
    "through_Transpose": "[q] d = DequantizeLinear(w, s) t = Transpose(d) y = MatMul(x, t)",
    "through_Reshape": "[q] d = DequantizeLinear(w, s) t = Reshape(d, r) y = MatMul(x, t)",
    "through_both": "[q] d = DequantizeLinear(w, s) t = Transpose(d) u = Reshape(t, r) "
    "y = Gemm(x, u)",
    "Transpose_before": "t = Transpose(w) [q] d = DequantizeLinear(t, s) y = MatMul(x, d)",
    "one_of_several_readers": "[q] d = DequantizeLinear(w, s) u = Neg(d) v = MatMul(x, d) "
    "y = Add(u, v)",
}


@pytest.mark.parametrize("body", READ.values(), ids=READ.keys())
def test_a_dequantised_weight_is_kept(body: str) -> None:
    assert protected(body) == {"q"}


@pytest.mark.parametrize("order", ["c, s", "s, c"])
def test_cast_and_mul_are_kept_together(order: str) -> None:
    body = f"[cast] c = Cast<to = 1>(w) [mul] d = Mul({order}) y = MatMul(x, d)"
    assert protected(body) == {"cast", "mul"}


FREE = {
    "another_reader": "[q] d = DequantizeLinear(w, s) y = Add(x, d)",
    "no_constant": "[q] v = QuantizeLinear(x, s, z) d = DequantizeLinear(v, s, z) y = MatMul(x, d)",
    "a_float_weight": "m = Mul(f, s) y = MatMul(x, m)",
    "no_scale": "[cast] c = Cast<to = 1>(w) y = MatMul(x, c)",
    "a_scale_that_is_computed": "[cast] c = Cast<to = 1>(w) m = Mul(c, x) y = MatMul(x, m)",
    "wide_integers": "[cast] c = Cast<to = 1>(wide) m = Mul(c, s) y = MatMul(x, m)",
    "a_target_shape": "c = Cast<to = 6>(w) d = DequantizeLinear(c, s) e = Cast<to = 7>(d) "
    "t = Reshape(e, r) y = Reshape(x, t)",
}


@pytest.mark.parametrize("body", FREE.values(), ids=FREE.keys())
def test_others_fold_as_ever(body: str) -> None:
    assert protected(body) == set()


def test_the_reason_is_given_and_folding_goes_by_it() -> None:
    module = from_onnx(f"{HEAD} [q] d = DequantizeLinear(w, s) [mm] y = MatMul(x, d) }}")
    context = PassContext(module)
    PASS.run(context)
    reason = "its integer weight goes into onnx.MatMul (node 'mm'), which may be quantised"
    assert no_need_reason(named(module, "q")) == reason
    assert [r.message for r in context.remarks] == [f"is not folded: {reason}"]
    InferShapes().run(context)
    ConstantFolding().run(context)
    assert op_types(module) == ["DequantizeLinear", "MatMul"]


def test_weights_in_bodies_are_kept() -> None:
    module = from_onnx("""g (bool c, float[2, 2] x) => (float[2, 2] y)
    <int8[2, 2] w = {1, 2, 3, 4}, float s = {0.5}> {
        y = If(c) <then_branch = t () => (float[2, 2] u) {
                       [q] d = DequantizeLinear(w, s) u = MatMul(x, d) },
                   else_branch = e () => (float[2, 2] v) { v = Neg(x) }>
    }""")
    PASS.run(PassContext(module))
    assert no_need_reason(named(module, "q")) is not None


def test_it_survives_all_stages_and_the_values_stay() -> None:
    text = f"{HEAD} [q] d = DequantizeLinear(w, s, z) t = Transpose(d) y = MatMul(x, t) }}"
    module = from_onnx(text)
    run_pipeline(module, resolve())
    assert "DequantizeLinear" in op_types(module)
    check_values(PASS, from_onnx(text), {"x": np.float32([[1, -0.0], [np.inf, 2]])})
