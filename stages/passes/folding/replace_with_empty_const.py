"""replace-with-empty-const: replace operators whose results hold no element by empty constants.

    %y = onnx.Relu(%x) : tensor<0x4xf32>   ->   %y = onnx.Constant() {value = #onnx.tensor<…>}

All results must be known to be empty: of a static shape with a 0 in it. With `mark_only` the node
is marked as a potential constant instead, as shapes may still change. Left alone: operators with
bodies, calls, custom operators, what is random or may train, what a pass inserted; and, each with
a remark, what the user or a pass keeps and what names an output of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute

from foldline.dialects.fold import is_inserted
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.traits import is_pure
from foldline.dialects.onnx.types import AbsentType, element_of, element_type, static_shape
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.folding.engine import Declined
from foldline.stages.folding.potential import PotentialFolding
from foldline.stages.folding.refusals import FoldingPass, constant_problem
from foldline.support.passes import PASSES

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ReplaceWithEmptyConst(FoldingPass):
    """Replace what holds no element."""

    name = "replace-with-empty-const"
    INFO: ClassVar = PASSES["replace-with-empty-const"]

    mark_only: bool = False
    """Mark as potential constants, fold nothing."""

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self, context)


class _Visitor(PotentialFolding):
    def __init__(self, options: ReplaceWithEmptyConst, context: PassContext):
        super().__init__(options, context)
        self._mark_only = options.mark_only

    def is_candidate(self, op: NodeOp) -> bool:
        """Whether the node does nothing but give empty tensors."""
        return (
            all(_is_empty(r.type) or isinstance(r.type, AbsentType) for r in op.results)
            and any(not isinstance(r.type, AbsentType) for r in op.results)
            and isinstance(op, OnnxOp)
            and not op.regions
            and not is_inserted(op)
            and is_pure(op)
        )

    def is_final(self, op: NodeOp) -> bool:
        """Whether shapes cannot change any more."""
        return not self._mark_only

    def compute(self, op: NodeOp) -> Sequence[Array] | Declined:
        """Arrays without elements."""
        arrays: list[Array] = []
        for result in op.results:
            element = element_type(result.type)
            row = None if element is None else element_of(element)
            if row is None:
                arrays.append(np.empty(0, np.float32))
            elif (problem := constant_problem(op, row)) is not None:
                return Declined(problem)
            else:
                arrays.append(np.empty(static_shape(result.type) or (), row.numpy))
        return arrays


def _is_empty(attribute: Attribute) -> bool:
    shape = static_shape(attribute)
    return shape is not None and 0 in shape
