"""flatten-concats: which nested Concats join along the same axis."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.flatten_concats import FlattenConcats
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    from_onnx,
    nodes,
    op_types,
    parse,
    run_pass,
)

PASS = FlattenConcats()


def inferred(text: str, opset: int = 21) -> ModuleOp:
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def test_the_form_of_it() -> None:
    text = """%b = onnx.Concat(%y, %z) {axis = 0 : i64} : tensor<4x3xf32>
    %c = onnx.Concat(%x, %b, %y) {axis = 0 : i64} : tensor<8x3xf32>
    return(%c)"""
    after = """%c = onnx.Concat(%x, %y, %z, %y) {axis = 0 : i64} : tensor<8x3xf32>
    return(%c)"""
    inputs = "%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x3xf32>"
    check_pass(PASS, parse(text, inputs), parse(after, inputs))


NESTED = [
    ("b = Concat <axis = 1> (x, y) c = Concat <axis = 1> (b, x)", 3),
    ("b = Concat <axis = 1> (x, y) c = Concat <axis = -1> (y, b)", 3),
    ("a = Concat <axis = -1> (x, y) b = Concat <axis = 1> (a) c = Concat <axis = 1> (b, x)", 3),
    (
        "a = Concat <axis = 1> (x, y) b = Concat <axis = 1> (y, y) "
        "d = Concat <axis = 1> (b, x, a) c = Concat <axis = 1> (y, d, x)",
        7,
    ),
]


@pytest.mark.parametrize("rows", [2, 0])
@pytest.mark.parametrize("opset", [4, 11, 21])
@pytest.mark.parametrize(("text", "parts"), NESTED)
def test_values_are_the_same_bits(text: str, parts: int, opset: int, rows: int) -> None:
    if opset == 4 and "-1" in text:
        text = text.replace("-1", "1")
    module = inferred(f"g (float[N,2] x, float[N,1] y) => (float[N,K] c) {{ {text} }}", opset)
    x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
    check_values(PASS, module, {"x": x, "y": np.full((rows, 1), -0.0, np.float32)})
    (left,) = nodes(module)
    assert left.op_type == "Concat"
    assert len(left.operands) == parts
    assert result_names(left) == ("c",)


def test_the_axis_that_version_1_leaves_out() -> None:
    module = inferred(
        """g (float[2,3] x) => (float[2,9] c) {
        a = Concat(x, x) b = Concat <axis = 1> (x, a) c = Neg(b) }""",
        opset=3,
    )
    run_pass(PASS, module)
    assert op_types(module) == ["Concat", "Neg"]


def test_one_axis_of_an_unknown_rank() -> None:
    text = """g (float[2] d, int64[K] s) => (float c) {{
        x = Reshape(d, s) a = Concat <axis = 1> (x, x) c = Concat <axis = {}> (x, a) }}"""
    module = inferred(text.format(1))
    check_values(PASS, module, {"d": np.float32([1, 2]), "s": np.array([1, 2])})
    assert op_types(module) == ["Reshape", "Concat"]
    check_unchanged(PASS, inferred(text.format(-1)), "axes -1 and 1 may differ")


KEPT = [
    ("a = Concat <axis = 0> (x, x) c = Concat <axis = 1> (a, z)", "along axis 1, and the Concat"),
    ("a = Concat <axis = 0> (x, x) c = Concat <axis = 0> (a, a)", "is read more than once"),
]


@pytest.mark.parametrize(("text", "reason"), KEPT)
def test_others_stay(text: str, reason: str) -> None:
    module = inferred(f"g (float[2,2] x, float[4,2] z) => (float c) {{ {text} }}")
    check_unchanged(PASS, module, reason)


def test_outputs_and_what_others_read_stay() -> None:
    for outputs in ("float[4] a, float[6] c", "float[6] c, float[4] n"):
        module = inferred(f"""g (float[2] x) => ({outputs}) {{
            a = Concat <axis = 0> (x, x) n = Neg(a) c = Concat <axis = 0> (a, x) }}""")
        check_unchanged(PASS, module, "is an output, or is read more than once")


def test_what_stays_ends_the_nesting() -> None:
    module = inferred("""g (float[2] x) => (float[8] c, float[4] n) {
        a = Concat <axis = 0> (x, x) n = Neg(a) b = Concat <axis = 0> (a, x)
        c = Concat <axis = 0> (x, b) }""")
    context = run_pass(PASS, module)
    assert [len(op.operands) for op in nodes(module)] == [2, 1, 3]
    assert [r.kind for r in context.remarks].count("applied") == 1


def test_a_long_chain_is_joined_once() -> None:
    count = 300
    chain = " ".join(f"c{k + 1} = Concat <axis = 0> (c{k}, x)" for k in range(count))
    module = inferred(f"g (float[1] x) => (float[N] y) {{ c0 = Neg(x) {chain} y = Abs(c{count}) }}")
    context = run_pass(PASS, module)
    assert op_types(module) == ["Neg", "Concat", "Abs"]
    assert len(nodes(module)[1].operands) == count + 1
    assert [r.kind for r in context.remarks] == ["applied"]


def test_it_works_in_bodies_and_functions() -> None:
    module = inferred("""g (bool c, float[2] x) => (float[6] y) {
        o = Concat <axis = 0> (x, x)
        y = If(c) <then_branch = t () => (float[6] u) { u = Concat <axis = 0> (x, o) },
                   else_branch = e () => (float[6] v) { v = local.f(x) }>
    }
    <opset_import: ["" : 21], domain: "local"> f (p) => (q) {
        r = Concat <axis = 0> (p, p) q = Concat <axis = 0> (r, p) }""")
    for c in (True, False):
        feed = {"c": np.array(c), "x": np.float32([1, np.nan])}
        check_values(PASS, module.clone(), feed)
    run_pass(PASS, module)
    assert [len(op.operands) for op in module.walk() if op.name == "onnx.Concat"] == [3, 3]


def test_attributes_that_are_parameters_of_a_function_stay() -> None:
    module = inferred("""g (float[3,4] x) => (float y) { y = local.f <p = 0> (x) }
    <opset_import: ["" : 21], domain: "local"> f <p> (x) => (y) {
        a = Concat <axis = 0> (x, x) y = Concat <axis: int = @p> (a, x) }""")
    check_unchanged(PASS, module, "is a parameter of the function")
