"""element-wise-fusion: chains become one operation that lowering and files take apart again."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.element_wise_fusion import ElementWiseFusion
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.rewriting import count_nodes
from tests.stages.check import check_unchanged, from_onnx

PASS = ElementWiseFusion()


def inferred(text: str, opset: int = 21) -> ModuleOp:
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def fuse(module: ModuleOp) -> list[list[str]]:
    """Run the pass; the operators of each chain."""
    context = PassContext(module)
    PASS.run(context)
    verify_model(module)
    assert count_nodes(module) == context.rewriter.nodes
    return [
        [inner.op_type for inner in op.regions[0].block.ops if isinstance(inner, NodeOp)]
        for op in module.walk()
        if isinstance(op, ElementWiseOp)
    ]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_chain_is_one_operation_and_gives_the_same_bits(rows: int) -> None:
    text = "g (float[N,4] x) => (float[N,4] y) <float one = {1}> {"
    text += " a = Add(x, one) b = Exp(x) c = Mul(a, b) y = Neg(c) }"
    x = np.array([[np.nan, np.inf, -0.0, 1e-40]] * rows, np.float32).reshape(rows, 4)
    feed = {"x": x}
    module = inferred(text)
    (expected,) = Session(lower(module), 1).run(None, feed)
    assert fuse(module) == [["Add", "Exp", "Mul", "Neg"]]
    (actual,) = Session(lower(module), 1).run(None, feed)
    assert actual.tobytes() == expected.tobytes()
    assert count_nodes(module) == 1


def test_files_get_the_operators_back() -> None:
    module = inferred("""g (float[N] x) => (float[N] y) { a = Abs(x) b = Sqrt(a) y = Neg(b) }""")
    before = export_model(module)
    fuse(module)
    after = export_model(module)
    onnx.checker.check_model(after, full_check=True)
    assert after.graph.node == before.graph.node
    assert after.opset_import == before.opset_import


def test_an_operator_of_another_shape_stays_outside() -> None:
    module = inferred("""g (float[N,1] s, float[N,4] x) => (float[N,4] y) {
        a = Exp(s) b = Mul(x, a) y = Neg(b) }""")
    context = PassContext(module)
    PASS.run(context)
    (remark,) = [r for r in context.remarks if r.kind == "declined"]
    assert "another shape than its reader" in remark.message
    assert [op.name for op in module.walk() if isinstance(op, ElementWiseOp)] == [
        "fused.ElementWise"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = Abs(x) b = Neg(a) c = Exp(a) y = Concat <axis = 0> (b, c)", "more than one chain"),
        ("a = Abs(x) y = Transpose(a)", ""),
        ("y = Abs(x)", ""),
    ],
    ids=["read by two chains", "read by something else", "alone"],
)
def test_what_is_no_chain_stays(text: str, reason: str) -> None:
    module = inferred(f"g (float[N] x) => (float[M] y) {{ {text} }}")
    check_unchanged(PASS, module, *([reason] if reason else []))


def test_an_output_of_the_model_ends_a_chain() -> None:
    module = inferred("""g (float[N] x) => (float[N] y, float[N] z) {
        y = Abs(x) b = Neg(y) z = Exp(b) }""")
    assert fuse(module) == [["Neg", "Exp"]]
    assert [o.name for o in export_model(module).graph.output] == ["y", "z"]


def test_it_works_in_bodies() -> None:
    module = inferred("""g (bool c, float[N] x) => (float[N] y) {
        y = If (c) <
            then_branch = t () => (float[N] p) { a = Abs(x) p = Sqrt(a) },
            else_branch = e () => (float[N] q) { q = Neg(x) }> }""")
    assert fuse(module) == [["Abs", "Sqrt"]]
    for flag in (True, False):
        feed = {"c": np.array(flag), "x": np.array([4.0], np.float32)}
        (y,) = Session(lower(module), 1).run(None, feed)
        assert y == (2.0 if flag else -4.0)


def test_equal_names_of_sizes_on_different_inputs_prove_nothing() -> None:
    module = inferred("""g (float[N] x, float[N] z) => (float[N] y) {
        a = Abs(x) b = Exp(z) y = Mul(a, b) }""")
    check_unchanged(PASS, module, "another shape than its reader")


def test_a_second_run_changes_nothing() -> None:
    module = inferred("""g (float[N] x) => (float[N] y) { a = Abs(x) b = Sqrt(a) y = Neg(b) }""")
    fuse(module)
    check_unchanged(PASS, module)
