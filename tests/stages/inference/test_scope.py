"""What inference sees of values: constants and potential constants, but not those it tries out."""

from __future__ import annotations

import numpy as np

from foldline.dialects.fold import FullyKnown
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.stages.context import PassContext
from foldline.stages.inference.scope import CallScope, IrScope, TrialScope
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import from_onnx, named, type_text
from tests.stages.marking import traverse

TEXT = """g (float[2, 3] x, float[6] z) => (float[?, ?] y) {
    [shape] s = Shape(x) [reshape] y = Reshape(z, s)
}"""
TWO_THREE = TensorAttr.of(np.int64([2, 3]))


def test_a_potential_constant_decides_shapes() -> None:
    module = from_onnx(TEXT)
    context = traverse(PassContext(module))
    reshaped = named(module, "reshape").results[0]
    assert type_text(reshaped) == "tensor<2x3xf32>"
    scope = IrScope(context.rewriter)
    assert scope.constant(named(module, "shape").results[0]) == TWO_THREE
    assert scope.constant(reshaped) is None


def test_the_type_of_a_potential_constant_is_that_of_its_value() -> None:
    module = from_onnx("g (float[n] x) => (int64[?] y) { [nonzero] a = NonZero(x) y = Shape(a) }")
    context = PassContext(module)
    InferShapes().run(context)
    result = named(module, "nonzero").results[0]
    unknown = result.type
    fact = FullyKnown(TensorAttr.of(np.int64([[0, 1]])), "test")
    context.rewriter.set_type(result, fact.value.type)
    context.rewriter.set_facts(named(module, "nonzero"), [fact])
    changes = context.rewriter.changes
    IrScope(context.rewriter).set_type(result, unknown)
    assert type_text(result) == "tensor<1x2xi64>"
    assert context.rewriter.changes == changes


def test_marks_on_what_is_tried_out_are_not_seen() -> None:
    """They rest on the types of an earlier round."""
    module = from_onnx(TEXT)
    context = traverse(PassContext(module))
    shape = named(module, "shape").results[0]
    trial = TrialScope(IrScope(context.rewriter))
    assert trial.constant(shape) == TWO_THREE
    trial.set_type(shape, shape.type)
    assert trial.constant(shape) is None


def test_marks_in_a_function_are_not_seen_in_a_call() -> None:
    """A call has types of its own; the constants it is given are seen."""
    module = from_onnx(TEXT)
    traverse(PassContext(module))
    shape = named(module, "shape").results[0]
    assert CallScope({}, {}, {}).constant(shape) is None
    assert CallScope({}, {shape: TWO_THREE}, {}).constant(shape) == TWO_THREE
