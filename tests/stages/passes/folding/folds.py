"""Modules that constant-folding runs on, and what it leaves."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.constant import ConstantOp
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import Array, from_onnx

FOLD = ConstantFolding()


def inferred(text: str, **keywords: Any) -> ModuleOp:
    module = from_onnx(text, **keywords)
    InferShapes().run(PassContext(module))
    return module


def folded(text: str, options: ConstantFolding = FOLD, **keywords: Any) -> ModuleOp:
    """Infer and fold in one traversal, as the stages do."""
    module = from_onnx(text, **keywords)
    context = PassContext(module)
    Traversal(context, [InferShapes().visitor(context), options.visitor(context)]).run()
    return module


def only_constant(module: ModuleOp) -> Array:
    (op,) = (op for op in module.walk() if isinstance(op, ConstantOp))
    tensor = op.tensor()
    assert tensor is not None
    return tensor.array
