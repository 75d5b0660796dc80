"""What fused operators stand for: the standard operators that files get in their place.

An expansion is also the definition of its operator: kernels are tested against it. Where the
model's operator set has the operator itself (Gelu from 20 on), that is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from xdsl.ir import Operation, SSAValue

from foldline.dialects.fused import (
    expand_attention,
    expand_conv,
    expand_elementwise,
    expand_linear,
    expand_normalisation,
    expand_quantised,
)
from foldline.dialects.fused.parts import Parts
from foldline.dialects.fused.signatures import FUSED_DOMAIN
from foldline.dialects.onnx.op import NodeOp, OnnxOp, opset_versions

Expansion: TypeAlias = Callable[[OnnxOp, Parts], Any]
"""Makes the parts of an operator; gives its results."""


def is_fused(op: Operation) -> bool:
    """Whether an operation is one of the fused dialect."""
    return isinstance(op, NodeOp) and op.domain == FUSED_DOMAIN


def parts_of(op: OnnxOp) -> tuple[list[Operation], tuple[SSAValue, ...]]:
    """The standard operators that a fused one stands for, and what takes its results' place."""
    parts = Parts(opset_versions(op))
    made = EXPANSIONS[op.op_type](op, parts)
    results = cast("tuple[SSAValue, ...]", made if isinstance(made, tuple) else (made,))
    return parts.made, results


EXPANSIONS: dict[str, Expansion] = {
    "Attention": expand_attention.attention,
    "Conv": expand_conv.conv,
    "ConvTranspose": expand_conv.conv,
    "ConvIntegerToFloat": expand_quantised.conv_integer_to_float,
    "DynamicQuantizeConv": expand_quantised.dynamic_quantize_conv,
    "DynamicQuantizeMatMul": expand_quantised.dynamic_quantize_matmul,
    "Gelu": expand_elementwise.gelu,
    "GroupNormalization": expand_normalisation.group,
    "HardSwish": expand_elementwise.hard_swish,
    "LayerNormalization": expand_normalisation.layer,
    "Linear": expand_linear.linear,
    "MatMulIntegerToFloat": expand_quantised.matmul_integer_to_float,
    "Mish": expand_elementwise.mish,
    "QLinearActivation": expand_quantised.qlinear_activation,
    "QLinearAdd": expand_quantised.qlinear_arithmetic,
    "QLinearBatchNormalization": expand_quantised.qlinear_batch_normalization,
    "QLinearGemm": expand_quantised.qlinear_gemm,
    "QLinearGlobalAveragePool": expand_quantised.qlinear_global_average_pool,
    "QLinearMul": expand_quantised.qlinear_arithmetic,
    "RMSNormalization": expand_normalisation.rms,
    "RotaryEmbedding": expand_attention.rotary_embedding,
    "SkipLayerNormalization": expand_normalisation.skip_layer,
    "SkipRMSNormalization": expand_normalisation.skip_rms,
    "Swish": expand_elementwise.swish,
}
