"""stage1: fold everything that depends on constants only."""

from __future__ import annotations

from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from foldline.stages.passes.cleanup.prune import Prune
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.promises import FOLDING, is_folded_or_declined
from foldline.stages.stage import Stage, traversal, whole

STAGE1 = Stage(
    name="stage1",
    promise="no operator depends on constants only, but those that a remark says are kept",
    steps=(
        whole(MergeEqualConstants(), "equal inputs make equal nodes, which later passes can see"),
        traversal(
            (InferShapes(trusted=True), "rewrites give better types to what follows them"),
            (EliminateIdentity(), "fewer nodes to fold, and constants reach their readers"),
            (ConstantFolding(), "what became constant"),
        ),
        whole(MergeEqualConstants(), "folding makes equal constants"),
        whole(Prune(), "last, as everything before may leave nodes without readers"),
    ),
    is_legal=is_folded_or_declined,
    rests_on=(FOLDING,),
)
