"""stage2: fold what functions and branches hid."""

from __future__ import annotations

from foldline.stages.passes.cleanup.cancel_transposes import CancelTransposes
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.cleanup.prune import Prune
from foldline.stages.passes.cleanup.remove_casts import RemoveCasts
from foldline.stages.passes.cleanup.remove_isolated_constants import RemoveIsolatedConstants
from foldline.stages.passes.control.inline_functions import InlineFunctions
from foldline.stages.passes.control.remove_conditionals import RemoveConditionals
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
from foldline.stages.passes.folding.potential_const_taken_effect import PotentialConstTakenEffect
from foldline.stages.passes.shapes.dimension_adjust import DimensionAdjust
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.recover_reshapes import RecoverReshapes
from foldline.stages.passes.shapes.reshape_remove import ReshapeRemove
from foldline.stages.passes.structure.cast_like_to_cast import CastLikeToCast
from foldline.stages.promises import FOLDING, TAKING, is_settled
from foldline.stages.stage import Stage, traversal, whole
from foldline.stages.structural import STRUCTURAL

STAGE2 = Stage(
    name="stage2",
    promise="no operator depends on constants only, in what was inlined too, and no potential "
    "constant is left, but on what names an output or is kept",
    steps=(
        whole(InlineFunctions(), "bodies see the types and constants of their calls"),
        traversal(
            (InferShapes(trusted=True), "inlined nodes have the types of their new surroundings"),
            (ConstantFolding(), "inlined nodes may have constant inputs"),
            (DimensionCompute(), "and inputs of known shape"),
            (EliminateIdentity(), "inlining leaves such nodes"),
            (CastLikeToCast(), "exporters write bodies with it"),
            (RemoveCasts(), "the same"),
            (CancelTransposes(), "pairs that stood in two functions"),
            (DimensionAdjust(), "targets that are partly known"),
            (ReshapeRemove(), "shapes are final, so what does not change them does nothing"),
            *STRUCTURAL,
            (RemoveConditionals(), "a function's condition may be known at its call"),
            (PotentialConstTakenEffect(), "at the end of the traversal, with another round after"),
        ),
        whole(RecoverReshapes(), "of inlined shape vectors"),
        whole(Prune(), "what inlined nodes no longer need"),
        whole(RemoveIsolatedConstants(), "last, as everything before may leave constants unread"),
    ),
    is_legal=is_settled,
    rests_on=(FOLDING, TAKING),
)
