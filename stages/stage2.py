"""stage2: fold what functions and branches hid."""

from __future__ import annotations

from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.promises import FOLDING, is_folded_or_declined
from foldline.stages.stage import Stage, traversal

STAGE2 = Stage(
    name="stage2",
    promise="no operator depends on constants only, in what was inlined too",
    steps=(
        traversal(
            (InferShapes(trusted=True), "inlined nodes have the types of their new surroundings"),
            (ConstantFolding(), "inlined nodes may have constant inputs"),
        ),
    ),
    is_legal=is_folded_or_declined,
    rests_on=(FOLDING,),
)
