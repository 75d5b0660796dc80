"""dimension-compute: compute what hangs on shapes only, element by element, symbols included.

    %s = onnx.Shape(%x: [N, 3, H, W])      known as [N, 3, H, W]
    %c = onnx.Gather(%s, 1)           ->   %c = onnx.Constant() {value = 3}

Only the built-in dimension kernels compute here, on integers and truth values; they give what the
runtime's kernels give, bit for bit. A node of which every element is a number is folded, or with
`mark_only` marked as a potential constant. One of which some elements are numbers or expressions of
unknown sizes keeps a note of them, which says in dumps what later passes go by. Left alone: nodes
of constants only, which constant-folding computes; and, each with a remark, what the user or a pass
keeps, what names an output of the model, and what is too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from foldline.dialects.fold import PartlyKnown, get_fact, set_fact
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.context import PassContext
from foldline.stages.folding.engine import Declined
from foldline.stages.folding.known import is_of_type
from foldline.stages.folding.potential import PotentialFolding
from foldline.stages.folding.refusals import FoldingPass, constant_problem
from foldline.stages.symbols.expression import Expr
from foldline.stages.symbols.facts import Elements, Item
from foldline.stages.symbols.value_rules import VALUE_RULES
from foldline.support.dtypes import BY_NUMPY
from foldline.support.passes import PASSES

Array = npt.NDArray[Any]

COMPUTED = "ib"
"""Kinds of elements that are folded here; floats are left to the kernels that run models."""


@dataclass(frozen=True)
class DimensionCompute(FoldingPass):
    """Compute shapes and what is computed from them."""

    name = "dimension-compute"
    INFO: ClassVar = PASSES["dimension-compute"]

    mark_only: bool = False
    """Mark as potential constants, fold nothing."""

    def visitor(self, context: PassContext) -> PotentialFolding:
        """The pass for one traversal."""
        return _Visitor(self, context)


class _Visitor(PotentialFolding):
    def __init__(self, options: DimensionCompute, context: PassContext):
        super().__init__(options, context)
        self._mark_only = options.mark_only
        self._partly: dict[NodeOp, None] = {}

    def is_candidate(self, op: NodeOp) -> bool:
        """Whether the dimension kernels know every element of every result."""
        if type(op) not in VALUE_RULES or all(map(constant_tensor, op.operands)):
            return False
        found = self._elements(op)
        if any(e is not None and not e.is_known for e in found):
            self._partly[op] = None
        return all(
            isinstance(result.type, AbsentType)
            or (e is not None and e.is_known and e.dtype.kind in COMPUTED)
            for result, e in zip(op.results, found, strict=True)
        )

    def is_final(self, op: NodeOp) -> bool:
        """Whether shapes cannot change any more."""
        return not self._mark_only

    def compute(self, op: NodeOp) -> Sequence[Array] | Declined:
        """The elements as arrays."""
        arrays: list[Array] = []
        for result, elements in zip(op.results, self._elements(op), strict=True):
            if elements is None:
                continue
            array = elements.array()
            if not is_of_type(array, result.type):
                return Declined(f"its elements {array.tolist()} are not of type {result.type}")
            if (problem := constant_problem(op, BY_NUMPY[array.dtype])) is not None:
                return Declined(problem)
            arrays.append(array)
        tensors = [constant_tensor(operand) for operand in op.operands]
        problem = self.refusals.by_bytes(sum(array.nbytes for array in arrays), tensors)
        return arrays if problem is None else Declined(problem)

    def finish(self) -> None:
        """Note what is known in part.

        Nobody goes by the notes, so they are no change that somebody would have to look at.
        """
        for op in self._partly:
            if op.parent is None:
                continue
            for result, elements in zip(op.results, self._elements(op), strict=True):
                if elements is not None and get_fact(result) is None and not elements.is_known:
                    set_fact(result, _note(elements, self.name))
        self._partly.clear()

    def _elements(self, op: NodeOp) -> list[Elements | None]:
        return [self.context.knowledge.elements(result) for result in op.results]


def _note(elements: Elements, source: str) -> PartlyKnown:
    items = tuple(_noted(item) for item in elements.items)
    return PartlyKnown(BY_NUMPY[elements.dtype].name, elements.shape, items, source)


def _noted(item: Item) -> int | str | None:
    """An element as a note holds it: notes are of integers, and of what hangs on sizes."""
    if isinstance(item, Expr):
        return str(item)
    return int(item) if isinstance(item, int) else None
