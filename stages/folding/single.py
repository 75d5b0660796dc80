"""Folding of one node, for passes that need a constant at once."""

from __future__ import annotations

from foldline.dialects.onnx.op import NodeOp
from foldline.stages.context import EVERYTHING, PassContext
from foldline.stages.folding.refusals import FoldingPass
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
from foldline.stages.passes.folding.replace_with_empty_const import ReplaceWithEmptyConst

IN_ORDER: tuple[FoldingPass, ...] = (ConstantFolding(), DimensionCompute(), ReplaceWithEmptyConst())


def fold_now(op: NodeOp, context: PassContext) -> bool:
    """Fold one node under the limits of the compile, whatever passes run; whether it is gone.

    Asked in the order of the stages: its inputs are constant, its result hangs on shapes only, its
    result is empty. Why it is left alone is remarked as ever.
    """
    for each in IN_ORDER:
        given = each if context.options is EVERYTHING else each.configured(context.options)
        given.visitor(context).visit(op)
        if op.parent is None:
            return True
    return False
