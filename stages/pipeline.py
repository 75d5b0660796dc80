"""The pipeline: one tuple, read from top to bottom."""

from __future__ import annotations

from foldline.stages.before_fusion import BEFORE_FUSION
from foldline.stages.fusion import FUSION
from foldline.stages.prepare import PREPARE
from foldline.stages.stage import Stage
from foldline.stages.stage1 import STAGE1
from foldline.stages.stage2 import STAGE2

PIPELINE: tuple[Stage, ...] = (
    PREPARE,
    STAGE1,
    STAGE2,
    BEFORE_FUSION,
    FUSION,
)
