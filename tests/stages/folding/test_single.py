"""Folding of one node (spec row 30)."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import keep
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.context import PassContext
from foldline.stages.folding.single import fold_now
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.options import resolve
from tests.stages.check import from_onnx, named, op_types

TEXT = """g (float[2, 3] x, float[0] z) => (float[2] y, int64[2] v, float u, float[2] t)
<float[2] w = {1, 4}> {
    [constant] a = Sqrt(w) t = Neg(a) [shape] s = Shape(x) v = Neg(s)
    [empty] e = Relu(z) u = ReduceSum<keepdims = 0>(e) i = Constant<value_ints = [1]>()
    [none] y = ReduceSum<keepdims = 0>(x, i)
}"""


def fold(name: str, **options: object) -> tuple[ModuleOp, bool]:
    module = from_onnx(TEXT)
    InferShapes().run(PassContext(module))
    context = PassContext(module, resolve(options)) if options else PassContext(module)
    op = named(module, name)
    assert isinstance(op, NodeOp)
    return module, fold_now(op, context)


EVERYTHING = ["Neg", "Neg", "ReduceSum", "ReduceSum", "Relu", "Shape", "Sqrt"]


@pytest.mark.parametrize(
    ("name", "op_type"), [("constant", "Sqrt"), ("shape", "Shape"), ("empty", "Relu")]
)
def test_row_30_each_way_of_folding_has_its_turn(name: str, op_type: str) -> None:
    module, is_gone = fold(name)
    assert is_gone
    assert sorted(op_types(module)) == [each for each in EVERYTHING if each != op_type]


def test_row_30_a_node_that_cannot_be_folded_stays() -> None:
    module, is_gone = fold("none")
    assert not is_gone
    assert sorted(op_types(module)) == EVERYTHING


def test_the_limits_of_the_compile_hold_whatever_passes_run() -> None:
    assert not fold("constant", fold_skip=["constant"])[1]
    assert fold("constant", fold_skip=["other"], oo_constant_folding=False)[1]


def test_what_the_user_keeps_stays() -> None:
    module = from_onnx(TEXT)
    context = PassContext(module)
    InferShapes().run(context)
    op = named(module, "constant")
    keep(op)
    assert isinstance(op, NodeOp)
    assert not fold_now(op, context)
    assert [r.message for r in context.remarks] == ["fold.keep is set"]
