"""Large constants of one repeated element, written as ConstantOfShape instead of their bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import NodeOp, node_name, opset_versions
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.tensor import Tensor, TensorAttr
from foldline.dialects.onnx.tensor_proto import tensor_proto
from foldline.exporter.names import Names
from foldline.support.dtypes import BY_NUMPY

MIN_BYTES = 1024
"""Below this a splat is written out: two nodes would cost more than the bytes."""


@dataclass(frozen=True)
class SplatForm:
    """A Constant node whose tensor is a splat that ConstantOfShape can make at this opset."""

    op: ConstantOp
    tensor: Tensor

    @classmethod
    def of(cls, op: NodeOp) -> SplatForm | None:
        """The form of a node, or None where the node is written as it is."""
        if not isinstance(op, ConstantOp) or not isinstance(
            value := op.properties.get("value"), TensorAttr
        ):
            return None
        tensor = value.data
        if not tensor.is_splat or tensor.array.nbytes < MIN_BYTES:
            return None
        version = opset_versions(op).get("", 0)
        filler = signature("", "ConstantOfShape", version)
        name = f"tensor({BY_NUMPY[tensor.array.dtype].name})"
        if filler is None or name not in filler.outputs[0].types:
            return None
        return cls(op, tensor)

    def nodes(self, names: Names) -> list[NodeProto]:
        """The Constant that holds the shape, and the ConstantOfShape that fills it."""
        output = names[self.op.results[0]]
        shape_name = names.fresh(f"{output}_shape")
        shape = NodeProto(op_type="Constant", output=[shape_name])
        attribute = shape.attribute.add(name="value", type=4)
        attribute.t.CopyFrom(tensor_proto(Tensor(np.array(self.tensor.array.shape, np.int64))))
        fill = NodeProto(op_type="ConstantOfShape", input=[shape_name], output=[output])
        if name := node_name(self.op):
            fill.name = name
        element = fill.attribute.add(name="value", type=4)
        element.t.CopyFrom(tensor_proto(Tensor(self.tensor.array.reshape(-1)[:1])))
        return [shape, fill]
