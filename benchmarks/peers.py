"""The peers: other tools that optimise a model, each with its package and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx

from benchmarks.zoo import FOLDER

ONNXSIM_MOVES_BITS = """
    fuse_add_bias_into_conv fuse_bn_into_conv fuse_matmul_add_bias_into_gemm
    fuse_matmul_add_bias_into_gemm_batched fuse_qkv fuse_pad_into_pool fuse_transpose_into_gemm
    fuse_mul_into_conv fuse_preceding_mul_into_conv fuse_matmul_into_conv
    fuse_reduce_sum_into_conv fuse_consecutive_mul fuse_consecutive_reduce fuse_layer_norm
    fuse_gelu fuse_rms_norm fuse_attention fuse_gqa fuse_rope fuse_lp_normalization
""".split()
"""The passes of onnxsim 0.8 that change last bits, `skip_fuse_bn` apart."""

ORT_MOVES_BITS = """
    ConvAddFusion ConvMulFusion ConvBNFusion MatMulAddFusion GemmSumFusion
    MatMul_BatchNormalization_Fusion GeluFusionL1 LayerNormFusionL1 SimplifiedLayerNormFusion
    QDQPropagationTransformer DivMulFusion WeightBiasQuantization GemmTransposeFusion
""".split()
"""The transformers of ONNX Runtime's basic level that change last bits and can be left out."""


def _onnxsim(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    import onnxsim

    simplified, _ = onnxsim.simplify(model, **options)
    return simplified


def _onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    return onnxslim.slim(model)


def _onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxscript.optimizer

    return onnxscript.optimizer.optimize(model)


def _ort(model: onnx.ModelProto, level: str, skipped: Sequence[str] = ()) -> onnx.ModelProto:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 3
    out = FOLDER / f".offline-{level}.onnx"
    options.optimized_model_filepath = str(out)
    onnxruntime.InferenceSession(
        model.SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=list(skipped),
    )
    optimised = onnx.load(out)
    out.unlink()
    return optimised


PEERS: dict[str, tuple[str, Callable[[onnx.ModelProto], onnx.ModelProto]]] = {
    "onnxsim": ("onnxsim", _onnxsim),
    "onnxslim": ("onnxslim", _onnxslim),
    "onnxscript": ("onnxscript", _onnxscript),
    "ORT basic": ("onnxruntime", partial(_ort, level="ORT_ENABLE_BASIC")),
    "ORT extended": ("onnxruntime", partial(_ort, level="ORT_ENABLE_EXTENDED")),
    "onnxsim =": (
        "onnxsim",
        partial(_onnxsim, skip_fuse_bn=True, skipped_optimizers=list(ONNXSIM_MOVES_BITS)),
    ),
    "ORT basic =": (
        "onnxruntime",
        partial(_ort, level="ORT_ENABLE_BASIC", skipped=ORT_MOVES_BITS),
    ),
}
"""Column to the package it needs and what it does; `=` marks peers held to the bits."""

EQUAL_BITS = ("onnxsim =", "ORT basic =")
"""The peers that no model may have fewer nodes by than by Foldline."""
