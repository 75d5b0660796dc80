"""replace-with-empty-const: what holds no element needs no computation."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import (
    FullyKnown,
    get_fact,
    keep,
    mark_inserted,
    set_fact,
    set_no_need,
)
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import with_dims
from foldline.stages.context import PassContext
from foldline.stages.folding.known import mark_of
from foldline.stages.passes.folding.replace_with_empty_const import ReplaceWithEmptyConst
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    named,
    nodes,
    op_types,
    parse,
)

PASS = ReplaceWithEmptyConst()
MARK = ReplaceWithEmptyConst(mark_only=True)
INPUT = "%x: tensor<1x0x8x8xf32>"


def inferred(text: str) -> ModuleOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    return module


def cast() -> ModuleOp:
    return parse(
        """%a = onnx.Cast(%x) {to = 10 : i64} : tensor<1x0x8x8xf16>
        %y = onnx.ReduceSum(%a) {keepdims = 0 : i64} : tensor<f16>
        return(%y)""",
        INPUT,
    )


def test_row_40_an_empty_result_is_an_empty_constant() -> None:
    after = parse(
        f"""%a = {constant(np.zeros((1, 0, 8, 8)), np.float16)}
        %y = onnx.ReduceSum(%a) {{keepdims = 0 : i64}} : tensor<f16>
        return(%y)""",
        INPUT,
    )
    context = check_pass(PASS, cast(), after)
    assert [r.message for r in context.remarks] == ["computed float16[1, 0, 8, 8]"]
    module = inferred(
        """g (float[0, 4] x) => (float[1, 4] y) <int64[1] axes = {0}> {
        a = Neg(x) y = ReduceSum(a, axes) }"""
    )
    check_values(PASS, module, {"x": np.zeros((0, 4), np.float32)})


def test_row_44_mark_only_marks_and_unmarks() -> None:
    module = cast()
    MARK.run(PassContext(module))
    op = nodes(module)[0]
    mark = mark_of(op)
    assert mark is not None
    assert mark.source == "replace-with-empty-const"
    assert mark.tensors == (TensorAttr.of(np.zeros((1, 0, 8, 8), np.float16)),)
    assert op_types(module) == ["Cast", "ReduceSum"]
    # The type changes behind the rewriter's back: the pass itself has to notice.
    other = with_dims(op.results[0].type, (1, 3, 8, 8))
    op.results[0]._type = other  # pyright: ignore[reportPrivateUsage]
    MARK.run(PassContext(module))
    assert mark_of(op) is None


def test_row_45_the_mark_of_another_pass_stays() -> None:
    module = from_onnx("g (float[2] x) => (int64[1] y) { [s] s = Shape(x) y = Neg(s) }")
    InferShapes().run(PassContext(module))
    fact = FullyKnown(TensorAttr.of(np.int64([2])), "dimension-compute")
    set_fact(named(module, "s").results[0], fact)
    for given in (PASS, MARK):
        check_unchanged(given, module)
        assert get_fact(named(module, "s").results[0]) == fact


ALONE = {
    "row_40_another_result_than_an_empty_one": (
        "g (float[0, 4] x) => (float[4] y) { a = ReduceSum<keepdims = 0>(x) y = Neg(a) }"
    ),
    "row_46_two_results_of_which_one_is_empty": """g (float[3] x) => (float[3] y, float z)
        <int64[2] s = {3, 0}> {
        a, b = Split(x, s) y = Neg(a) z = ReduceSum<keepdims = 0>(b) }""",
    "random_numbers": """g () => (float y) {
        a = RandomNormal<shape = [0, 2]>() y = ReduceSum<keepdims = 0>(a) }""",
    "a_result_of_unknown_shape": """g (float[m, 0] z) => (float y) {
        a = Neg(z) y = ReduceSum<keepdims = 0>(a) }""",
    "a_scalar": "g (float x) => (float y) { a = Neg(x) y = Abs(a) }",
    "a_constant": "g (float[0] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }",
    "a_sequence": """g (float[0] x) => (float[0] y) {
        s = SequenceConstruct(x) y = ConcatFromSequence<axis = 0>(s) }""",
}


def test_row_41_a_node_with_bodies_stays_and_what_is_in_them_goes() -> None:
    module = inferred("""g (bool c, float[0] x) => (float y) {
        a = If(c) <then_branch = t () => (float[0] u) { u = Neg(x) },
                   else_branch = e () => (float[0] v) { v = Abs(x) }>
        y = ReduceSum<keepdims = 0>(a) }""")
    PASS.run(PassContext(module))
    assert op_types(module) == ["If", "ReduceSum"]
    assert not [op for op in module.walk() if op.name in ("onnx.Neg", "onnx.Abs")]


@pytest.mark.parametrize("text", ALONE.values(), ids=ALONE.keys())
def test_it_leaves_alone(text: str) -> None:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module)
    check_unchanged(MARK, module)
    assert not any(mark_of(op) for op in module.walk() if op.name != "onnx.ConcatFromSequence")


def test_custom_operators_stay() -> None:
    module = parse(
        """%b = onnx.custom(%x) {domain = #onnx.text<"local">, op_type = #onnx.text<"Foo">,
            given = {}} : tensor<0x2xi64>
        %y = onnx.Size(%b) : tensor<i64>
        return(%y)"""
    )
    check_unchanged(PASS, module)


def test_row_42_what_a_pass_inserted_stays() -> None:
    module = cast()
    mark_inserted(nodes(module)[0])
    context = check_unchanged(PASS, module)
    assert not len(context.remarks)


def test_what_is_kept_stays_without_a_mark() -> None:
    module = cast()
    MARK.run(PassContext(module))
    keep(nodes(module)[0])
    check_unchanged(MARK, module, "fold.keep is set")
    assert mark_of(nodes(module)[0]) is None
    module = cast()
    set_no_need(nodes(module)[0], "test")
    check_unchanged(PASS, module, "a pass keeps it: test")
    check_unchanged(ReplaceWithEmptyConst(skip=("op:Cast",)), cast(), "fold.skip has 'op:Cast'")


def test_what_names_an_output_is_marked_only() -> None:
    text = "%y = onnx.Neg(%x) : tensor<1x0x8x8xf32> return(%y)"
    module = parse(text, INPUT)
    check_unchanged(PASS, module, "it names the output 'y' of the model")
    assert mark_of(nodes(module)[0]) is not None
    after = parse(f"%y = {constant(np.zeros((1, 0, 8, 8)), np.float32)} return(%y)", INPUT)
    check_pass(ReplaceWithEmptyConst(graph_outputs=True), parse(text, INPUT), after)


@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "i1", "ui8", "!onnx.string"])
def test_every_element_type(element: str) -> None:
    module = parse(
        f"""%a = onnx.Identity(%x) : tensor<0x2x{element}>
        %y = onnx.Size(%a) : tensor<i64>
        return(%y)""",
        f"%x: tensor<0x2x{element}>",
    )
    PASS.run(PassContext(module))
    assert op_types(module) == ["Size"]
    made = nodes(module)[0].results[0]
    assert made.type == nodes(module)[1].operands[0].type


def test_a_type_that_no_constant_holds_here_stays() -> None:
    module = parse(
        """%a = onnx.Identity(%x) : tensor<0xbf16>
        %y = onnx.Size(%a) : tensor<i64>
        return(%y)""",
        "%x: tensor<0xbf16>",
        opset=12,
    )
    PASS.run(PassContext(module))
    assert op_types(module) == ["Identity", "Size"]
