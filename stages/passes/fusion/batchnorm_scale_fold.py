"""batchnorm-scale-fold: fold arithmetic with constants into the BatchNormalization before it.

    Add(Mul(BatchNormalization(x, gamma, beta, …), m), a)
        ->   BatchNormalization(x, gamma m, beta m + a, …)

So with Div and Sub, in any order; `m` and `a` are one number or one a channel. In float64 and
rounded once. Left alone: a training BatchNormalization, one that others read, results that would
not be finite. Last bits move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.stages.rewrite.weight_fold import ARITHMETIC, WeightFold, tail_patterns
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class BatchnormScaleFold(WeightFold):
    """Fold arithmetic into BatchNormalization."""

    name = "batchnorm-scale-fold"
    INFO: ClassVar = PASSES["batchnorm-scale-fold"]
    PATTERNS: ClassVar = (*tail_patterns(("BatchNormalization",), ARITHMETIC, 3),)
