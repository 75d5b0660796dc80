"""release-quantisation: what becomes of dequantised weights that no quantised rewrite took.

    %f = onnx.DequantizeLinear(%c, %s) {fold.no_need = …}

With `export.quantisation: keep` they stay, so that files keep their integer weights. Sessions lose
nothing: what hangs on constants only is computed once, when a program is made. With `fold` they
are folded to floats here, however large, and what only arranges them with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from foldline.dialects.fold.flags import clear_no_need, no_need_reason
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ReshapeOp, TransposeOp
from foldline.stages.context import EVERYTHING, PassContext, PassOptions
from foldline.stages.pass_base import GraphPass
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.support.passes import PASSES

LAYOUT = (TransposeOp, ReshapeOp)
"""What may stand between a dequantised weight and its reader."""


@dataclass(frozen=True)
class ReleaseQuantisation(GraphPass):
    """Fold dequantised weights, where the file is to have floats."""

    name = "release-quantisation"
    INFO: ClassVar = PASSES["release-quantisation"]

    folds: bool = False
    """Whether they are folded."""

    def configured(self, options: PassOptions) -> Self:
        """As `export.quantisation` says."""
        return replace(self, folds=options["export.quantisation"] == "fold")

    def run(self, context: PassContext) -> None:
        """Fold what was kept from it, operators before their readers."""
        if not self.folds:
            return
        given = ConstantFolding()
        if context.options is not EVERYTHING:
            given = given.configured(context.options)
        visitor = replace(given, max_bytes=None).visitor(context)
        for op in list(context.module.walk()):
            if isinstance(op, NodeOp) and op.parent is not None:
                is_kept = no_need_reason(op) is not None
                clear_no_need(op)
                if is_kept or isinstance(op, LAYOUT):
                    visitor.visit(op)
