"""Every pass, by what it is about."""

from __future__ import annotations

from foldline.stages.pass_base import Pass
from foldline.stages.passes.algebraic.conv_add_batch_normalization_folding import (
    ConvAddBatchNormalizationFolding,
)
from foldline.stages.passes.algebraic.conv_channel_affine_folding import ConvChannelAffineFolding
from foldline.stages.passes.algebraic.exp_positive_scale_folding import ExpPositiveScaleFolding
from foldline.stages.passes.algebraic.gather_slice_to_split_fusion import GatherSliceToSplitFusion
from foldline.stages.passes.algebraic.static_split_to_slice import StaticSplitToSlice
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
from foldline.stages.passes.fusion.attention import Attention
from foldline.stages.passes.fusion.attention_scale_fold import AttentionScaleFold
from foldline.stages.passes.fusion.batchnorm_scale_fold import BatchnormScaleFold
from foldline.stages.passes.fusion.cast_mul_to_dequantize_linear import CastMulToDequantizeLinear
from foldline.stages.passes.fusion.compact_weights import CompactWeights
from foldline.stages.passes.fusion.conv_activation import ConvActivation
from foldline.stages.passes.fusion.conv_batchnorm_fold import ConvBatchnormFold
from foldline.stages.passes.fusion.conv_integer_fusion import ConvIntegerFusion
from foldline.stages.passes.fusion.conv_scale_fold import ConvScaleFold
from foldline.stages.passes.fusion.conv_transpose_batchnorm_fold import ConvTransposeBatchnormFold
from foldline.stages.passes.fusion.drop_boundary_permutes import DropBoundaryPermutes
from foldline.stages.passes.fusion.dynamic_quantize_conv import DynamicQuantizeConv
from foldline.stages.passes.fusion.dynamic_quantize_matmul import DynamicQuantizeMatmul
from foldline.stages.passes.fusion.element_wise_fusion import ElementWiseFusion
from foldline.stages.passes.fusion.gelu import Gelu
from foldline.stages.passes.fusion.gemm_batchnorm_fold import GemmBatchnormFold
from foldline.stages.passes.fusion.group_normalization import GroupNormalization
from foldline.stages.passes.fusion.hard_sigmoid import HardSigmoid
from foldline.stages.passes.fusion.hard_swish import HardSwish
from foldline.stages.passes.fusion.layer_normalization import LayerNormalization
from foldline.stages.passes.fusion.linear_pack_fuse import LinearPackFuse
from foldline.stages.passes.fusion.matmul_add_to_gemm import MatmulAddToGemm
from foldline.stages.passes.fusion.matmul_integer_fusion import MatmulIntegerFusion
from foldline.stages.passes.fusion.matmul_scale_fold import MatmulScaleFold
from foldline.stages.passes.fusion.mish import Mish
from foldline.stages.passes.fusion.pad_into_conv import PadIntoConv
from foldline.stages.passes.fusion.pad_into_pool import PadIntoPool
from foldline.stages.passes.fusion.qdq import Qdq
from foldline.stages.passes.fusion.qdq_element_wise import QdqElementWise
from foldline.stages.passes.fusion.qdq_movement import QdqMovement
from foldline.stages.passes.fusion.qkv_merge import QkvMerge
from foldline.stages.passes.fusion.quick_gelu import QuickGelu
from foldline.stages.passes.fusion.remove_double_permute import RemoveDoublePermute
from foldline.stages.passes.fusion.rms_normalization import RmsNormalization
from foldline.stages.passes.fusion.rotary_embedding import RotaryEmbedding
from foldline.stages.passes.fusion.scale_into_conv import ScaleIntoConv
from foldline.stages.passes.fusion.skip_normalization import SkipNormalization
from foldline.stages.passes.fusion.softplus import Softplus
from foldline.stages.passes.fusion.swish import Swish
from foldline.stages.passes.fusion.tanh_gelu import TanhGelu
from foldline.stages.passes.quantisation.protect_quantisation import ProtectQuantisation
from foldline.stages.passes.quantisation.release_quantisation import ReleaseQuantisation
from foldline.stages.passes.shapes.dimension_adjust import DimensionAdjust
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.recover_reshapes import RecoverReshapes
from foldline.stages.passes.shapes.reshape_remove import ReshapeRemove
from foldline.stages.passes.shapes.shape_fixation import ShapeFixation
from foldline.stages.passes.shapes.specialize_shapes import SpecializeShapes
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
from foldline.stages.passes.structure.unflatten_transposes import UnflattenTransposes

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
    UnflattenTransposes,
    SinkTransposes,
    RecoverReshapes,
    Prune,
    InlineFunctions,
    RemoveIsolatedConstants,
    CompactWeights,
    MatmulAddToGemm,
    LinearPackFuse,
    CastMulToDequantizeLinear,
    QdqMovement,
    Qdq,
    QdqElementWise,
    MatmulIntegerFusion,
    DynamicQuantizeConv,
    DynamicQuantizeMatmul,
    ConvIntegerFusion,
    ReleaseQuantisation,
    ConvBatchnormFold,
    BatchnormScaleFold,
    ConvActivation,
    ConvScaleFold,
    ConvTransposeBatchnormFold,
    GemmBatchnormFold,
    MatmulScaleFold,
    PadIntoConv,
    PadIntoPool,
    ScaleIntoConv,
    LayerNormalization,
    RmsNormalization,
    GroupNormalization,
    SkipNormalization,
    Softplus,
    Mish,
    Gelu,
    TanhGelu,
    QuickGelu,
    HardSigmoid,
    HardSwish,
    Swish,
    Attention,
    SpecializeShapes,
    ShapeFixation,
    RemoveDoublePermute,
    DropBoundaryPermutes,
    RotaryEmbedding,
    ConvAddBatchNormalizationFolding,
    ConvChannelAffineFolding,
    ExpPositiveScaleFolding,
    GatherSliceToSplitFusion,
    StaticSplitToSlice,
    QkvMerge,
    AttentionScaleFold,
    ElementWiseFusion,
)
