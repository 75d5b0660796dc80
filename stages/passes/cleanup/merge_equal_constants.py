"""merge-equal-constants: keep one of several constants of the same type and the same bits.

    %a = onnx.Constant() {value = #v}; %b = onnx.Constant() {value = #v}   ->   %a for both

Initializers and Constant nodes merge into the first that is defined wherever the other one is: one
of the same block, or of a block around it. Values that are outputs keep their own constant, and
defaults of inputs are no constants. Bytes are compared only among constants of one type and shape
that begin alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Block, Operation, SSAValue

from foldline.dialects.onnx.constant import ConstantOp, constant_tensor, is_constant
from foldline.dialects.onnx.structure import functions, main_graph
from foldline.dialects.onnx.tensor import SparseTensorAttr
from foldline.stages.context import PassContext
from foldline.stages.equal_constants import TensorTable
from foldline.stages.pass_base import GraphPass
from foldline.stages.rewriting import is_returned
from foldline.support.passes import PASSES

_Known = TensorTable[SSAValue]


@dataclass(frozen=True)
class MergeEqualConstants(GraphPass):
    """Merge constants by their bits."""

    name = "merge-equal-constants"
    INFO: ClassVar = PASSES["merge-equal-constants"]

    def run(self, context: PassContext) -> None:
        """Merge in the main graph and in each function."""
        for graph in (main_graph(context.module), *functions(context.module)):
            self._merge(context, graph.regions[0].block, TensorTable())

    def _merge(self, context: PassContext, block: Block, known: _Known) -> None:
        """Merge in a block; `known` are the constants defined before it, in its sight."""
        for op in block.ops:
            for region in op.regions:
                self._merge(context, region.block, known.inner())
            if is_constant(op) and not _is_sparse(op):
                self._merge_one(context, op, known)

    def _merge_one(self, context: PassContext, op: Operation, known: _Known) -> None:
        value = op.results[0]
        tensor = constant_tensor(value)
        if tensor is None:
            return
        same = known.find_or_add(tensor.data, value)
        if same is not value and not is_returned(value):
            context.remark("applied", self.name, op, "an equal constant is used in its place")
            context.rewriter.replace_uses(value, same)
            context.rewriter.erase(op)


def _is_sparse(op: Operation) -> bool:
    if isinstance(op, ConstantOp):
        return any(isinstance(value, SparseTensorAttr) for value in op.properties.values())
    return "sparse" in op.properties
