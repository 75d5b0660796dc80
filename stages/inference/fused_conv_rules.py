"""Types of the results of the fused convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import dims_of, element_type, tensor_type
from foldline.stages.inference.contrib_rules import asked

ADDED = 3
"""Where the input stands that is added."""


def conv(
    op: OnnxOp, types: Sequence[Attribute], constants: Sequence[TensorAttr | None]
) -> tuple[Attribute, ...] | None:
    """Conv and ConvTranspose: the shape of the product, and of its sum with what is added."""
    element = element_type(types[0])
    if element is None:
        return None
    shape = asked(op.op_type, [dims_of(given) for given in types[:2]], op.properties)
    if op.operand(ADDED) is not None:
        shape = asked("Add", [shape, dims_of(types[ADDED])])
    return (tensor_type(element, shape),)
