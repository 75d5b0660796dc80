"""matmul-scale-fold: fold arithmetic with constants into the Gemm or MatMul before it.

    Mul(MatMul(x, W), m)           ->   MatMul(x, W m)
    Mul(Add(MatMul(x, W), c), m)   ->   Add(MatMul(x, W m), c m)
    Add(Mul(Gemm(x, W, c), m), a)  ->   Gemm(x, W m, c m + a)

So with Div and Sub; `m` and `a` are one number or one a column. In float64 and rounded once. An
Add alone after MatMul stays: it is the bias. A BatchNormalization in between goes along, as what
follows it has to be folded before the product becomes an operator of its own. Last bits move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.stages.rewrite.weight_fold import (
    ARITHMETIC,
    WeightFold,
    after_addition,
    tail_patterns,
)
from foldline.support.passes import PASSES

_TAILS = (*ARITHMETIC, "BatchNormalization")


@dataclass(frozen=True)
class MatmulScaleFold(WeightFold):
    """Fold arithmetic into Gemm and MatMul."""

    name = "matmul-scale-fold"
    INFO: ClassVar = PASSES["matmul-scale-fold"]
    PATTERNS: ClassVar = (
        *after_addition(_TAILS, 3),
        *tail_patterns(("Gemm", "MatMul"), _TAILS, 3),
    )
