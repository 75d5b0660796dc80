"""prune: remove operators and constants that no output depends on.

    %y = onnx.Relu(%x)   (no use)   ->   (nothing)

One sweep against program order, so that a chain goes in one go. Bodies are pruned too, and a node
with bodies, or a call, goes when all inside may. Inputs, their defaults, functions, custom
operators and operators that draw random numbers stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Block, Operation
from xdsl.traits import Pure

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.structure import CallOp, FunctionOp, ReturnOp, functions, main_graph
from foldline.dialects.onnx.traits import NonDeterministic
from foldline.stages.context import PassContext
from foldline.stages.inference.calls import by_symbol, callee
from foldline.stages.pass_base import GraphPass
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class Prune(GraphPass):
    """Remove what is dead."""

    name = "prune"
    INFO: ClassVar = PASSES["prune"]

    def run(self, context: PassContext) -> None:
        """Sweep the main graph and the functions."""
        sweep = _Sweep(context, self.name)
        for graph in (main_graph(context.module), *functions(context.module)):
            sweep.block(graph.regions[0].block)


class _Sweep:
    def __init__(self, context: PassContext, name: str):
        self._context = context
        self._name = name
        self._functions = by_symbol(context.module)
        self._is_removable: dict[FunctionOp, bool] = {}

    def block(self, block: Block) -> None:
        """Prune a block, last operation first."""
        op = block.last_op
        while op is not None:
            before = op.prev_op
            if not any(result.first_use for result in op.results) and self._removable(op):
                if isinstance(op, NodeOp):
                    self._context.remark("applied", self._name, op, "nothing depends on it")
                self._context.rewriter.erase(op)
            else:
                for region in op.regions:
                    self.block(region.block)
            op = before

    def _removable(self, op: Operation) -> bool:
        """Whether running an operation can be seen in nothing but its results."""
        if op.has_trait(NonDeterministic):
            return False
        if op.has_trait(Pure):
            return True
        if isinstance(op, CallOp):
            function = self._functions.get(callee(op))
            return function is not None and self._function_removable(function)
        return (
            isinstance(op, OnnxOp)
            and bool(op.regions)
            and all(
                isinstance(inner, ReturnOp) or self._removable(inner)
                for region in op.regions
                for inner in region.block.ops
            )
        )

    def _function_removable(self, function: FunctionOp) -> bool:
        known = self._is_removable.get(function)
        if known is None:
            known = self._is_removable[function] = all(
                isinstance(inner, ReturnOp) or self._removable(inner)
                for inner in function.body.block.ops
            )
        return known
