"""infer-value-range: find bounds of integer values; where they meet, the value is known.

    %m = onnx.Mod(%x, 1) : tensor<4xi64>   ->   marked as potential constant [0, 0, 0, 0]

Bounds are intervals that hold in every run: what an operator's rule says of the bounds of its
inputs, or what the element type can hold. Left alone: operators without a rule, results of unknown
size, and, each with a remark, what the user or a pass keeps and what names an output of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt
from xdsl.ir import SSAValue

from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.tensor import splat
from foldline.dialects.onnx.traits import is_pure
from foldline.dialects.onnx.types import AbsentType, element_of, element_type, static_shape
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.folding.engine import Declined
from foldline.stages.folding.known import known_tensor, mark_of
from foldline.stages.folding.potential import PotentialFolding
from foldline.stages.folding.ranges import RULES, Range, range_of_tensor, range_of_type
from foldline.stages.folding.refusals import FoldingPass, constant_problem
from foldline.support.passes import PASSES

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class InferValueRange(FoldingPass):
    """Infer bounds of integers."""

    name = "infer-value-range"
    INFO: ClassVar = PASSES["infer-value-range"]

    mark_only: bool = False
    """Mark as potential constants, fold nothing."""

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self, context)


class _Visitor(PotentialFolding):
    def __init__(self, options: InferValueRange, context: PassContext):
        super().__init__(options, context)
        self._mark_only = options.mark_only
        self._ranges: dict[SSAValue, Range] = {}
        """Of the values for which there is more to say than their type does."""

    def visit(self, op: NodeOp) -> None:
        """Find the bounds of the results; whoever has read others is visited again."""
        rule = RULES.get(type(op)) if isinstance(op, OnnxOp) and not is_constant(op) else None
        if rule is None or not isinstance(op, OnnxOp):
            return
        found = rule(op, self._range_of)
        mark = mark_of(op)
        others = None if mark is None or mark.source == self.name else mark.tensors
        for index, result in enumerate(op.results):
            tensor = None if others is None else others[index]
            self._keep(result, found if tensor is None else range_of_tensor(tensor))
        super().visit(op)

    def is_candidate(self, op: NodeOp) -> bool:
        """Whether the bounds of all results meet, and their sizes are known."""
        given = [result for result in op.results if not isinstance(result.type, AbsentType)]
        return bool(given) and all(map(self._is_one_value, given)) and is_pure(op)

    def is_final(self, op: NodeOp) -> bool:
        """Whether bounds cannot change any more."""
        return not self._mark_only

    def compute(self, op: NodeOp) -> Sequence[Array] | Declined:
        """Arrays of one repeated element."""
        arrays: list[Array] = []
        for result in op.results:
            element, bounds = element_type(result.type), self._ranges.get(result)
            row = None if element is None else element_of(element)
            if row is None or bounds is None:
                arrays.append(splat(0, (), "int64"))
            elif (problem := constant_problem(op, row)) is not None:
                return Declined(problem)
            else:
                arrays.append(splat(bounds.low, static_shape(result.type) or (), row.numpy))
        return arrays

    def _keep(self, value: SSAValue, found: Range | None) -> None:
        holds = range_of_type(value.type)
        if found is None or holds is None or found.low < holds.low or found.high > holds.high:
            found = None
        old = self._ranges.pop(value, None)
        if found is not None:
            self._ranges[value] = found
        if old is not None and old != found:
            self.rewriter.withdraw(value)

    def _range_of(self, value: SSAValue) -> Range | None:
        found = self._ranges.get(value)
        if found is None and (known := known_tensor(value)) is not None:
            found = range_of_tensor(known.tensor)
            if found is not None and not known.is_potential:
                self._ranges[value] = found
        return range_of_type(value.type) if found is None else found

    def _is_one_value(self, value: SSAValue) -> bool:
        bounds, shape = self._ranges.get(value), static_shape(value.type)
        is_one = bounds is not None and bounds.low == bounds.high
        return is_one and shape is not None and 0 not in shape
