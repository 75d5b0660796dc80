"""before_fusion: one spelling per computation."""

from __future__ import annotations

from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.promises import FOLDING, is_folded_or_declined
from foldline.stages.stage import Stage, traversal

BEFORE_FUSION = Stage(
    name="before_fusion",
    promise="fusion sees no node that could be folded",
    steps=(
        traversal(
            (InferShapes(trusted=True), "fusion asks for types"),
            (ConstantFolding(), "fusion must not take in what could be a constant"),
        ),
    ),
    is_legal=is_folded_or_declined,
    rests_on=(FOLDING,),
)
