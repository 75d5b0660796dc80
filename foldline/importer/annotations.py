"""Quantization annotations: which tensors hold scale and zero point of another (IR >= 5)."""

from __future__ import annotations

from onnx import GraphProto
from xdsl.ir import SSAValue

from foldline.dialects.onnx.attributes import ResidualAttr
from foldline.dialects.onnx.structure import AnnotationOp
from foldline.importer.scope import Scope


def annotation_ops(proto: GraphProto, scope: Scope) -> list[AnnotationOp] | None:
    """One operation an annotation of a graph; None where one names what is no input or constant.

    Such annotations say nothing that can be kept alive, and stay with the graph as they are.
    """
    ops: list[AnnotationOp] = []
    for annotation in proto.quantization_annotation:
        values: list[SSAValue] = []
        for entry in annotation.quant_parameter_tensor_names:
            value = scope.find(entry.value)
            if value is None:
                return None
            values.append(value)
        message = ResidualAttr(annotation.SerializeToString(deterministic=True))
        ops.append(AnnotationOp.create(operands=values, properties={"message": message}))
    return ops
