"""fusion: listed groups of operators become single ones."""

from __future__ import annotations

from foldline.stages.passes.algebraic.conv_add_batch_normalization_folding import (
    ConvAddBatchNormalizationFolding,
)
from foldline.stages.passes.algebraic.conv_channel_affine_folding import ConvChannelAffineFolding
from foldline.stages.passes.algebraic.exp_positive_scale_folding import ExpPositiveScaleFolding
from foldline.stages.passes.algebraic.gather_slice_to_split_fusion import GatherSliceToSplitFusion
from foldline.stages.passes.algebraic.static_split_to_slice import StaticSplitToSlice
from foldline.stages.passes.cleanup.common_subexpressions import CommonSubexpressions
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from foldline.stages.passes.cleanup.prune import Prune
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
from foldline.stages.passes.quantisation.release_quantisation import ReleaseQuantisation
from foldline.stages.passes.shapes.recover_reshapes import RecoverReshapes
from foldline.stages.passes.shapes.shape_fixation import ShapeFixation
from foldline.stages.passes.shapes.specialize_shapes import SpecializeShapes
from foldline.stages.stage import Stage, rewriting, whole

FUSION = Stage(
    name="fusion",
    promise="listed groups are single operators",
    steps=(
        rewriting(
            (CompactWeights(), "before any rewrite that would take a marked weight"),
            (ConvAddBatchNormalizationFolding(), "before others take its BatchNormalization"),
            (ConvChannelAffineFolding(), "before Splits behind a Conv become Slices"),
            (ExpPositiveScaleFolding(), "before anything takes the Add or the Mul in"),
            (GatherSliceToSplitFusion(), "before static-split-to-slice, which has the last word"),
            (StaticSplitToSlice(), "the last of the rewrites that are asked for by name"),
            (SpecializeShapes(), "what follows may hang on sizes"),
            (ShapeFixation(), "with the sizes of now, before rules look at constants"),
            (CastMulToDequantizeLinear(), "before rules that look for DequantizeLinear"),
            (QdqMovement(), "before qdq, which may stand before what moves"),
            (Qdq(), "before others take its Conv, or fold its weights to floats"),
            (QdqElementWise(), "after qdq, which takes a Relu where saturation does it"),
            (MatmulIntegerFusion(), "quantised rewrites come first"),
            (DynamicQuantizeMatmul(), "of what matmul-integer-fusion has formed"),
            (ConvIntegerFusion(), "beside matmul-integer-fusion"),
            (DynamicQuantizeConv(), "of what conv-integer-fusion has formed"),
            (PadIntoConv(), "before Conv is made an operator of its own"),
            (PadIntoPool(), "after pad-into-conv, which takes most of what is padded"),
            (ConvBatchnormFold(), "before activations, so that Conv and Relu meet"),
            (ConvTransposeBatchnormFold(), "beside conv-batchnorm-fold"),
            (GemmBatchnormFold(), "beside conv-batchnorm-fold, before Linear is formed"),
            (ConvScaleFold(), "after the norms, which may stand before the arithmetic"),
            (MatmulScaleFold(), "after the norms, before Linear is formed"),
            (BatchnormScaleFold(), "of norms that no product has taken"),
            (LayerNormalization(), "before rms-normalization, whose parts it has"),
            (RmsNormalization(), "before other rules take its products"),
            (GroupNormalization(), "before activations, which follow it"),
            (Softplus(), "before mish, which has one"),
            (Mish(), "before products with weights take their activations in"),
            (Gelu(), "before products with weights take their activations in"),
            (TanhGelu(), "before products with weights take their activations in"),
            (QuickGelu(), "before swish, which takes any factor"),
            (HardSwish(), "before hard-sigmoid, which is a part of it"),
            (HardSigmoid(), "before products with weights take their activations in"),
            (Swish(), "before products with weights take their activations in"),
            (Attention(), "before products with weights are packed"),
            (RotaryEmbedding(), "after attention, which takes other readers of its parts"),
            (AttentionScaleFold(), "while queries have weights of their own"),
            (QkvMerge(), "of what attention reads, before products are packed"),
            (MatmulAddToGemm(), "after attention, which knows masked products as they are"),
            (LinearPackFuse(), "after activations are formed and Gemms joined, to take both"),
            (ScaleIntoConv(), "after activations, whose last factor stands before a Conv"),
            (ConvActivation(), "after activations are formed and all is folded into weights"),
            (SkipNormalization(), "before chains take its sums in"),
            (ElementWiseFusion(), "of what no other rule has taken"),
            (RemoveDoublePermute(), "of what fusion has brought together"),
            (DropBoundaryPermutes(), "when no other Transpose is in between"),
            (ReleaseQuantisation(), "when every quantised rewrite has had its turn"),
        ),
        whole(RecoverReshapes(), "shape vectors that only went with what is fused have gone"),
        whole(CommonSubexpressions(), "of what reads the same vectors now"),
        whole(MergeEqualConstants(), "of what rewrites have made"),
        whole(Prune(), "last, as everything before may leave nodes without readers"),
    ),
)
