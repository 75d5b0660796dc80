"""Promises of stages as code."""

from __future__ import annotations

from xdsl.ir import Operation

from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.context import PassContext
from foldline.stages.folding.known import known_tensor, mark_of

FOLDING = "constant-folding"
TAKING = "potential-const-taken-effect"


def is_folded_or_declined(op: Operation, context: PassContext) -> bool:
    """Whether an operation needs more than constants, or was left alone with a remark."""
    if not isinstance(op, NodeOp) or isinstance(op, ConstantOp):
        return True
    if any(
        known_tensor(operand) is None and not isinstance(operand.type, AbsentType)
        for operand in op.operands
    ):
        return True
    return (FOLDING, op) in context.declined


def is_settled(op: Operation, context: PassContext) -> bool:
    """The same, and it is no potential constant unless a remark says why it stays one."""
    if mark_of(op) is not None and (TAKING, op) not in context.declined:
        return False
    return is_folded_or_declined(op, context)
