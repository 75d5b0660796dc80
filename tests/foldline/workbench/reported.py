"""Models and pages that the tests of the report share."""

from __future__ import annotations

from typing import Any

import onnx

import foldline
from foldline.compiler import CompiledModel
from foldline.workbench.page import document
from foldline.workbench.recorder import StageRecorder

TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[N, 3, 8, 8] x) => (float[N, 4, 8, 8] y)
<float[4, 3, 1, 1] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] b = {1, 2, 3, 4}>
{
    one = Constant <value_float = 1.0> ()
    [twice] two = Add(one, one)
    [conv] c = Conv(x, w, b)
    [same] i = Identity(c)
    [relu] r = Relu(i)
    [scale] y = Mul(r, two)
}
"""
"""A node that is folded (twice), one that is dropped (same), and two that are fused (relu)."""

HOSTILE = "</script><b>&'\"<!--"


def reported(
    model: onnx.ModelProto | str = TEXT, **options: Any
) -> tuple[CompiledModel, StageRecorder, dict[str, Any]]:
    """A compiled model, what was recorded, and the document of its page."""
    proto = onnx.parser.parse_model(model) if isinstance(model, str) else model
    recorder = StageRecorder()
    compiled = foldline.compile(proto, observers=[recorder], options=options)
    return compiled, recorder, document("model.onnx", recorder, compiled.report)


def hostile_model() -> onnx.ModelProto:
    """The model with a node and a value whose names are markup."""
    model = onnx.parser.parse_model(TEXT)
    for node in model.graph.node:
        if node.name == "relu":
            node.name = HOSTILE
    return model
