"""drop-zero-states: leave out initial states of recurrent operators that are all zero.

    onnx.LSTM(%x, %w, %r, %b, %none, %zeros, %zeros)   ->   onnx.LSTM(%x, %w, %r, %b)

An absent state is one of zeros, so bits are preserved; a state that holds a -0 is kept. Zeros are
a constant or a ConstantOfShape, of whatever shape, and what is cut, expanded or reshaped of them.
Inputs that are then absent at the end are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.constant import ConstantOfShapeOp, constant_tensor
from foldline.dialects.onnx.indexing import SliceOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import (
    ExpandOp,
    IdentityOp,
    ReshapeOp,
    SplitOp,
    SqueezeOp,
    TileOp,
    TransposeOp,
    UnsqueezeOp,
)
from foldline.dialects.onnx.structure import NoneOp
from foldline.dialects.onnx.tensor import Tensor, TensorAttr
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import drop_unused
from foldline.support.passes import PASSES

STATES: dict[type[NodeOp], tuple[int, ...]] = {
    OPERATORS["", "RNN"]: (5,),
    OPERATORS["", "GRU"]: (5,),
    OPERATORS["", "LSTM"]: (5, 6),
}
"""Where the inputs of an operator stand that are zero when absent."""


COPYING = (
    ExpandOp,
    IdentityOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    SqueezeOp,
    TileOp,
    TransposeOp,
    UnsqueezeOp,
)
"""Operators whose results hold nothing but elements of their first input."""

LONGEST_CHAIN = 8
"""So many producers of a state are looked at."""


@dataclass(frozen=True)
class DropZeroStates(NodePass):
    """Leave out states of zeros."""

    name = "drop-zero-states"
    INFO: ClassVar = PASSES["drop-zero-states"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Drop the states that are zeros."""
        given = [i for i in STATES.get(type(op), ()) if op.operand(i) is not None]
        zero = [index for index in given if self._is_zero(op, index)]
        if not zero:
            return
        dropped = [op.operands[index] for index in zero]
        operands: list[SSAValue | None] = [op.operand(index) for index in range(len(op.operands))]
        for index in zero:
            operands[index] = None
        while operands and operands[-1] is None:
            operands.pop()
        self.rewriter.set_operands(op, self._present(op, operands))
        drop_unused(self.rewriter, dropped)
        self.applied(op, f"inputs {', '.join(map(str, zero))} were zeros")

    def _is_zero(self, op: NodeOp, index: int) -> bool:
        """Whether an input is zeros; one of constant elements that are not is remarked on."""
        tensor = _elements(op.operands[index])
        if tensor is None:
            return False
        if not _is_zero(tensor):
            self.declined(op, f"input {index} is constant, but not all +0")
            return False
        return True

    def _present(self, op: NodeOp, operands: Sequence[SSAValue | None]) -> list[SSAValue]:
        """The operands with the block's absent value where there are none."""
        if None not in operands:
            return [value for value in operands if value is not None]
        absent = next((v for v in op.operands if isinstance(v.type, AbsentType)), None)
        if absent is None:
            absent = self._absent(op)
        return [absent if value is None else value for value in operands]

    def _absent(self, op: NodeOp) -> SSAValue:
        """The absent value at the start of the block; made where there is none."""
        block = op.parent
        assert block is not None
        first = block.first_op
        assert first is not None
        if isinstance(first, NoneOp):
            return first.value
        none = NoneOp.new()
        self.rewriter.insert_before(none, first)
        return none.value


def _elements(value: SSAValue) -> Tensor | None:
    """A constant that holds all elements of a value, and perhaps others; None if there is none."""
    owner = value.owner
    for _ in range(LONGEST_CHAIN):
        if not isinstance(owner, COPYING):
            break
        value = owner.operands[0]
        owner = value.owner
    if isinstance(owner, ConstantOfShapeOp):
        given = owner.properties.get("value", TensorAttr.of(np.zeros(1, np.float32)))
        return given.data if isinstance(given, TensorAttr) else None
    tensor = constant_tensor(value)
    return None if tensor is None else tensor.data


def _is_zero(tensor: Tensor) -> bool:
    """Whether every bit is 0: a -0 is another initial state than none."""
    array = tensor.array
    if tensor.is_splat:
        array = array[(0,) * array.ndim]
    return array.dtype != np.object_ and not np.frombuffer(array.tobytes(), np.uint8).any()
