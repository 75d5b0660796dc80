"""A single operation as NodeProto, for the library's own per-node inference and bodies."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from foldline.dialects.onnx.attribute_proto import fill_attribute
from foldline.dialects.onnx.op import NodeOp


def to_node_proto(op: NodeOp, inputs: Sequence[str], outputs: Sequence[str]) -> NodeProto:
    """The node of an operation under the given value names; bodies are left out."""
    proto = NodeProto(domain=op.domain, op_type=op.op_type, input=inputs, output=outputs)
    for name, value in op.onnx_attributes.items():
        fill_attribute(proto.attribute.add(), name, value)
    return proto
