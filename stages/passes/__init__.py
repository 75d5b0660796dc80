"""Every pass, by what it is about."""

from __future__ import annotations

from foldline.stages.pass_base import Pass
from foldline.stages.passes.cleanup.cancel_transposes import CancelTransposes
from foldline.stages.passes.cleanup.common_subexpressions import CommonSubexpressions
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from foldline.stages.passes.cleanup.prune import Prune
from foldline.stages.passes.cleanup.remove_casts import RemoveCasts
from foldline.stages.passes.cleanup.remove_isolated_constants import RemoveIsolatedConstants
from foldline.stages.passes.control.inline_functions import InlineFunctions
from foldline.stages.passes.control.remove_conditionals import RemoveConditionals
from foldline.stages.passes.folding.constant_clip import ConstantClip
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
from foldline.stages.passes.folding.infer_value_range import InferValueRange
from foldline.stages.passes.folding.potential_const_taken_effect import PotentialConstTakenEffect
from foldline.stages.passes.folding.replace_with_empty_const import ReplaceWithEmptyConst
from foldline.stages.passes.fusion.conv_batchnorm_fold import ConvBatchnormFold
from foldline.stages.passes.quantisation.protect_quantisation import ProtectQuantisation
from foldline.stages.passes.shapes.dimension_adjust import DimensionAdjust
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.recover_reshapes import RecoverReshapes
from foldline.stages.passes.shapes.reshape_remove import ReshapeRemove
from foldline.stages.passes.structure.absorb_expands import AbsorbExpands
from foldline.stages.passes.structure.cast_like_to_cast import CastLikeToCast
from foldline.stages.passes.structure.conv_add_to_bias import ConvAddToBias
from foldline.stages.passes.structure.drop_zero_states import DropZeroStates
from foldline.stages.passes.structure.flatten_concats import FlattenConcats
from foldline.stages.passes.structure.gather_unsqueeze import GatherUnsqueeze
from foldline.stages.passes.structure.merge_slices import MergeSlices
from foldline.stages.passes.structure.sink_transposes import SinkTransposes
from foldline.stages.passes.structure.slices_to_space_to_depth import SlicesToSpaceToDepth
from foldline.stages.passes.structure.slices_to_split import SlicesToSplit
from foldline.stages.passes.structure.stack_to_reshape import StackToReshape

ALL_PASSES: tuple[type[Pass], ...] = (
    ProtectQuantisation,
    InferShapes,
    RemoveConditionals,
    ReplaceWithEmptyConst,
    DimensionCompute,
    ConstantClip,
    ConstantFolding,
    InferValueRange,
    PotentialConstTakenEffect,
    MergeEqualConstants,
    CommonSubexpressions,
    EliminateIdentity,
    CastLikeToCast,
    RemoveCasts,
    CancelTransposes,
    DimensionAdjust,
    ReshapeRemove,
    GatherUnsqueeze,
    AbsorbExpands,
    SlicesToSplit,
    StackToReshape,
    FlattenConcats,
    SlicesToSpaceToDepth,
    MergeSlices,
    DropZeroStates,
    ConvAddToBias,
    SinkTransposes,
    RecoverReshapes,
    Prune,
    InlineFunctions,
    RemoveIsolatedConstants,
    ConvBatchnormFold,
)
