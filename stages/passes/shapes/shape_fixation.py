"""shape-fixation: fold what hangs on shapes only, once those are known.

    Reshape(x, Concat(Gather(Shape(x: 2x3x4), 0), -1))   ->   Reshape(x, [2, 12])

One traversal of infer-shapes, dimension-compute, constant-folding, eliminate-identity,
dimension-adjust and reshape-remove, which say themselves what they leave alone. It stands before
fusion for graphs whose inputs are pinned after the earlier stages, or without them. Preserves bits,
as each of these does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.stages.context import EVERYTHING, PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.pass_base import GraphPass, NodePass
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.folding.dimension_compute import DimensionCompute
from foldline.stages.passes.shapes.dimension_adjust import DimensionAdjust
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.shapes.reshape_remove import ReshapeRemove
from foldline.support.passes import PASSES

SHOWN: tuple[NodePass, ...] = (
    InferShapes(trusted=True),
    DimensionCompute(),
    ConstantFolding(),
    EliminateIdentity(),
    DimensionAdjust(),
    ReshapeRemove(),
)
"""What is shown each node, in turn."""


@dataclass(frozen=True)
class ShapeFixation(GraphPass):
    """Fold what hangs on shapes."""

    name = "shape-fixation"
    INFO: ClassVar = PASSES["shape-fixation"]

    def run(self, context: PassContext) -> None:
        """Traverse the module once."""
        options = context.options
        passes = SHOWN if options is EVERYTHING else [p.configured(options) for p in SHOWN]
        Traversal(context, [p.visitor(context) for p in passes]).run()
