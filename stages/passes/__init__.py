"""Every pass, by what it is about."""

from __future__ import annotations

from foldline.stages.pass_base import Pass
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from foldline.stages.passes.cleanup.prune import Prune
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes

ALL_PASSES: tuple[type[Pass], ...] = (
    InferShapes,
    ConstantFolding,
    EliminateIdentity,
    MergeEqualConstants,
    Prune,
)
