"""reshape-remove: equal shapes, known or symbolic, and chains."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.reshape_remove import ReshapeRemove
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    nodes,
    op_types,
    parse,
    run_pass,
)

PASS = ReshapeRemove()


def inferred(text: str, opset: int = 21) -> ModuleOp:
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


SAME = [
    "y0 = Reshape(x, s)",
    "y0 = Flatten(x)",
    "u = Unsqueeze(x, i) y0 = Squeeze(u, i)",
    "u = Reshape(x, f) y0 = Reshape(u, s)",
    "u = Shape(x) y0 = Reshape(x, u)",
    "a = Shape(x) u = Reshape(x, f) y0 = Reshape(u, a)",
]


@pytest.mark.parametrize("rows", [3, 0])
@pytest.mark.parametrize("text", SAME)
def test_what_keeps_the_shape_goes(text: str, rows: int) -> None:
    module = inferred(
        f"""g (float[N,4] x) => (float[a,b] y)
        <int64[2] s = {{-1, 4}}, int64[1] f = {{-1}}, int64[1] i = {{1}}>
        {{ {text} y = Neg(y0) }}"""
    )
    check_values(PASS, module, {"x": np.full((rows, 4), np.nan, np.float32)})
    assert op_types(module)[-1] == "Neg"
    assert set(op_types(module)) <= {"Neg", "Shape"}


def test_old_squeezes() -> None:
    module = inferred(
        """g (float[N,4] x) => (float[N,4] y) {
        u = Unsqueeze <axes = [0]> (x) v = Squeeze <axes = [0]> (u) y = Neg(v) }""",
        opset=9,
    )
    run_pass(PASS, module)
    assert op_types(module) == ["Neg"]


OTHERS = [
    ("y = Reshape(x, s)", "<int64[2] s = {4, -1}>"),
    ("y = Reshape(x, s)", "<int64[1] s = {-1}>"),
    ("y = Squeeze(x)", ""),
    ("y = Unsqueeze(x, i)", "<int64[1] i = {0}>"),
    ("y = Flatten <axis = 0> (x)", ""),
]


@pytest.mark.parametrize(("text", "constants"), OTHERS)
def test_other_shapes_stay(text: str, constants: str) -> None:
    check_unchanged(PASS, inferred(f"g (float[N,4] x) => (float y) {constants} {{ {text} }}"))


def test_names_of_sizes_on_different_inputs_prove_nothing() -> None:
    module = inferred("""g (float[N,4] x, float[N,4] z) => (float[N,4] y) {
        s = Shape(z) a = Reshape(x, s) y = Neg(a) }""")
    check_unchanged(PASS, module)


@pytest.mark.parametrize("inner", ["Reshape(x, d)", "Flatten(x)", "Unsqueeze(x, i)"])
def test_a_reshape_reads_past_the_one_before_it(inner: str) -> None:
    module = inferred(
        f"""g (float[N,4] x, int64[3] d) => (float[a,b,c] y)
        <int64[1] i = {{2}}, int64[3] s = {{2, -1, 2}}>
        {{ u = {inner} v = Reshape(u, s) y = Neg(v) }}"""
    )
    feed = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "d": np.array([1, 3, 4])}
    check_values(PASS, module, feed)
    assert op_types(module) == ["Reshape", "Neg"]


def test_a_size_that_is_copied_must_be_the_same() -> None:
    text = """g (float[N,4,2] x) => (float[a,b] y)
    <int64[2] d = {{{}}}, int64[3] s = {{0, 2, -1}}> {{
        u = Reshape(x, d) v = Reshape(u, s) y = Neg(v) }}"""
    same = inferred(text.format("0, 8"))
    check_values(PASS, same, {"x": np.zeros((3, 4, 2), np.float32)})
    assert op_types(same) == ["Reshape", "Neg"]
    check_unchanged(PASS, inferred(text.format("4, -1")), "copies a size that is not the same")


def test_a_zero_that_is_a_size_copies_nothing() -> None:
    text = f"""%d = {constant([0, 4, 1])}
    %s = {constant([4, 0])}
    %a = onnx.Reshape(%x, %d) : tensor<0x4x1xf32>
    %y = onnx.Reshape(%a, %s) {{allowzero = 1 : i64}} : tensor<4x0xf32>
    return(%y)"""
    after = f"""%s = {constant([4, 0])}
    %y = onnx.Reshape(%x, %s) {{allowzero = 1 : i64}} : tensor<4x0xf32>
    return(%y)"""
    check_pass(PASS, parse(text, "%x: tensor<0x4xf32>"), parse(after, "%x: tensor<0x4xf32>"))


def test_a_target_that_is_computed_stays() -> None:
    module = inferred("""g (float[N,4] x, int64[2] d) => (float[a,b] y) <int64[1] f = {-1}> {
        u = Reshape(x, f) y = Reshape(u, d) }""")
    check_unchanged(PASS, module, "its target is not constant")


def test_names_of_outputs_stay() -> None:
    module = inferred("g (float[2,3] x) => (float[2,3] y) { a = Neg(x) y = Flatten(a) }")
    run_pass(PASS, module)
    assert [result_names(op) for op in nodes(module)] == [("y",)]
    check_unchanged(
        PASS,
        inferred("g (float[2,3] x) => (float[2,3] y) { y = Flatten(x) }"),
        "an input of the same",
    )


def test_it_works_in_bodies_and_functions() -> None:
    module = inferred("""g (bool c, float[2,3] x) => (float[2,3] y) {
        z = local.f(x)
        y = If(c) <then_branch = t () => (float[2,3] u) { a = Flatten(z) u = Neg(a) },
                   else_branch = e () => (float[2,3] v) { v = Abs(z) }>
    }
    <opset_import: ["" : 21], domain: "local"> f (p) => (q) { r = Flatten(p) q = Neg(r) }""")
    check_values(PASS, module, {"c": np.array(True), "x": np.ones((2, 3), np.float32)})
    assert not any(op.name == "onnx.Flatten" for op in module.walk())


def test_attributes_that_are_parameters_of_a_function_stay() -> None:
    module = inferred("""g (float[3,4] x) => (float y) { y = local.f <p = 0> (x) }
    <opset_import: ["" : 21], domain: "local"> f <p> (x) => (y) {
        s = Constant <value_ints = [0, 2, 6]> () f = Constant <value_ints = [6, 2]> ()
        u = Reshape(x, f) y = Reshape <allowzero: int = @p> (u, s) }""")
    check_unchanged(PASS, module)
