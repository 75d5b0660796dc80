"""stack-to-reshape: where the axis goes, and which targets are constant."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.stack_to_reshape import StackToReshape
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    nodes,
    op_types,
    parse,
)

PASS = StackToReshape()


def stack(dims: str, axis: int, opset: int = 21, extra: str = "") -> ModuleOp:
    """Two inputs of these dims stacked along `axis`; the second dims are those of the first."""
    rank = len(dims.split(","))
    if opset < 13:
        parts = "".join(f"{u} = Unsqueeze <axes = [{axis}]> ({x}) " for u, x in ("ax", "by"))
    else:
        parts = f"k = Constant <value_ints = [{axis}]> () a = Unsqueeze(x, k) b = Unsqueeze(y, k) "
    result = ",".join("pqrst"[: rank + 1])
    module = from_onnx(
        f"""g (float[{dims}] x, float[{dims}] y) => (float[{result}] z) {{
        {parts} {extra} z = Concat <axis = {axis}> (a, b) }}""",
        opset=opset,
    )
    InferShapes().run(PassContext(module))
    return module


def test_the_form_of_it() -> None:
    text = f"""%k = {constant([0])}
    %a = onnx.Unsqueeze(%x, %k) : tensor<1x2x3xf32>
    %b = onnx.Unsqueeze(%y, %k) : tensor<1x2x3xf32>
    %z = onnx.Concat(%a, %b) {{axis = 0 : i64}} : tensor<2x2x3xf32>
    return(%z)"""
    after = f"""%c = onnx.Concat(%x, %y) {{axis = 0 : i64}} : tensor<*xf32>
    %s = {constant([2, 2, 3])}
    %z = onnx.Reshape(%c, %s) : tensor<2x2x3xf32>
    return(%z)"""
    inputs = "%x: tensor<2x3xf32>, %y: tensor<2x3xf32>"
    check_pass(PASS, parse(text, inputs), parse(after, inputs))


@pytest.mark.parametrize(
    ("dims", "axis", "shape"),
    [
        ("2,3", 0, (2, 3)),
        ("2,3", 1, (2, 3)),
        ("2,3", -2, (2, 3)),
        ("N,3", 1, (2, 3)),
        ("N,3", 1, (0, 3)),
        ("N,3", 0, (4, 3)),
        ("N,3", 0, (0, 3)),
        ("N,M,3", 2, (2, 0, 3)),
        ("N,1", 2, (3, 1)),
        ("1", 1, (1,)),
    ],
)
@pytest.mark.parametrize("opset", [8, 21])
def test_values_are_the_same_bits(dims: str, axis: int, shape: tuple[int, ...], opset: int) -> None:
    axis = axis if opset == 21 else axis % (len(shape) + 1)
    module = stack(dims, axis, opset)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    check_values(PASS, module, {"x": x, "y": -x})
    assert op_types(module) == ["Concat", "Reshape"]
    assert [result_names(op) for op in nodes(module) if op.op_type == "Reshape"] == [("z",)]


@pytest.mark.parametrize(
    ("dims", "axis", "reason"),
    [
        ("2,3", 2, "interleaves"),
        ("N,3,M", 1, "leaves no constant target"),
        ("N,M", 0, "leaves no constant target"),
        ("0,3", 0, "leaves no constant target"),
    ],
)
def test_others_stay(dims: str, axis: int, reason: str) -> None:
    check_unchanged(PASS, stack(dims, axis), reason)


def test_nodes_must_get_fewer() -> None:
    module = stack("2,3", 0, extra="c = Neg(a)")
    check_unchanged(PASS, module, "only 1 of its parts would go")


def test_one_part_twice() -> None:
    module = from_onnx("""g (float[2] x, float[2] y) => (float[3,2] z) <int64[1] k = {0}> {
        a = Unsqueeze(x, k) b = Unsqueeze(y, k) z = Concat <axis = 0> (a, b, a) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": np.float32([1, 2]), "y": np.float32([3, 4])})
    assert op_types(module) == ["Concat", "Reshape"]


def test_scalars_and_other_axes_stay() -> None:
    text = """g (float{0} x, float{0} y) => (float z) <int64[1] k = {{0}}> {{
        a = Unsqueeze(x, k) b = Unsqueeze(y, k) z = Concat <axis = {1}> (a, b) }}"""
    for dims, axis, reason in (("", 0, "interleaves"), ("[2]", 1, "not unsqueezed along the axis")):
        module = from_onnx(text.format(dims, axis))
        InferShapes().run(PassContext(module))
        check_unchanged(PASS, module, reason)


def test_it_works_in_bodies() -> None:
    module = from_onnx("""g (bool c, float[2] x) => (float[2,2] y) <int64[1] k = {0}> {
        y = If(c) <then_branch = t () => (float[2,2] u) {
                       a = Unsqueeze(x, k) n = Neg(x) b = Unsqueeze(n, k)
                       u = Concat <axis = 0> (a, b) },
                   else_branch = e () => (float[2,2] v) {
                       d = Unsqueeze(x, k) v = Concat <axis = 0> (d, d) }> }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"c": np.array(True), "x": np.float32([1, 2])})
    assert sum(op.name == "onnx.Reshape" for op in module.walk()) == 1


def inferred(text: str) -> ModuleOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    return module


def test_attributes_that_are_parameters_of_a_function_stay() -> None:
    module = inferred("""g (float[3,4] x) => (float y) { y = local.f <p = 0> (x) }
    <opset_import: ["" : 21], domain: "local"> f <p> (x) => (y) {
        a = Constant <value_ints = [0]> ()
        u = Unsqueeze(x, a) v = Unsqueeze(x, a) y = Concat <axis: int = @p> (u, v) }""")
    check_unchanged(PASS, module)
