"""before_fusion: one spelling per computation."""

from __future__ import annotations

from foldline.stages.passes.cleanup.cancel_transposes import CancelTransposes
from foldline.stages.passes.cleanup.common_subexpressions import CommonSubexpressions
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from foldline.stages.passes.cleanup.prune import Prune
from foldline.stages.passes.folding.constant_clip import ConstantClip
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
from foldline.stages.passes.shapes.dimension_adjust import DimensionAdjust
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.recover_reshapes import RecoverReshapes
from foldline.stages.passes.shapes.reshape_remove import ReshapeRemove
from foldline.stages.promises import FOLDING, TAKING, is_folded_or_declined
from foldline.stages.stage import Stage, traversal, whole
from foldline.stages.structural import STRUCTURAL

BEFORE_FUSION = Stage(
    name="before_fusion",
    promise="one spelling per computation; fusion sees no node that could be folded",
    steps=(
        whole(CommonSubexpressions(), "inlined bodies repeat what stands around them"),
        traversal(
            (InferShapes(trusted=True), "fusion asks for types"),
            (ConstantClip(), "before the constant and its Cast become one"),
            (ConstantFolding(), "fusion must not take in what could be a constant"),
            (EliminateIdentity(), "merging makes more of them"),
            (CancelTransposes(), "the same"),
            (DimensionCompute(), "of what merging made equal"),
            (DimensionAdjust(), "the same"),
            (ReshapeRemove(), "the same"),
            *STRUCTURAL,
        ),
        whole(RecoverReshapes(), "before what they make equal is merged"),
        whole(CommonSubexpressions(), "fusion sees each computation once"),
        whole(MergeEqualConstants(), "of the last folds"),
        whole(Prune(), "fusion counts readers"),
    ),
    is_legal=is_folded_or_declined,
    rests_on=(FOLDING, TAKING),
)
