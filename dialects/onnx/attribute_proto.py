"""Attributes of the dialect as AttributeProto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from onnx import AttributeProto, SparseTensorProto, TensorProto, TypeProto
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, f32
from xdsl.ir import Attribute, TypeAttribute

from foldline.dialects.onnx.attributes import ReferenceAttr, TextAttr, TextsAttr
from foldline.dialects.onnx.tensor import SparseTensorAttr, Tensor, TensorAttr
from foldline.dialects.onnx.tensor_proto import fill_tensor
from foldline.dialects.onnx.type_proto import to_type_proto
from foldline.support.text import encoded

FillTensor: TypeAlias = Callable[[TensorProto, Tensor], None]
"""Writes a tensor into a message, or elsewhere with a note in the message."""


def fill_attribute(
    proto: AttributeProto, name: str, value: Attribute, tensors: FillTensor = fill_tensor
) -> None:
    """Write name, type and value; what the message already holds (leftovers) stays."""
    proto.name = name
    match value:
        case ReferenceAttr():
            proto.ref_attr_name = value.data.attribute
            proto.type = cast(AttributeProto.AttributeType, value.data.kind)
        case IntegerAttr():
            proto.type, proto.i = AttributeProto.INT, value.value.data
        case FloatAttr():
            proto.type, proto.f = AttributeProto.FLOAT, value.value.data
        case TextAttr():
            proto.type, proto.s = AttributeProto.STRING, encoded(value.data)
        case TextsAttr():
            proto.type = AttributeProto.STRINGS
            proto.strings.extend(encoded(text) for text in value.data)
        case DenseArrayBase() if value.elt_type == f32:
            proto.type = AttributeProto.FLOATS
            proto.floats.extend(cast(Any, value).get_values())
        case DenseArrayBase():
            proto.type = AttributeProto.INTS
            proto.ints.extend(cast(Any, value).get_values())
        case TensorAttr():
            proto.type = AttributeProto.TENSOR
            tensors(proto.t, value.data)
        case SparseTensorAttr():
            proto.type = AttributeProto.SPARSE_TENSOR
            proto.sparse_tensor.MergeFromString(value.source.data)
        case ArrayAttr():
            _fill_list(proto, value, tensors)
        case TypeAttribute():
            proto.type = AttributeProto.TYPE_PROTO
            if not proto.HasField("tp"):
                proto.tp.CopyFrom(to_type_proto(cast(Attribute, value)) or TypeProto())
        case _:
            raise TypeError(f"attribute '{name}' holds {value}, which ONNX cannot write")


def _fill_list(proto: AttributeProto, value: ArrayAttr[Attribute], tensors: FillTensor) -> None:
    for item in value.data:
        match item:
            case TensorAttr():
                proto.type = AttributeProto.TENSORS
                tensors(proto.tensors.add(), item.data)
            case SparseTensorAttr():
                proto.type = AttributeProto.SPARSE_TENSORS
                proto.sparse_tensors.append(SparseTensorProto.FromString(item.source.data))
            case _:
                proto.type = AttributeProto.TYPE_PROTOS
                proto.type_protos.append(to_type_proto(item) or TypeProto())
