"""cancel-transposes: permutations compose, and what moves nothing goes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import node_name, result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.cleanup.cancel_transposes import CancelTransposes
from foldline.stages.passes.shapes.infer_shapes import InferShapes
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

PASS = CancelTransposes()
ORDERS = list(permutations(range(3)))
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("first", ORDERS)
@pytest.mark.parametrize("second", ORDERS)
def test_two_are_one_or_none(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    module = from_onnx(f"""g (float[2,3,4] x) => (float[a,b,c] y) {{
        t = Transpose <perm = {list(first)}> (x)
        u = Transpose <perm = {list(second)}> (t) y = Neg(u)
    }}""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": X})
    undone = [first[axis] for axis in second] == [0, 1, 2]
    assert op_types(module) == (["Neg"] if undone else ["Transpose", "Neg"])


def test_the_default_reverses_axes() -> None:
    module = from_onnx("""g (float[2,3] x) => (float[2,3] y) {
        t = Transpose(x) u = Transpose(t) y = Neg(u) }""")
    InferShapes().run(PassContext(module))
    run_pass(PASS, module)
    assert op_types(module) == ["Neg"]


def test_a_transpose_with_other_readers_stays_for_them() -> None:
    module = from_onnx("""g (float[2,3] x) => (float[2,3] y, float[3,2] z) {
        t = Transpose <perm = [1,0]> (x) u = Transpose <perm = [1,0]> (t)
        y = Neg(u) z = Neg(t) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": X[:, :, 0]})
    assert op_types(module) == ["Transpose", "Neg", "Neg"]


def test_axes_of_size_1_may_change_places_among_themselves() -> None:
    text = "%a = onnx.Transpose(%x) {perm = array<i64: 2, 1, 0>} : tensor<1x?x1xf32>\n"
    inputs = "%x: tensor<1x?x1xf32>"
    rest = "%y = onnx.Neg({}) : tensor<1x?x1xf32>\nreturn(%y)"
    after = parse(rest.format("%x"), inputs)
    check_pass(PASS, parse(text + rest.format("%a"), inputs), after)


@pytest.mark.parametrize("dims", ["1x1x5", "?x2x?", "5x1x1"])
def test_other_axes_stay(dims: str) -> None:
    a, b, c = dims.split("x")
    text = f"%a = onnx.Transpose(%x) {{perm = array<i64: 0, 2, 1>}} : tensor<{a}x{c}x{b}xf32>\n"
    module = parse(
        f"{text}%y = onnx.Neg(%a) : !onnx.unknown\nreturn(%y)", f"%x: tensor<{dims}xf32>"
    )
    if dims == "5x1x1":
        run_pass(PASS, module)
        assert op_types(module) == ["Neg"]
    else:
        check_unchanged(PASS, module)


def test_an_unknown_rank_stays() -> None:
    text = "%a = onnx.Transpose(%x) : tensor<*xf32>\nreturn(%a)"
    check_unchanged(PASS, parse(text, "%x: tensor<*xf32>"), "its permutation is not known")


@pytest.mark.parametrize(("target", "reads"), [([-1, 6], True), ([0, 6], False)])
def test_a_reshape_reads_past_one_that_moves_axes_of_size_1(target: list[int], reads: bool) -> None:
    text = f"""%s = {constant(target)}
    %a = onnx.Transpose(%x) {{perm = array<i64: 0, 2, 3, 1>}} : tensor<?x2x3x1xf32>
    %y = onnx.Reshape(%a, %s) : tensor<?x6xf32>
    return(%y)"""
    inputs = "%x: tensor<?x1x2x3xf32>"
    before = parse(text, inputs)
    if reads:
        after = f"%s = {constant(target)}\n%y = onnx.Reshape(%x, %s) : tensor<?x6xf32>\nreturn(%y)"
        check_pass(PASS, before, parse(after, inputs))
    else:
        check_unchanged(PASS, before, "copies a size")


def test_a_reshape_of_axes_that_move_stays() -> None:
    text = f"""%s = {constant([-1])}
    %a = onnx.Transpose(%x) {{perm = array<i64: 1, 0>}} : tensor<3x?xf32>
    %y = onnx.Reshape(%a, %s) : tensor<?xf32>
    return(%y)"""
    check_unchanged(PASS, parse(text, "%x: tensor<?x3xf32>"))


def test_names_are_those_of_the_last() -> None:
    module = from_onnx("""g (float[2,3,4] x) => (float[4,2,3] y) {
        [one] t = Transpose <perm = [1,0,2]> (x) [two] y = Transpose <perm = [2,1,0]> (t) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": X})
    (op,) = nodes(module)
    assert (node_name(op), result_names(op)) == ("two", ("y",))


def test_an_output_that_is_an_input_keeps_one_that_moves_nothing() -> None:
    module = from_onnx("""g (float[2,3] x) => (float[2,3] y) {
        t = Transpose <perm = [1,0]> (x) y = Transpose <perm = [1,0]> (t) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": X[:, :, 0]})
    assert op_types(module) == ["Transpose"]


def test_zero_sizes_and_bodies() -> None:
    module = from_onnx("""g (bool c, float[N,0] x) => (float[N,0] y) {
        t = Transpose <perm = [1,0]> (x)
        y = If(c) <then_branch = a () => (float[N,0] u) {
                       p = Transpose <perm = [1,0]> (t) u = Neg(p) },
                   else_branch = b () => (float[N,0] v) { v = Abs(x) }> }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"c": np.array(True), "x": np.empty((2, 0), np.float32)})
    assert not any(op.name == "onnx.Transpose" for op in module.walk())


def inferred(text: str) -> ModuleOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    return module


def test_attributes_that_are_parameters_of_a_function_stay() -> None:
    module = inferred("""g (float[3,4] x) => (float y) { y = local.f <p = [1, 0]> (x) }
    <opset_import: ["" : 21], domain: "local"> f <p> (x) => (y) {
        t = Transpose <perm: ints = @p> (x) y = Transpose <perm: ints = @p> (t) }""")
    check_unchanged(PASS, module)
