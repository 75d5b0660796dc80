"""prepare: learn what there is to know, change nothing that could still turn out otherwise."""

from __future__ import annotations

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.stages.passes.control.inline_functions import InlineFunctions
from foldline.stages.passes.control.remove_conditionals import RemoveConditionals
from foldline.stages.passes.folding.constant_clip import ConstantClip
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
from foldline.stages.passes.folding.infer_value_range import InferValueRange
from foldline.stages.passes.folding.replace_with_empty_const import ReplaceWithEmptyConst
from foldline.stages.passes.quantisation.protect_quantisation import ProtectQuantisation
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.stage import Stage, traversal, whole

PREPARE = Stage(
    name="prepare",
    promise="every value has the best type inference can give; facts say what will fold; "
    "nothing is folded that could still change",
    steps=(
        whole(InlineFunctions(domain=FUSED_DOMAIN), "what was fused before is fused again"),
        whole(ProtectQuantisation(), "before anything folds what quantised rewrites look for"),
        traversal(
            (InferShapes(), "the model's own types are hints; all that follows asks for types"),
            (RemoveConditionals(), "by real constants only; what is not taken need not be visited"),
            (ReplaceWithEmptyConst(mark_only=True), "marks, as shapes may still change"),
            (DimensionCompute(mark_only=True), "marks, as shapes may still change"),
            (ConstantClip(), "before the constant and its Cast become one"),
            (ConstantFolding(), "real constants cannot change; what is fed by marks is marked"),
            (InferValueRange(mark_only=True), "last: for what nothing could compute"),
        ),
    ),
)
