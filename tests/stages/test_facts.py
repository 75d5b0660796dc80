"""Facts while IR changes: none outlives what it was concluded from, and marks are counted."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import FullyKnown, get_fact, set_fact
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import with_dims
from foldline.stages.context import PassContext
from foldline.stages.folding.known import mark_of
from foldline.support.report import MarkRow
from tests.stages.check import from_onnx, named
from tests.stages.marking import traverse

TEXT = """g (float[2, 3] x, float[2] z) => (float[2] y) {
    [shape] s = Shape(x) [cast] c = Cast<to = 1>(s) [root] r = Sqrt(c) [out] y = Mul(r, z)
}"""
ALL = {"Shape": "shape-marks", "Cast": "constant-folding", "Sqrt": "constant-folding"}


def marked() -> tuple[ModuleOp, PassContext]:
    module = from_onnx(TEXT)
    return module, traverse(PassContext(module))


def sources(module: ModuleOp) -> dict[str, str]:
    """Marked nodes with who marked them."""
    found: dict[str, str] = {}
    for op in module.walk():
        if (mark := mark_of(op)) is not None and isinstance(op, NodeOp):
            found[op.op_type] = mark.source
    return found


def test_another_type_of_an_input_drops_all_that_rests_on_it() -> None:
    module, context = marked()
    x = main_graph(module).body.block.args[0]
    context.rewriter.set_type(x, with_dims(x.type, (2, 5)))
    assert sources(module) == {}
    assert context.rewriter.marks["constant-folding"].dropped == 2
    traverse(context)
    assert sources(module) == ALL
    fact = get_fact(named(module, "cast").results[0])
    assert isinstance(fact, FullyKnown)
    assert fact.value.array.tolist() == [2, 5]


def test_another_operand_drops_all_that_rests_on_it() -> None:
    module, context = marked()
    z = main_graph(module).body.block.args[1]
    cast = named(module, "cast")
    context.rewriter.set_operands(cast, [z])
    assert sources(module) == {"Shape": "shape-marks"}
    shape = named(module, "shape")
    context.rewriter.set_operands(cast, shape.results)
    traverse(context)
    assert sources(module) == ALL
    context.rewriter.replace_uses(named(module, "cast").results[0], z)
    assert sources(module) == {k: ALL[k] for k in ("Shape", "Cast")}


def test_another_fact_drops_all_that_rests_on_it_and_the_same_one_nothing() -> None:
    module, context = marked()
    shape = named(module, "shape")
    same = FullyKnown(TensorAttr.of(np.int64([2, 3])), "shape-marks")
    context.rewriter.set_facts(shape, [same])
    assert sources(module) == ALL
    context.rewriter.set_facts(shape, [FullyKnown(TensorAttr.of(np.int64([7, 7])), "test")])
    assert sources(module) == {"Shape": "test"}
    assert context.rewriter.marks["shape-marks"] == MarkRow("shape-marks", made=1, dropped=1)


def test_a_fact_about_a_body_goes_with_what_the_body_yields() -> None:
    module = from_onnx("""g (bool c, float[2] x) => (int64[1] y) {
        [if] s = If(c) <then_branch = t () => (int64[1] u) { [inner] u = Shape(x) },
                        else_branch = e () => (int64[1] v) { v = Shape(x) }>
        y = Neg(s)
    }""")
    context = traverse(PassContext(module))
    holder = named(module, "if")
    set_fact(holder.results[0], FullyKnown(TensorAttr.of(np.int64([2])), "test"))
    context.rewriter.drop_facts(named(module, "inner"))
    assert mark_of(holder) is None


def test_a_mark_that_becomes_real_is_counted_by_stage_and_its_readers_keep_theirs() -> None:
    module, context = marked()
    shape = named(module, "shape")
    assert isinstance(shape, NodeOp)
    context.rewriter.take_mark(shape, "stage1")
    assert sources(module) == {k: ALL[k] for k in ("Cast", "Sqrt")}
    assert context.rewriter.marks["shape-marks"] == MarkRow(
        "shape-marks", made=1, taken={"stage1": 1}
    )
    assert context.rewriter.marks["constant-folding"] == MarkRow("constant-folding", made=2)


def test_marks_go_with_their_nodes() -> None:
    module, context = marked()
    for name in ("out", "root"):
        op = named(module, name)
        for result in op.results:
            context.rewriter.replace_uses(result, main_graph(module).body.block.args[1])
        context.rewriter.erase(op)
    assert context.rewriter.marks["constant-folding"] == MarkRow(
        "constant-folding", made=2, dropped=1
    )


def test_facts_about_the_arguments_of_a_body_go_with_their_types() -> None:
    module = from_onnx("g (int64[2] x) => (int64[2] y) { y = Neg(x) }")
    context = PassContext(module)
    x = main_graph(module).body.block.args[0]
    set_fact(x, FullyKnown(TensorAttr.of(np.int64([1, 2])), "test"))
    context.rewriter.set_type(x, with_dims(x.type, (3,)))
    assert get_fact(x) is None
