"""Types of the fused quantised operators."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.types import dims_of, element_type, tensor_type
from foldline.stages.inference.contrib_rules import asked

Types = tuple[Attribute, ...]


def matmul(op: OnnxOp, types: Sequence[Attribute], constants: object) -> Types:
    """The shape of the product as float32; scale and bias do not widen it."""
    return (tensor_type(f32, asked("MatMul", [dims_of(given) for given in types[:2]])),)


def conv(op: OnnxOp, types: Sequence[Attribute], constants: object) -> Types:
    """The shape of the convolution as float32; what is added does not widen it."""
    shape = asked("Conv", [dims_of(given) for given in types[:2]], op.properties)
    return (tensor_type(f32, shape),)


def arithmetic(op: OnnxOp, types: Sequence[Attribute], constants: object) -> Types | None:
    """The broadcast shape of both, in the type of the codes."""
    element = element_type(types[0])
    if element is None:
        return None
    return (tensor_type(element, asked("Add", [dims_of(types[0]), dims_of(types[3])])),)


def gemm(op: OnnxOp, types: Sequence[Attribute], constants: object) -> Types | None:
    """Rows of A and columns of B, in the type of the codes."""
    element = element_type(types[0])
    if element is None:
        return None
    shapes = [dims_of(types[0]), dims_of(types[3])]
    return (tensor_type(element, asked("Gemm", shapes, op.properties)),)


def global_pool(op: OnnxOp, types: Sequence[Attribute], constants: object) -> Types | None:
    """One element a channel, in the type of the codes."""
    element = element_type(types[0])
    if element is None:
        return None
    return (tensor_type(element, asked("GlobalAveragePool", [dims_of(types[0])])),)


def like_first(op: OnnxOp, types: Sequence[Attribute], constants: object) -> Types:
    """The type of the first input."""
    return (types[0],)
