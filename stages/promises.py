"""Promises of stages as code."""

from __future__ import annotations

from xdsl.ir import Operation

from foldline.dialects.onnx.constant import ConstantOp, constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.context import PassContext

FOLDING = "constant-folding"


def is_folded_or_declined(op: Operation, context: PassContext) -> bool:
    """Whether an operation needs more than constants, or was left alone with a remark."""
    if not isinstance(op, NodeOp) or isinstance(op, ConstantOp):
        return True
    if any(
        constant_tensor(operand) is None and not isinstance(operand.type, AbsentType)
        for operand in op.operands
    ):
        return True
    return (FOLDING, op) in context.declined
