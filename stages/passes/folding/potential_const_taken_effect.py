"""potential-const-taken-effect: fold what earlier stages marked as potential constants.

    %s = onnx.Shape(%x) {fold.known = …}   ->   %s = onnx.Constant() {value = #onnx.tensor<…>}

One sweep over the module in its order; nothing is computed. A mark whose operands no longer hold is
dropped with a remark: one that rests on an operand which is not known any more, or that is not of
the type of its result; and all marks after a stage that stopped at a bound, which may have left
some without looking again. Marks of nodes that name an output of the model, or that the user or a
pass keeps, stay: their readers fold from them.

At the end of a traversal the sweep runs whenever the graphs have drained; what it folded is looked
at in another round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.folding.known import Mark, is_of_type, known_tensor, mark_of
from foldline.stages.folding.refusals import FoldingPass, Refusals, constant_problem
from foldline.stages.pass_base import GraphPass
from foldline.support.dtypes import BY_NUMPY
from foldline.support.passes import PASSES

FOLDING = "constant-folding"


@dataclass(frozen=True)
class PotentialConstTakenEffect(FoldingPass, GraphPass):
    """Fold marks."""

    name = "potential-const-taken-effect"
    INFO: ClassVar = PASSES["potential-const-taken-effect"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass as the callback of a traversal."""
        return _Visitor(self, context)

    def run(self, context: PassContext) -> None:
        """Sweep once."""
        sweep = _Visitor(self, context)
        sweep.finish(are_stale=bool(context.bounds))


class _Visitor(NodeVisitor):
    def __init__(self, options: FoldingPass, context: PassContext):
        super().__init__(options.name, context)
        self._refusals = Refusals(options)

    def visit(self, op: NodeOp) -> None:
        """Nothing: marks are folded when all nodes have been seen."""

    def finish(self, *, are_stale: bool = False) -> None:
        """Fold all marks, or drop them."""
        for op in [op for op in self.context.module.walk() if mark_of(op) is not None]:
            # A mark may have been dropped, or a node removed, with one before it.
            mark = mark_of(op)
            if mark is not None and isinstance(op, NodeOp) and op.parent is not None:
                self._settle(op, mark, are_stale)

    def _settle(self, op: NodeOp, mark: Mark, are_stale: bool) -> None:
        problem = "a stage stopped at a bound" if are_stale else _problem(op, mark)
        if problem is not None:
            self.note(op, f"dropped what {mark.source} marked: {problem}")
            self.rewriter.drop_facts(op)
            return
        refusals = self._refusals
        kept = refusals.by_user(op) or refusals.by_pass(op) or refusals.by_name(op)
        reason = kept or self._size_problem(op, mark)
        if reason is not None:
            self.declined(op, reason)
            return
        self.applied(op, f"folded what {mark.source} marked")
        self.rewriter.take_mark(op, self.context.stage)

    def _size_problem(self, op: NodeOp, mark: Mark) -> str | None:
        tensors = [tensor for tensor in mark.tensors if tensor is not None]
        for tensor in tensors:
            problem = constant_problem(op, BY_NUMPY[tensor.array.dtype])
            if problem is not None:
                return problem
        given = [known and known.tensor for known in map(known_tensor, op.operands)]
        return self._refusals.by_bytes(sum(t.data.stored_bytes for t in tensors), given)


def _problem(op: Operation, mark: Mark) -> str | None:
    """Why a mark does not hold."""
    for index, (result, tensor) in enumerate(zip(op.results, mark.tensors, strict=True)):
        if tensor is not None and not is_of_type(tensor.array, result.type):
            return f"result {index} is {result.type}, the mark {tensor.type}"
    if mark.source == FOLDING:
        for index, operand in enumerate(op.operands):
            if not isinstance(operand.type, AbsentType) and known_tensor(operand) is None:
                return f"operand {index} is not known any more"
    return None
