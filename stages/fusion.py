"""fusion: listed groups of operators become single ones."""

from __future__ import annotations

from foldline.stages.passes.fusion.conv_batchnorm_fold import ConvBatchnormFold
from foldline.stages.stage import Stage, rewriting

FUSION = Stage(
    name="fusion",
    promise="listed groups are single operators",
    steps=(
        rewriting(
            (ConvBatchnormFold(), "before activations, so that Conv and Relu meet"),
        ),
    ),
)
