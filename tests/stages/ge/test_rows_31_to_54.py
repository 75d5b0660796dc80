"""Marks, shapes and empty results as GE's own tests describe them, rows 31 to 54.

Rows 40 to 51 are tests of replace-with-empty-const and potential-const-taken-effect, and rows 52 to
54 of `stages/folding/known.py`, named after them. Without a counterpart: FrameworkOps (in 38) and
control edges (43).
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import keep
from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.folding.known import known_tensor, mark_of
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.run import run_pipeline
from foldline.support.options import resolve
from tests.stages.check import from_onnx, named, op_types

SHAPE = """g (float[2, 3] x) => (int64[2] y) {
    [abs] a = Abs(x) [shape] s = Shape(a) y = Neg(s)
}"""


def dimensions(module: ModuleOp, mark_only: bool = False) -> PassContext:
    context = PassContext(module)
    passes = (InferShapes(), DimensionCompute(mark_only=mark_only))
    Traversal(context, [given.visitor(context) for given in passes]).run()
    return context


def compiled(text: str, *kept: str) -> ModuleOp:
    module = from_onnx(text)
    for name in kept:
        keep(named(module, name))
    run_pipeline(module, resolve())
    return module


def constants(module: ModuleOp) -> set[str]:
    return {result_names(op)[0] for op in module.walk() if is_constant(op)}


def test_row_31_and_38_operators_without_a_dimension_kernel_stay() -> None:
    module = from_onnx("g (float[2] x) => (float[2] y) { a = Erf(x) y = Neg(a) }")
    context = dimensions(module)
    assert op_types(module) == ["Erf", "Neg"]
    assert not len(context.remarks)


def test_row_32_the_shape_of_a_static_type_is_a_constant() -> None:
    module = from_onnx(SHAPE)
    dimensions(module)
    assert op_types(module) == ["Abs", "Neg"]
    assert constants(module) == {"s"}
    assert op_types(compiled(SHAPE)) == ["Neg"]


def test_row_33_or_a_potential_one() -> None:
    module = from_onnx(SHAPE)
    dimensions(module, mark_only=True)
    assert op_types(module) == ["Abs", "Shape", "Neg"]
    known = known_tensor(named(module, "shape").results[0])
    assert known is not None
    assert known.is_potential
    assert (known.tensor.array.dtype, known.tensor.array.tolist()) == (np.int64, [2, 3])


def test_row_34_unless_the_user_keeps_it() -> None:
    for mark_only in (False, True):
        module = from_onnx(SHAPE)
        keep(named(module, "shape"))
        dimensions(module, mark_only=mark_only)
        assert op_types(module) == ["Abs", "Shape", "Neg"]
        assert mark_of(named(module, "shape")) is None


AXES = """g (float[1, 2] x, int64[1] u) => (float[1, 2] y, int64[1] v)
<float[2] w = {1, 2}, int64[1] axes = {0}> {
    [adjust] a = Unsqueeze(w, axes) y = Add(a, x) v = Sub(OTHER, u)
}"""


def test_row_35_a_reshaping_of_constants_goes_with_its_axes() -> None:
    module = compiled(AXES.replace("OTHER", "u"))
    assert op_types(module) == ["Add", "Sub"]
    assert constants(module) == {"a"}


def test_row_36_axes_that_others_read_stay() -> None:
    module = compiled(AXES.replace("OTHER", "axes"))
    assert op_types(module) == ["Add", "Sub"]
    assert constants(module) == {"a", "axes"}


def test_row_37_a_reshaping_of_unknown_sizes_stays() -> None:
    text = """g (float[n] x) => (float[1, n] y) <int64[1] axes = {0}> {
        a = Unsqueeze(x, axes) y = Neg(a) }"""
    assert op_types(compiled(text)) == ["Unsqueeze", "Neg"]


def test_row_39_and_what_the_user_keeps() -> None:
    module = compiled(AXES.replace("OTHER", "u"), "adjust")
    assert op_types(module) == ["Unsqueeze", "Add", "Sub"]
