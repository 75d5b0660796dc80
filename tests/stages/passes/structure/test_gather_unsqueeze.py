"""gather-unsqueeze: an axis that is taken away and put back stays."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.gather_unsqueeze import GatherUnsqueeze
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

PASS = GatherUnsqueeze()


def inferred(text: str, opset: int = 21) -> ModuleOp:
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def test_it_selects_by_a_list() -> None:
    text = f"""%i = {constant(2)}
    %a = {constant([1])}
    %g = onnx.Gather(%x, %i) {{axis = -1 : i64}} : tensor<2xf32>
    %y = onnx.Unsqueeze(%g, %a) : tensor<2x1xf32>
    return(%y)"""
    after = f"""%i = {constant([2])}
    %y = onnx.Gather(%x, %i) {{axis = 1 : i64}} : tensor<2x1xf32>
    return(%y)"""
    check_pass(PASS, parse(text), parse(after))


@pytest.mark.parametrize("index", [0, 2, -1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values_are_the_same_bits(index: int, axis: int) -> None:
    module = inferred(
        f"""g (float[3,4,3] x) => (float[a,b,c] y)
        <int64 i = {{{index}}}, int64[1] a = {{{axis}}}> {{
            g = Gather <axis = {axis}> (x, i) y = Unsqueeze(g, a)
        }}"""
    )
    check_values(PASS, module, {"x": np.arange(36, dtype=np.float32).reshape(3, 4, 3)})
    assert op_types(module) == ["Gather"]
    assert [result_names(op) for op in nodes(module) if op.op_type == "Gather"] == [("y",)]


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("u = Unsqueeze <axes = [0]> (g)", 9),
        ("u = Unsqueeze <axes = [0]> (g)", 7),
        ("u = Reshape(g, one)", 13),
        ("u = Reshape(g, rest)", 8),
    ],
)
def test_sizes_that_are_selected(text: str, opset: int) -> None:
    module = inferred(
        f"""g (float[N,7] x) => (int64[1] y)
        <int64 i = {{0}}, int64[1] one = {{1}}, int64[1] rest = {{-1}}>
        {{ s = Shape(x) g = Gather(s, i) {text} y = Concat <axis = 0> (u, u) }}""",
        opset=opset,
    )
    run_pass(PASS, module)
    assert op_types(module) == ["Shape", "Gather", "Concat"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("g = Gather(x, i) y = Unsqueeze(g, b)", "not certain to insert the axis"),
        ("g = Gather(x, i) y = Reshape(g, s)", "not certain to insert the axis"),
        ("g = Gather(x, i) z = Neg(g) y = Unsqueeze(g, a)", "has other readers"),
    ],
)
def test_others_stay(text: str, reason: str) -> None:
    module = inferred(
        f"""g (float[3,4] x) => (float[a,b] y)
        <int64 i = {{1}}, int64[1] a = {{0}}, int64[1] b = {{1}}, int64[2] s = {{2, 2}}>
        {{ {text} }}"""
    )
    check_unchanged(PASS, module, reason)


@pytest.mark.parametrize("index", ["int64 i", "int64[1] i"])
def test_indices_that_are_computed_or_lists_are_no_candidates(index: str) -> None:
    module = inferred(f"""g (float[3,4] x, {index}) => (float y) <int64[1] a = {{0}}> {{
        g = Gather(x, i) y = Unsqueeze(g, a) }}""")
    check_unchanged(PASS, module)


def test_it_works_in_bodies() -> None:
    module = inferred("""g (bool c, float[2] x) => (float[1] y) <int64 i = {1}, int64[1] a = {0}> {
        y = If(c) <then_branch = t () => (float[1] u) { g = Gather(x, i) u = Unsqueeze(g, a) },
                   else_branch = e () => (float[1] v) { v = Gather(x, a) }> }""")
    check_values(PASS, module, {"c": np.array(True), "x": np.float32([1, np.nan])})
    assert not any(op.name == "onnx.Unsqueeze" for op in module.walk())


def test_attributes_that_are_parameters_of_a_function_stay() -> None:
    module = inferred("""g (float[3,4] x) => (float y) { y = local.f <p = 0> (x) }
    <opset_import: ["" : 21], domain: "local"> f <p> (x) => (y) {
        i = Constant <value_int = 1> () a = Constant <value_ints = [0]> ()
        g = Gather <axis: int = @p> (x, i) y = Unsqueeze(g, a) }""")
    check_unchanged(PASS, module)
