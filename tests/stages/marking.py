"""A pass for tests that marks what hangs on static shapes only: each Shape and Size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ShapeOp, SizeOp
from foldline.dialects.onnx.types import static_shape
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.folding.engine import Declined
from foldline.stages.folding.potential import PotentialFolding
from foldline.stages.folding.refusals import FoldingPass
from foldline.stages.pass_base import NodePass
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.potential_const_taken_effect import PotentialConstTakenEffect
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import Array


@dataclass(frozen=True)
class ShapeMarks(FoldingPass):
    """Mark Shape and Size."""

    name = "shape-marks"

    def visitor(self, context: PassContext) -> NodeVisitor:
        return _Visitor(self, context)


class _Visitor(PotentialFolding):
    def is_candidate(self, op: NodeOp) -> bool:
        return isinstance(op, ShapeOp | SizeOp) and static_shape(op.operands[0].type) is not None

    def is_final(self, op: NodeOp) -> bool:
        return False

    def compute(self, op: NodeOp) -> Sequence[Array] | Declined:
        shape = static_shape(op.operands[0].type) or ()
        return [np.asarray(shape if isinstance(op, ShapeOp) else math.prod(shape), np.int64)]


MARKING: tuple[NodePass, ...] = (InferShapes(), ShapeMarks(), ConstantFolding())
"""As prepare does."""
TAKING: tuple[NodePass, ...] = (*MARKING, PotentialConstTakenEffect())
"""As stage1 does."""


def traverse(context: PassContext, passes: Sequence[NodePass] = MARKING) -> PassContext:
    """One traversal with several passes."""
    Traversal(context, [given.visitor(context) for given in passes]).run()
    return context
