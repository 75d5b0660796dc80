"""gemm-batchnorm-fold: fold a BatchNormalization into the Gemm or MatMul before it.

    BatchNormalization(Gemm(x, W, c), gamma, beta, mean, var)
        ->   Gemm(x, W s, (beta' c - mean) s + beta)
    BatchNormalization(Add(MatMul(x, W), c), …)   ->   Add(MatMul(x, W s), (c - mean) s + beta)

with `s = gamma / sqrt(var + epsilon)` a column and `beta'` that of Gemm, in float64 and rounded
once. Requires a result of rank 2, whose axis 1 the columns are. Last bits move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.stages.rewrite.weight_fold import WeightFold, after_addition, tail_patterns
from foldline.support.passes import PASSES

_NORM = ("BatchNormalization",)


@dataclass(frozen=True)
class GemmBatchnormFold(WeightFold):
    """Fold BatchNormalization into Gemm and MatMul."""

    name = "gemm-batchnorm-fold"
    INFO: ClassVar = PASSES["gemm-batchnorm-fold"]
    PATTERNS: ClassVar = (
        *after_addition(_NORM),
        *tail_patterns(("Gemm", "MatMul"), _NORM),
    )
