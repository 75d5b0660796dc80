"""Folding that can be put off: compute a node, then fold it, or mark it as a potential constant.

    candidate? ── no ──────────────→ its own mark goes
       │ kept by the user, a pass ─→ every mark goes
       │ refused, cannot be ───────→ its own mark goes        (each with a remark)
       │ computed
       ├── final ──────────────────→ folded
       └── may still change, or ───→ marked: readers go on from the value, and
           names an output             potential-const-taken-effect folds it later

A mark of another pass stands: whoever came first has computed the same value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from xdsl.ir import Operation

from foldline.dialects.fold import FullyKnown
from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import AbsentType, static_shape
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.folding.engine import Declined
from foldline.stages.folding.known import mark_of
from foldline.stages.folding.refusals import FoldingPass, Refusals

Array = npt.NDArray[Any]


class PotentialFolding(NodeVisitor, ABC):
    """The steps that every pass which folds or marks goes through."""

    def __init__(self, options: FoldingPass, context: PassContext):
        super().__init__(options.name, context)
        self.refusals = Refusals(options)

    @abstractmethod
    def is_candidate(self, op: NodeOp) -> bool:
        """Whether the node is of this pass's business; no remark is made where it is not."""

    @abstractmethod
    def is_final(self, op: NodeOp) -> bool:
        """Whether what is computed cannot change any more: then the node is folded."""

    @abstractmethod
    def compute(self, op: NodeOp) -> Sequence[Array] | Declined:
        """The results in order, or why they cannot be had. Sizes are checked before."""

    def visit(self, op: NodeOp) -> None:
        """Fold, mark or unmark a node."""
        if is_constant(op):
            return
        if not self.is_candidate(op):
            self._unmark(op)
            return
        kept = self.refusals.by_user(op) or self.refusals.by_pass(op)
        if kept is not None:
            self.rewriter.drop_facts(op)
            self.declined(op, kept)
            return
        named = self.refusals.by_name(op)
        if (named is not None or not self.is_final(op)) and self._is_marked_by_other(op):
            if named is not None:
                self.declined(op, named)
            return
        outcome = self.compute(op)
        if isinstance(outcome, Declined):
            self._unmark(op)
            self.declined(op, outcome.reason)
        elif named is not None:
            self._mark(op, outcome)
            self.declined(op, named)
        elif self.is_final(op):
            self.applied(op, f"computed {_shapes(op, outcome) or 'nothing that is used'}")
            self.rewriter.replace_by_constants(op, outcome)
        else:
            self._mark(op, outcome)

    def visit_after_bodies(self, op: NodeOp) -> None:
        """Nothing: what a node with bodies is for was found before they were walked."""

    def _mark(self, op: NodeOp, arrays: Sequence[Array]) -> None:
        """Note the values, and give the results the types that the values have."""
        tensors = [
            None if isinstance(result.type, AbsentType) else TensorAttr.of(array)
            for result, array in zip(op.results, arrays, strict=True)
        ]
        for result, tensor in zip(op.results, tensors, strict=True):
            if tensor is not None and static_shape(result.type) != tensor.array.shape:
                self.rewriter.set_type(result, tensor.type)
        facts = [None if tensor is None else FullyKnown(tensor, self.name) for tensor in tensors]
        self.rewriter.set_facts(op, facts)
        self.note(op, f"marked as potential constant {_shapes(op, arrays)}")

    def _unmark(self, op: NodeOp) -> None:
        """Take back what this pass noted: it does not hold, or nothing says that it does."""
        if (mark := mark_of(op)) is not None and mark.source == self.name:
            self.rewriter.drop_facts(op)

    def _is_marked_by_other(self, op: NodeOp) -> bool:
        mark = mark_of(op)
        return mark is not None and mark.source != self.name


def _shapes(op: Operation, arrays: Sequence[Array]) -> str:
    used = [a for a, r in zip(arrays, op.results, strict=True) if r.first_use is not None]
    return ", ".join(f"{a.dtype}{list(a.shape)}" for a in used)
