"""constant-folding: compute what depends on constants only.

    %s = onnx.Mul(%c0, %c1)   ->   %s = onnx.Constant() {value = #onnx.tensor<…>}

The kernels that run the model compute the value, bit for bit. Where an input is a potential
constant, which may still turn out otherwise, the node is marked as one too: readers go on from the
value. So is a node that names an output of the model. Left alone, each with a remark: what may
differ from run to run; what the user or a pass keeps; nodes with bodies, calls and custom
operators; results that are too large or have no known size; arithmetic that fails when run, which
then fails at run time as before; under MemoryPriority, what would copy a shared constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import NodeOp, describe
from foldline.dialects.onnx.structure import GraphOp
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.context import PassContext, PassOptions
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.folding.engine import DATA_ERRORS, Declined
from foldline.stages.folding.known import Known, is_of_type, known_tensor
from foldline.stages.folding.potential import PotentialFolding
from foldline.stages.folding.refusals import FoldingPass, refusal_by_kind
from foldline.stages.folding.splats import is_array, is_splat
from foldline.support.errors import KernelFailed
from foldline.support.passes import PASSES

Array = npt.NDArray[Any]

SHARED_ELEMENTS = 8
"""A shared constant of more elements is not folded through where memory has priority."""


@dataclass(frozen=True)
class ConstantFolding(FoldingPass):
    """Compute operators whose inputs are all constant."""

    name = "constant-folding"
    INFO: ClassVar = PASSES["constant-folding"]

    memory_priority: bool = False
    """Leave alone what reads a constant of more than 8 elements that others read as well."""

    def configured(self, options: PassOptions) -> Self:
        """With the limits of folding and `memoryPolicy`."""
        priority = options["memoryPolicy"] == "MemoryPriority"
        return replace(super().configured(options), memory_priority=priority)

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self, context)


class _Visitor(PotentialFolding):
    def __init__(self, options: ConstantFolding, context: PassContext):
        super().__init__(options, context)
        self._options = options

    def is_candidate(self, op: NodeOp) -> bool:
        """Whether all inputs are known."""
        return all(
            isinstance(operand.type, AbsentType) or known_tensor(operand) is not None
            for operand in op.operands
        )

    def is_final(self, op: NodeOp) -> bool:
        """Whether no input is a potential constant."""
        return not any(known.is_potential for known in _inputs(op) if known is not None)

    def compute(self, op: NodeOp) -> Sequence[Array] | Declined:
        """Run the engines."""
        given = _inputs(op)
        tensors = [None if known is None else known.tensor for known in given]
        inputs = [None if tensor is None else tensor.array for tensor in tensors]
        reason = (
            refusal_by_kind(op)
            or (self._options.memory_priority and _refusal_by_sharing(op, given))
            or self.refusals.by_size(op, tensors, inputs)
        )
        if reason:
            return Declined(reason)
        try:
            outcome = self.context.engines.fold(op, inputs)
        except KernelFailed as error:
            if _always_runs(op) or not isinstance(error.__cause__, DATA_ERRORS):
                raise
            return Declined(f"it fails if it runs: {error.__cause__}")
        if isinstance(outcome, Declined):
            return outcome
        return [
            _checked(op, index, outcome[index] if index < len(outcome) else None)
            for index in range(len(op.results))
        ]


def _inputs(op: NodeOp) -> list[Known | None]:
    return [known_tensor(operand) for operand in op.operands]


def _refusal_by_sharing(op: NodeOp, given: Sequence[Known | None]) -> str | None:
    """Why folding would cost memory: an input that others read as well must stay beside it.

    Inputs after the first potential one are not looked at: what hangs on that is folded later.
    """
    for operand, known in zip(op.operands, given, strict=True):
        if known is None:
            continue
        if known.is_potential:
            return None
        array = known.tensor.array
        if array.size > SHARED_ELEMENTS and not is_splat(array) and _has_other_reader(operand, op):
            return (
                f"memoryPolicy is MemoryPriority and others read its input of {array.size} elements"
            )
    return None


def _has_other_reader(value: SSAValue, op: NodeOp) -> bool:
    return any(use.operation is not op for use in value.uses)


def _checked(op: NodeOp, index: int, array: object) -> Array:
    """The result as it can be kept. Raises KernelFailed where it is not what inference says."""
    result = op.results[index]
    if not is_array(array):
        if result.first_use is None:
            return np.empty(0, np.float32)
        raise KernelFailed(f"folding {describe(op)} gave {array!r} for result {index}, no array")
    if not is_of_type(array, result.type):
        raise KernelFailed(
            f"folding {describe(op)} gave {array.dtype}{list(array.shape)} for result {index}, "
            f"inference says {result.type}"
        )
    return _settled(array)


def _settled(array: Array) -> Array:
    """The array in C order, and in memory of its own where a view would keep more alive."""
    if is_splat(array):
        return array
    base = array.base
    is_part = base is not None and not (is_array(base) and base.nbytes <= array.nbytes)
    return array.copy("C") if is_part or not array.flags.c_contiguous else array


def _always_runs(op: NodeOp) -> bool:
    return op.parent is not None and isinstance(op.parent.parent_op(), GraphOp)
