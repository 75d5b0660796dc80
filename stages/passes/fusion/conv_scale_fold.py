"""conv-scale-fold: fold arithmetic with constants into the convolution before it.

    Add(Mul(Conv(x, W, b), m), a)   ->   Conv(x, W m, b m + a)

So with Div and Sub, in any order, and with ConvTranspose; `m` and `a` are one number or one a
channel. In float64 and rounded once to the type of the weights, float or double. Left alone: a
convolution that others read, results that would not be finite or would take more memory. Last bits
move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.stages.rewrite.weight_fold import ARITHMETIC, WeightFold, tail_patterns
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class ConvScaleFold(WeightFold):
    """Fold arithmetic into convolutions."""

    name = "conv-scale-fold"
    INFO: ClassVar = PASSES["conv-scale-fold"]
    PATTERNS: ClassVar = (*tail_patterns(("Conv", "ConvTranspose"), ARITHMETIC, 3),)
