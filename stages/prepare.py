"""prepare: learn what there is to know, change nothing that could still turn out otherwise."""

from __future__ import annotations

from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.stage import Stage, traversal

PREPARE = Stage(
    name="prepare",
    promise="every value has the best type inference can give; nothing is folded that could change",
    steps=(
        traversal(
            (InferShapes(), "the model's own types are hints; all that follows asks for types"),
            (ConstantFolding(), "real constants cannot change, and shapes hang on their values"),
        ),
    ),
)
