"""shape-fixation: what hangs on shapes only, once those are known."""

from __future__ import annotations

import numpy as np

from foldline import transforms
from foldline.graph import ModelGraph
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.shape_fixation import ShapeFixation
from foldline.transforms import DefaultsOptions, OptimizeOptions
from tests.stages.check import check_values, from_onnx, onnx_model, op_types, run_pass

TEXT = """
g (float[n,3,4] x) => (float[p,q] y) {
    zero = Constant<value = int64[1] {0}>() rest = Constant<value = int64[1] {-1}>()
    s = Shape(x) b = Gather(s, zero) t = Concat<axis = 0>(b, rest) r = Reshape(x, t) y = Relu(r)
}
"""
KNOWN = TEXT.replace("[n,3,4]", "[2,3,4]")


def test_shapes_fold_where_they_are_known() -> None:
    module = from_onnx(KNOWN)
    InferShapes().run(PassContext(module))
    run_pass(ShapeFixation(), module)
    assert op_types(module) == ["Reshape", "Relu"]


def test_values_stay() -> None:
    feed = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)}
    feed["x"][0, 0, 0] = np.nan
    module = from_onnx(KNOWN)
    InferShapes().run(PassContext(module))
    check_values(ShapeFixation(), module, feed)


def test_s2_numbers_for_sizes_and_fixation_work_together() -> None:
    on = ModelGraph(onnx_model(TEXT))
    report = on.optimize(OptimizeOptions(defaults=DefaultsOptions({"n": 2})))
    assert report.row("specialize-shapes").applications == 1
    assert report.row("shape-fixation").applications >= 1
    assert op_types(on.module) == ["Reshape", "Relu"]


def test_nothing_to_fold_changes_nothing() -> None:
    module = from_onnx("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    InferShapes().run(PassContext(module))
    assert run_pass(ShapeFixation(), module).rewriter.changes == 0


def test_the_options_of_a_compile_reach_it() -> None:
    options = {"fold.skip": ["op:Shape"], "passes.enable": ["shape-fixation"]}
    on = ModelGraph(onnx_model(KNOWN), options)
    on.optimize(OptimizeOptions(transforms=[transforms.shape_fixation()]))
    assert "Shape" in op_types(on.module)
