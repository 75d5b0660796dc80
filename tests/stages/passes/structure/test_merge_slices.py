"""merge-slices: slices of slices along other axes."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.merge_slices import MergeSlices
from foldline.stages.passes.structure.slices_to_split import SlicesToSplit
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

PASS = MergeSlices()
BOUNDS = """<int64[1] o = {0}, int64[1] p = {1}, int64[1] m = {-1}, int64[1] t = {2},
    int64[1] h = {9223372036854775807}, int64[2] v = {0, 2}, int64[2] w = {9, -1}>"""


def inferred(text: str, opset: int = 21) -> ModuleOp:
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def test_the_form_of_it() -> None:
    text = f"""%o = {constant([0])}
    %p = {constant([1])}
    %t = {constant([2])}
    %a = onnx.Slice(%x, %o, %p, %o) : tensor<1x3xf32>
    %b = onnx.Slice(%a, %o, %t, %p) : tensor<1x2xf32>
    return(%b)"""
    after = f"""%s = {constant([0, 0])}
    %e = {constant([1, 2])}
    %a = {constant([0, 1])}
    %b = onnx.Slice(%x, %s, %e, %a) : tensor<1x2xf32>
    return(%b)"""
    check_pass(PASS, parse(text), parse(after))


CHAINS = [
    "a = Slice(x, p, h, o) y = Slice(a, o, m, t)",
    "a = Slice(x, o, h, m, t) y = Slice(a, p, t, p)",
    "a = Slice(x, p, h, t, t) y = Slice(a, m, o, p, m)",
    "a = Slice(x, o, t, p) b = Slice(a, p, h, t) y = Slice(b, p, h, o)",
    "a = Slice(x, v, w) y = Slice(a, p, h, t)",
    "a = Slice(x, p, p, p) y = Slice(a, o, m, t)",
]


@pytest.mark.parametrize("rows", [3, 0])
@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("text", CHAINS)
def test_values_are_the_same_bits(text: str, opset: int, rows: int) -> None:
    module = inferred(f"g (float[N,4,5] x) => (float[a,b,c] y) {BOUNDS} {{ {text} }}", opset)
    check_values(PASS, module, {"x": np.arange(rows * 20, dtype=np.float32).reshape(rows, 4, 5)})
    assert op_types(module) == ["Slice"]
    assert [result_names(op) for op in nodes(module) if op.op_type == "Slice"] == [("y",)]


def test_bounds_that_are_attributes() -> None:
    module = inferred(
        """g (float[N,4] x) => (float[a,b] y) {
        a = Slice <starts = [1], ends = [9]> (x)
        y = Slice <starts = [-2], ends = [4], axes = [1]> (a) }""",
        opset=9,
    )
    check_values(PASS, module, {"x": np.arange(12, dtype=np.float32).reshape(3, 4)})
    assert op_types(module) == ["Slice"]


KEPT = [
    ("a = Slice(x, o, t, p) y = Slice(a, p, h, p)", "an axis of [1] is one of [1]"),
    ("a = Slice(x, o, t, m) y = Slice(a, p, h, t)", "an axis of [2] is one of [-1]"),
    ("a = Slice(x, o, d, p) y = Slice(a, p, h, t)", "bounds are not constant"),
    ("a = Slice(x, o, t, p) y = Slice(a, p, h, t) z = Neg(a)", "has other readers"),
    ("r = Reshape(x, e) a = Slice(r, o, t, p) y = Slice(a, p, h, t)", "the rank is not known"),
]


@pytest.mark.parametrize(("text", "reason"), KEPT)
def test_others_stay(text: str, reason: str) -> None:
    module = inferred(f"""g (float[N,4,5] x, int64[1] d, int64[K] e) => (float y)
    {BOUNDS} {{ {text} }}""")
    check_unchanged(PASS, module, reason)


def test_what_is_between_may_be_an_output() -> None:
    module = inferred(f"""g (float[N,4,5] x) => (float[a,b,c] y, float[d,e,f] a) {BOUNDS} {{
        a = Slice(x, o, t, p) y = Slice(a, p, h, t) }}""")
    check_unchanged(PASS, module, "has other readers")


def test_slices_that_tile_an_axis_are_for_split() -> None:
    module = inferred(f"""g (float[N,4,5] x) => (float[a,b,c] y, float[d,e,f] z) {BOUNDS} {{
        a = Slice(x, o, t, p) b = Slice(x, t, h, p) y = Slice(a, p, h, t) z = Neg(b) }}""")
    context = PassContext(module)
    Traversal(context, [SlicesToSplit().visitor(context), PASS.visitor(context)]).run()
    assert op_types(module) == ["Split", "Slice", "Neg"]


def test_it_works_in_bodies() -> None:
    module = inferred(f"""g (bool c, float[3,4,5] x) => (float[a,b,c] y) {BOUNDS} {{
        y = If(c) <then_branch = t () => (float[d,e,f] u) {{
                       a = Slice(x, o, t, p) u = Slice(a, p, h, t) }},
                   else_branch = e () => (float[g,h,i] k) {{ k = Neg(x) }}> }}""")
    feed = {"c": np.array(True), "x": np.arange(60, dtype=np.float32).reshape(3, 4, 5)}
    check_values(PASS, module, feed)
    assert sum(op.name == "onnx.Slice" for op in module.walk()) == 1


def test_parameters_of_a_function_are_no_constants() -> None:
    module = inferred(
        """g (float[3,4] x) => (float y) { y = local.f <p = [1]> (x) }
    <opset_import: ["" : 9], domain: "local"> f <p> (x) => (y) {
        a = Slice <starts = [0], ends: ints = @p> (x)
        y = Slice <starts = [0], ends = [1], axes = [1]> (a) }""",
        opset=9,
    )
    check_unchanged(PASS, module, "bounds are not constant")


def test_a_slice_that_went_is_forgotten() -> None:
    module = inferred(f"""g (float[3,4,5] x) => (float[a,b,c] y) {BOUNDS} {{
        a = Slice(x, o, t, p) b = Slice(a, p, h, t) y = Slice(b, p, h, o) }}""")
    context = run_pass(PASS, module)
    assert [r.kind for r in context.remarks] == ["applied", "applied"]
