"""conv-transpose-batchnorm-fold: fold a BatchNormalization into the ConvTranspose before it.

    BatchNormalization(ConvTranspose(x, W, b), gamma, beta, mean, var)
        ->   ConvTranspose(x, W s, (b - mean) s + beta)

As conv-batchnorm-fold, but the channels of the result are axis 1 of the weights, group by group.
Last bits move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.stages.rewrite.weight_fold import WeightFold, tail_patterns
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class ConvTransposeBatchnormFold(WeightFold):
    """Fold BatchNormalization into ConvTranspose."""

    name = "conv-transpose-batchnorm-fold"
    INFO: ClassVar = PASSES["conv-transpose-batchnorm-fold"]
    PATTERNS: ClassVar = (*tail_patterns(("ConvTranspose",), ("BatchNormalization",)),)
