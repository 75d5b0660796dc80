"""stage1: fold everything that depends on constants only."""

from __future__ import annotations

from foldline.stages.passes.cleanup.cancel_transposes import CancelTransposes
from foldline.stages.passes.cleanup.common_subexpressions import CommonSubexpressions
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from foldline.stages.passes.cleanup.prune import Prune
from foldline.stages.passes.cleanup.remove_casts import RemoveCasts
from foldline.stages.passes.control.remove_conditionals import RemoveConditionals
from foldline.stages.passes.folding.constant_clip import ConstantClip
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
from foldline.stages.passes.folding.potential_const_taken_effect import PotentialConstTakenEffect
from foldline.stages.passes.folding.replace_with_empty_const import ReplaceWithEmptyConst
from foldline.stages.passes.shapes.dimension_adjust import DimensionAdjust
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.recover_reshapes import RecoverReshapes
from foldline.stages.passes.shapes.reshape_remove import ReshapeRemove
from foldline.stages.passes.structure.cast_like_to_cast import CastLikeToCast
from foldline.stages.promises import FOLDING, TAKING, is_folded_or_declined
from foldline.stages.stage import Stage, traversal, whole
from foldline.stages.structural import STRUCTURAL

STAGE1 = Stage(
    name="stage1",
    promise="no operator depends on constants only, but those that a remark says are kept",
    steps=(
        whole(PotentialConstTakenEffect(), "what prepare marked can no longer change"),
        whole(MergeEqualConstants(), "equal inputs make equal nodes, which the next pass sees"),
        whole(CommonSubexpressions(), "fewer nodes for all that follows"),
        traversal(
            (InferShapes(trusted=True), "rewrites give better types to what follows them"),
            (EliminateIdentity(), "fewer nodes to fold, and constants reach their readers"),
            (CastLikeToCast(), "a Cast says by itself what it makes"),
            (RemoveCasts(), "fewer nodes again"),
            (CancelTransposes(), "before a transpose of a constant is computed for nothing"),
            (ReplaceWithEmptyConst(), "needs no kernel, whatever the inputs are"),
            (DimensionCompute(), "shapes are as good as they get"),
            (ConstantClip(), "before the constant and its Cast become one"),
            (ConstantFolding(), "what became constant"),
            (DimensionAdjust(), "after what is a constant has become one: what is partly known"),
            (ReshapeRemove(), "what shapes, known or symbolic, prove to do nothing"),
            *STRUCTURAL,
            (RemoveConditionals(), "conditions that became constant"),
            (PotentialConstTakenEffect(), "at the end of the traversal, with another round after"),
        ),
        whole(RecoverReshapes(), "shapes that stay are read off the earliest tensor that has them"),
        whole(MergeEqualConstants(), "folding makes equal constants"),
        whole(Prune(), "last, as everything before may leave nodes without readers"),
    ),
    is_legal=is_folded_or_declined,
    rests_on=(FOLDING, TAKING),
)
