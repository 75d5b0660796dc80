"""conv-batchnorm-fold: fold a BatchNormalization into the Conv before it.

    BatchNormalization(Conv(x, W, b), gamma, beta, mean, var)
        ->   Conv(x, W s, (b - mean) s + beta)

with `s = gamma / sqrt(var + epsilon)`, all in float64 and rounded once to the type of the weights.
Requires constants, inference mode, weights of float or double, and a Conv that nothing else reads.
Left alone: weights that the fold would make infinite, splats that it would fill, weights that
other nodes go on reading. Last bits move, as the product is rounded in another place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.stages.rewrite.weight_fold import WeightFold, tail_patterns
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class ConvBatchnormFold(WeightFold):
    """Fold BatchNormalization into Conv."""

    name = "conv-batchnorm-fold"
    INFO: ClassVar = PASSES["conv-batchnorm-fold"]
    PATTERNS: ClassVar = (*tail_patterns(("Conv",), ("BatchNormalization",)),)
