"""dimension-compute: what folds, what is marked, what is noted, what is left alone."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import FullyKnown, PartlyKnown, get_fact, keep, set_no_need
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
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

X = '%x: tensor<?x4x6xf32, #onnx.dims<"N", _, _>>'


def last_sizes() -> ModuleOp:
    return parse(
        f"""%s = onnx.Shape(%x) : tensor<3xi64>
        %i = {constant([1, 2])}
        %g = onnx.Gather(%s, %i) : tensor<2xi64>
        %y = onnx.ConstantOfShape(%g) : tensor<4x6xf32>
        return(%y)""",
        X,
    )


def test_folds_what_is_known() -> None:
    after = parse(
        f"""%s = onnx.Shape(%x) : tensor<3xi64>
        %g = {constant([4, 6])}
        %y = onnx.ConstantOfShape(%g) : tensor<4x6xf32>
        return(%y)""",
        X,
    )
    context = check_pass(DimensionCompute(), last_sizes(), after)
    assert [r.message for r in context.remarks if r.kind == "applied"] == ["computed int64[2]"]


def test_marks_only() -> None:
    module = last_sizes()
    run_pass(DimensionCompute(mark_only=True), module)
    assert op_types(module) == ["Shape", "Gather", "ConstantOfShape"]
    shape, _, gather, _ = nodes(module)
    fact = get_fact(gather.results[0])
    assert isinstance(fact, FullyKnown)
    assert fact.source == "dimension-compute"
    assert fact.value.array.tolist() == [4, 6]
    assert get_fact(shape.results[0]) == PartlyKnown(
        "int64", (3,), ("N", 4, 6), "dimension-compute"
    )


def test_notes_survive_text() -> None:
    module = last_sizes()
    run_pass(DimensionCompute(mark_only=True), module)
    assert '["int64", [3], ["N", 4, 6], "dimension-compute"]' in str(
        nodes(module)[0].attributes["fold.known"]
    )


def test_is_done_once() -> None:
    module = last_sizes()
    run_pass(DimensionCompute(), module)
    check_pass(DimensionCompute(), module, module.clone())


def test_values() -> None:
    module = from_onnx("""g (float[N,4,6] x) => (y, z) {
        s = Shape(x) \n i = Constant<value_int=1>() \n c = Gather(s, i)
        k = Constant<value_int=3>() \n d = Div(c, k) \n m = Mul(d, c) \n a = Cast<to=1>(m)
        y = Add(x, a) \n e = Equal(m, k) \n z = Where(e, x, y) }""")
    check_values(DimensionCompute(), module, {"x": np.ones((2, 4, 6), np.float32)})


def test_in_bodies() -> None:
    module = from_onnx("""g (float[N,4] x, bool c) => (y) {
        y = If(c) <then_branch = a () => (p) { s = Shape<start=1>(x) \n p = Cast<to=1>(s) },
                   else_branch = b () => (r) { t = Shape<end=1>(x) \n r = Cast<to=1>(t) }>
    }""")
    run_pass(DimensionCompute(), module)
    kinds = [op.op_type for op in module.walk() if isinstance(op, NodeOp)]
    assert sorted(kinds) == ["Cast", "Cast", "Constant", "If", "Shape"]


def graph_output() -> ModuleOp:
    return from_onnx("g (float[N,4] x) => (s, y) { s = Shape<start=1>(x) \n y = Neg(s) }")


def test_an_output_is_marked() -> None:
    module = graph_output()
    context = run_pass(DimensionCompute(), module)
    assert op_types(module) == ["Shape", "Neg"]
    assert all(isinstance(get_fact(op.results[0]), FullyKnown) for op in nodes(module))
    declined = [r.message for r in context.remarks if r.kind == "declined"]
    assert any("names the output 's'" in message for message in declined)


def test_an_output_is_folded_on_demand() -> None:
    module = graph_output()
    run_pass(DimensionCompute(graph_outputs=True), module)
    assert op_types(module) == ["Neg"]


def test_the_user_keeps() -> None:
    module = last_sizes()
    keep(nodes(module)[2])
    check_unchanged(DimensionCompute(), module, "fold.keep is set")
    check_unchanged(
        DimensionCompute(skip=("op:Gather",)), last_sizes(), "fold.skip has 'op:Gather'"
    )


def test_a_pass_keeps() -> None:
    module = last_sizes()
    set_no_need(nodes(module)[2], "it is pretty")
    check_unchanged(DimensionCompute(), module, "a pass keeps it: it is pretty")


def test_too_large() -> None:
    module = from_onnx("""g (float[N,4,6] x) => (y) {
        s = Shape<start=1>(x) \n y = ConstantOfShape(s) }""")
    check_unchanged(DimensionCompute(max_bytes=8), module, "its result of 16 bytes")


def test_old_operator_sets_hold_integers_too() -> None:
    module = parse(
        """%s = onnx.Shape(%x) : tensor<2xi64>
        %y = onnx.Reshape(%z, %s) : tensor<3x4xf32>
        return(%y)""",
        "%x: tensor<3x4xf32>, %z: tensor<12xf32>",
        opset=8,
    )
    run_pass(DimensionCompute(), module)
    assert op_types(module) == ["Reshape"]


def test_floats_are_not_computed() -> None:
    module = from_onnx("""g (float[N,4] x) => (y) {
        s = Shape<start=1>(x) \n f = Cast<to=1>(s) \n y = Mul(x, f) }""")
    run_pass(DimensionCompute(), module)
    assert op_types(module) == ["Cast", "Mul"]


def test_unknown_elements_are_left() -> None:
    module = from_onnx("""g (float[N,4] x, int64[1] k) => (y) {
        s = Shape(x) \n t = Concat<axis=0>(s, k) \n y = ReduceProd<keepdims=0>(t) }""")
    check_unchanged(DimensionCompute(), module)
    concat = next(op for op in nodes(module) if op.op_type == "Concat")
    fact = get_fact(concat.results[0])
    assert isinstance(fact, PartlyKnown)
    assert fact.elements == ("N", 4, None)
