"""remove-isolated-constants: remove constants that nothing reads.

    %c = onnx.Constant()   (no use)   ->   (nothing)

Initializers and Constant nodes go, in the graph, in bodies and in functions. What computes stays,
and so do the inputs of the model and their defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Block

from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.structure import functions, main_graph
from foldline.stages.context import PassContext
from foldline.stages.pass_base import GraphPass
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class RemoveIsolatedConstants(GraphPass):
    """Remove unread constants."""

    name = "remove-isolated-constants"
    INFO: ClassVar = PASSES["remove-isolated-constants"]

    def run(self, context: PassContext) -> None:
        """Sweep the main graph and the functions."""
        for graph in (main_graph(context.module), *functions(context.module)):
            self._sweep(context, graph.body.block)

    def _sweep(self, context: PassContext, block: Block) -> None:
        for op in list(block.ops):
            for region in op.regions:
                self._sweep(context, region.block)
            if is_constant(op) and op.results[0].first_use is None:
                context.remark("applied", self.name, op, "nothing reads it")
                context.rewriter.erase(op)
