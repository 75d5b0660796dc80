"""What the fused convolutions stand for: Conv or ConvTranspose, Add, an activation."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from foldline.dialects.fused.expand_elementwise import activated
from foldline.dialects.fused.parts import Parts
from foldline.dialects.onnx.op import OnnxOp, plain_value

ADDED = 3
"""Where the input stands that is added."""


def conv(op: OnnxOp, parts: Parts) -> SSAValue:
    """`activation(Conv(X, W, B) + Z)`."""
    given = op.onnx_attributes.items()
    window: dict[str, Any] = {
        name: plain_value(value) for name, value in given if name not in _OF_FUSION
    }
    inputs = [op.operand(place) for place in range(ADDED)]
    if inputs[-1] is None:
        inputs.pop()
    value: SSAValue = parts.op(op.op_type, *inputs, **window)
    added = op.operand(ADDED)
    if added is not None:
        value = parts.Add(value, added)
    return activated(op, parts, value)


_OF_FUSION = frozenset(("activation", "activation_params"))
