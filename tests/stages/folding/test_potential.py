"""The steps of folding that can be put off, and that no mark outlives what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import FullyKnown, get_fact, keep, set_no_need
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import with_dims
from foldline.stages.context import PassContext
from foldline.stages.folding.engine import Declined, Engines, HostEngine
from foldline.stages.folding.known import mark_of
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.support.report import MarkRow
from tests.stages.check import Array, from_onnx, named, op_types, type_text
from tests.stages.marking import MARKING, TAKING, traverse

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


def test_marks_go_down_a_chain_and_nothing_is_folded() -> None:
    module, context = marked()
    assert op_types(module) == ["Shape", "Cast", "Sqrt", "Mul"]
    assert sources(module) == ALL
    fact = get_fact(named(module, "root").results[0])
    assert isinstance(fact, FullyKnown)
    np.testing.assert_array_equal(fact.value.array, np.sqrt(np.float32([2, 3])))
    assert fact.value.array.dtype == np.float32
    assert context.rewriter.marks == {
        "shape-marks": MarkRow("shape-marks", made=1),
        "constant-folding": MarkRow("constant-folding", made=2),
    }


def test_marking_again_changes_nothing() -> None:
    module, context = marked()
    changes = context.rewriter.changes
    traverse(context)
    assert context.rewriter.changes == changes
    assert sources(module) == ALL


def test_a_type_that_changes_in_a_traversal_is_followed_down_the_chain() -> None:
    """The declared type of an inner value is wrong: marks made from it must not stay."""
    module = from_onnx("""g (float[2, 3] x, bool c, float[2] z) => (float[2] y) {
        a = If(c) <then_branch = t () => (float[2, 3] u) { u = Abs(x) },
                   else_branch = e () => (float[2, 3] v) { v = Neg(x) }>
        [shape] s = Shape(a) [cast] f = Cast<to = 1>(s) [root] r = Sqrt(f) [out] y = Mul(r, z)
    }""")
    result = next(op for op in module.walk() if op.name == "onnx.If").results[0]
    result._type = with_dims(main_graph(module).body.block.args[0].type, (9, 9))  # pyright: ignore[reportPrivateUsage]
    traverse(PassContext(module))
    fact = get_fact(named(module, "cast").results[0])
    assert isinstance(fact, FullyKnown)
    assert fact.value.array.tolist() == [2, 3]


class Switchable:
    """An engine that can be told to decline."""

    name = "switchable"
    declines = False

    def fold(self, op: NodeOp, inputs: Sequence[Array | None]) -> Any:
        return Declined("told so") if self.declines else HostEngine().fold(op, inputs)


def test_weak_spot_9_a_mark_goes_on_every_path() -> None:
    """GE keeps the old mark and value where a node becomes kept, ignored or cannot be computed."""

    def declines(module: ModuleOp, engine: Switchable) -> str:
        engine.declines = True
        return "Shape"

    def is_kept_by_the_user(module: ModuleOp, engine: Switchable) -> str:
        keep(named(module, "cast"))
        return "Shape"

    def is_kept_by_a_pass(module: ModuleOp, engine: Switchable) -> str:
        set_no_need(named(module, "cast"), "test")
        return "Shape"

    def loses_an_operand(module: ModuleOp, engine: Switchable) -> str:
        named(module, "cast").operands = [main_graph(module).body.block.args[1]]
        return "Shape"

    for change in (declines, is_kept_by_the_user, is_kept_by_a_pass, loses_an_operand):
        module, engine = from_onnx(TEXT), Switchable()
        context = PassContext(module)
        context.engines = Engines([engine])
        traverse(context)
        assert sources(module) == ALL
        left = change(module, engine)
        traverse(context)
        assert set(sources(module)) == {left}, change.__name__


def test_a_mark_of_another_pass_is_neither_overwritten_nor_taken_back() -> None:
    module, context = marked()
    cast = named(module, "cast")
    context.rewriter.set_facts(cast, [FullyKnown(TensorAttr.of(np.float32([2, 3])), "first")])
    traverse(context)
    assert sources(module) == {**ALL, "Cast": "first"}
    cast.operands = [main_graph(module).body.block.args[1]]
    ConstantFolding().run(context)
    assert sources(module)["Cast"] == "first"


def test_marks_count_against_the_limit_before_anything_is_computed() -> None:
    text = """g (float[300, 300] x, float z) => (float[300, 300] y) <float v = {2}> {
        [shape] s = Shape(x) [big] e = Expand(v, s) [out] y = Mul(e, z)
    }"""
    module = from_onnx(text)
    context = traverse(PassContext(module))
    assert sources(module) == {"Shape": "shape-marks"}
    assert any("its result of 360000 bytes" in r.message for r in context.remarks)
    assert not [row for row in context.engines.rows if row.op_type == "Expand"]
    module = from_onnx(text)
    traverse(PassContext(module), [*MARKING[:2], ConstantFolding(max_bytes=360000)])
    assert set(sources(module)) == {"Shape", "Expand"}


def test_weak_spot_11_the_node_itself_gets_the_type_of_what_it_gives() -> None:
    """GE patches the inputs of readers only; types here belong to values."""
    module = from_onnx("""g (float[2, 0, 3] x, float[1, 2] z) => (int64[?, ?] y, float[?] v) {
        [shape] s = Shape(x) [nonzero] n = NonZero(s) [out] y = Neg(n)
        [size] m = Size(n) t = Cast<to = 1>(m) v = Mul(t, z)
    }""")
    context = traverse(PassContext(module), MARKING)
    assert type_text(named(module, "nonzero").results[0]) == "tensor<1x2xi64>"
    assert sources(module)["NonZero"] == "constant-folding"
    changes = context.rewriter.changes
    traverse(context)
    assert context.rewriter.changes == changes
    assert type_text(named(module, "nonzero").results[0]) == "tensor<1x2xi64>"


@pytest.mark.parametrize("graph_outputs", [False, True])
def test_a_node_that_names_an_output_is_marked_and_its_readers_fold(graph_outputs: bool) -> None:
    module = from_onnx("""g (float[2] x) => (float[2] a, float[2] y) <float[2] w = {1, 4}> {
        [first] a = Sqrt(w) [second] b = Neg(a) y = Mul(b, x)
    }""")
    context = PassContext(module)
    traverse(context, [*TAKING[:2], ConstantFolding(graph_outputs=graph_outputs), TAKING[3]])
    assert op_types(module) == (["Mul"] if graph_outputs else ["Sqrt", "Mul"])
    assert sources(module) == ({} if graph_outputs else {"Sqrt": "constant-folding"})
