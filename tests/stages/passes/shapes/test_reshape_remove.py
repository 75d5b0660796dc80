"""reshape-remove: equal shapes, known or symbolic, and chains."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.dialects.onnx.shape import ReshapeOp
from foldline.exporter import export_model
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
    values,
)

PASS = ReshapeRemove()


def inferred(text: str, opset: int = 21) -> ModuleOp:
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def targets(module: ModuleOp) -> list[list[int]]:
    """The constant targets of the Reshapes, in order."""
    found = [op.target() for op in module.walk() if isinstance(op, ReshapeOp)]
    return [list(target.dims) for target in found if target is not None]


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
    other = inferred(text.format("4, -1"))
    check_values(PASS, other, {"x": np.arange(24, dtype=np.float32).reshape(3, 4, 2)})
    assert op_types(other) == ["Reshape", "Neg"]
    assert targets(other) == [[4, 2, -1]]
    unknown = inferred("""g (float[N,4] x, int64[2] d) => (float[a,b,c] y)
    <int64[3] s = {0, 2, -1}> { u = Reshape(x, d) y = Reshape(u, s) }""")
    check_unchanged(PASS, unknown, "copies a size that is not the same")


CHAINS = [
    # A size that stands where it stood is copied; a -1 of the model stays in its place.
    ("x", "u = Flatten(x) y0 = Unsqueeze(u, z)", [0, 8, 1]),
    ("x", "u = Reshape(x, f) y0 = Unsqueeze(u, z)", [-1, 8, 1]),
    ("x", "u = Reshape(x, f) y0 = Unsqueeze(u, a)", [1, -1, 8]),
    ("x", "u = Unsqueeze(x, a) v = Flatten <axis = 2> (u) y0 = Unsqueeze(v, z)", [0, 8, 1]),
    ("x", "u = Unsqueeze(x, a) y0 = Unsqueeze(u, z)", [1, -1, 4, 2, 1]),
    ("x", "u = Reshape(x, o) y0 = Squeeze(u, q)", [-1, 8]),
    ("x", "u = Reshape(x, o) v = Flatten <axis = 0> (u) y0 = Squeeze(v, a)", [-1]),
    # What a -1 stood for has no number.
    ("p", "u = Reshape(p, l) y0 = Unsqueeze(u, z)", [0, -1, 1]),
    ("p", "u = Reshape(p, r) y0 = Unsqueeze(u, a)", [1, -1, 4]),
]


@pytest.mark.parametrize("rows", [3, 0])
@pytest.mark.parametrize(("source", "text", "target"), CHAINS)
def test_a_chain_becomes_one_reshape(source: str, text: str, target: list[int], rows: int) -> None:
    module = inferred(
        f"""g (float[N,4,2] x, float[N,M,4] p) => (float y)
        <int64[2] f = {{-1, 8}}, int64[4] o = {{1, -1, 1, 8}}, int64[2] q = {{0, 2}},
        int64[2] l = {{0, -1}}, int64[2] r = {{-1, 4}}, int64[1] z = {{-1}}, int64[1] a = {{0}}>
        {{ {text} y = Neg(y0) }}"""
    )
    if source == "p" and target[0] == 0:
        rows = 3  # Beside a size of 0 no runtime knows what is left over, before and after.
    x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 4, 2)
    p = np.arange(rows * 20, dtype=np.float32).reshape(rows, 5, 4)
    check_values(PASS, module, {"x": x, "p": p})
    assert op_types(module) == ["Reshape", "Neg"]
    assert targets(module) == [target]


def test_the_form_of_a_chain() -> None:
    text = f"""%d = {constant([-1, 6])}
    %k = {constant([2])}
    %a = onnx.Reshape(%x, %d) : tensor<?x6xf32>
    %y = onnx.Unsqueeze(%a, %k) : tensor<?x6x1xf32>
    return(%y)"""
    after = f"""%s = {constant([-1, 6, 1])}
    %y = onnx.Reshape(%x, %s) : tensor<?x6x1xf32>
    return(%y)"""
    inputs = '%x: tensor<?x2x3xf32, #onnx.dims<"N", _, _>>'
    check_pass(PASS, parse(text, inputs), parse(after, inputs))


@pytest.mark.parametrize("opset", [4, 9, 12])
def test_chains_in_old_operator_sets(opset: int) -> None:
    module = inferred(
        """g (float[N,4] x) => (float[a,b,c,d] y) {
        u = Unsqueeze <axes = [0]> (x) y0 = Unsqueeze <axes = [3]> (u) y = Neg(y0) }""",
        opset=opset,
    )
    run_pass(PASS, module)
    assert op_types(module) == ["Reshape", "Neg"]
    assert targets(module) == [[1, -1, 4, 1]]
    onnx.checker.check_model(export_model(module), full_check=True)
    if opset > 4:
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        np.testing.assert_array_equal(values(module, {"x": x})[0], -x[None, :, :, None])


def test_a_constant_that_cannot_be_said_is_not_needed() -> None:
    module = inferred(
        """g (float[N,4] x) => (float[a,b,c,d] y) {
        u = Unsqueeze <axes = [0]> (x) y = Unsqueeze <axes = [3]> (u) }""",
        opset=8,
    )
    check_unchanged(PASS, module, "Constant of operator set 8 cannot hold int64")


KEPT = [
    ("u = Unsqueeze(x, a) y = Unsqueeze(u, a)", "no constant target of a Reshape says [1, 1, N, M"),
    ("u = Reshape(x, d) y = Unsqueeze(u, a)", "no constant target of a Reshape says [1, "),
    ("u = Flatten(x) y = Unsqueeze(u, a) w = Neg(u)", "it follows Flatten, which has other"),
    ("u = Reshape(x, e) y = Squeeze(u)", "the rank of its result is not known"),
]


@pytest.mark.parametrize(("text", "reason"), KEPT)
def test_chains_that_stay(text: str, reason: str) -> None:
    module = inferred(f"""g (float[N,M,4] x, int64[2] d, int64[K] e) => (float y)
    <int64[1] a = {{0}}> {{ {text} }}""")
    check_unchanged(PASS, module, reason)


def test_what_is_between_may_be_an_output() -> None:
    module = inferred("""g (float[N,4,2] x) => (float[N,8] u, float[N,8,1] y)
    <int64[1] z = {2}> { u = Flatten(x) y = Unsqueeze(u, z) }""")
    check_unchanged(PASS, module, "it follows Flatten, which has other readers")


def test_a_chain_that_others_read_is_shortened_to_there() -> None:
    module = inferred("""g (float[N,4,2] x) => (float[N,8] u, float[N,8,1,1] y)
    <int64[1] z = {2}> { u = Flatten(x) v = Unsqueeze(u, z) y = Unsqueeze(v, z) }""")
    check_values(PASS, module, {"x": np.arange(24, dtype=np.float32).reshape(3, 4, 2)})
    assert op_types(module) == ["Flatten", "Reshape"]
    assert targets(module) == [[0, 8, 1, 1]]
    assert [result_names(op) for op in nodes(module) if op.op_type == "Reshape"] == [("y",)]


def test_the_earliest_value_that_has_a_target() -> None:
    """From x no constant leads there; from the first Unsqueeze of it one does."""
    module = inferred("""g (float[N,M,4] x) => (float y) <int64[1] a = {0}, int64[1] z = {-1}> {
        u = Unsqueeze(x, a) v = Unsqueeze(u, z) w = Unsqueeze(v, z) y = Neg(w) }""")
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    check_values(PASS, module, {"x": x})
    assert op_types(module) == ["Unsqueeze", "Reshape", "Neg"]
    assert targets(module) == [[1, 0, 0, 4, 1, 1]]


def test_chains_in_bodies() -> None:
    module = inferred("""g (bool c, float[N,4,2] x) => (float[N,8,1] y) <int64[1] z = {2}> {
        f = Flatten(x)
        y = If(c) <then_branch = t () => (float[N,8,1] u) { u = Unsqueeze(f, z) },
                   else_branch = e () => (float[N,8,1] v) {
                       g = Flatten(x) v = Unsqueeze(g, z) }> }""")
    for c in (True, False):
        feed = {"c": np.array(c), "x": np.arange(16, dtype=np.float32).reshape(2, 4, 2)}
        check_values(PASS, module.clone(), feed)
    run_pass(PASS, module)
    assert targets(module) == [[0, 8, 1]] * 2
    assert not any(op.name == "onnx.Flatten" for op in module.walk())


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
