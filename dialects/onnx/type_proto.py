"""Types to and from `TypeProto`."""

from __future__ import annotations

from functools import lru_cache

from onnx import TensorShapeProto, TypeProto
from xdsl.dialects.builtin import TensorType, UnrankedTensorType
from xdsl.ir import Attribute

from foldline.dialects.onnx.types import (
    UNKNOWN,
    AbsentType,
    Dim,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    UnknownType,
    dims_of,
    element_attribute,
    element_of,
    element_type,
    tensor_type,
)
from foldline.support.dtypes import BY_CODE


def from_type_proto(proto: TypeProto) -> Attribute:
    """The type of a message; `!onnx.unknown` for what the dialect has no type for."""
    return _from_bytes(proto.SerializeToString(deterministic=True))


def to_type_proto(attribute: Attribute) -> TypeProto | None:
    """A new message of a type; None where nothing is known, or the value is absent."""
    data = type_proto_bytes(attribute)
    return None if data is None else TypeProto.FromString(data)


def is_exact(proto: TypeProto) -> bool:
    """Whether the message survives the way into the IR and back, byte for byte."""
    return _is_exact(proto.SerializeToString(deterministic=True))


@lru_cache(maxsize=1 << 13)
def type_proto_bytes(attribute: Attribute) -> bytes | None:
    """The serialised message of a type; None where `to_type_proto` gives None."""
    if isinstance(attribute, UnknownType | AbsentType):
        return None
    proto = TypeProto()
    _fill(proto, attribute)
    return proto.SerializeToString(deterministic=True)


@lru_cache(maxsize=1 << 13)
def _from_bytes(data: bytes) -> Attribute:
    return _read(TypeProto.FromString(data))


@lru_cache(maxsize=1 << 13)
def _is_exact(data: bytes) -> bool:
    return type_proto_bytes(_from_bytes(data)) == data


def _read(proto: TypeProto) -> Attribute:
    match proto.WhichOneof("value"):
        case "tensor_type":
            return _read_tensor(proto.tensor_type)
        case "sparse_tensor_type":
            dense = _read_tensor(proto.sparse_tensor_type)
            return UNKNOWN if dense == UNKNOWN else SparseTensorType(dense)
        case "sequence_type":
            return SequenceType(_read(proto.sequence_type.elem_type))
        case "optional_type":
            return OptionalType(_read(proto.optional_type.elem_type))
        case "map_type":
            key = BY_CODE.get(proto.map_type.key_type)
            if key is None:
                return UNKNOWN
            return MapType(element_attribute(key), _read(proto.map_type.value_type))
        case _:
            return UNKNOWN


def _read_tensor(proto: TypeProto.Tensor | TypeProto.SparseTensor) -> Attribute:
    element = BY_CODE.get(proto.elem_type)
    if element is None:
        return UNKNOWN
    if not proto.HasField("shape"):
        return tensor_type(element_attribute(element), None)
    return tensor_type(element_attribute(element), tuple(_dim(d) for d in proto.shape.dim))


def _dim(proto: TensorShapeProto.Dimension) -> Dim:
    match proto.WhichOneof("value"):
        case "dim_value":
            return proto.dim_value
        case "dim_param":
            return proto.dim_param
        case _:
            return None


def _fill(proto: TypeProto, attribute: Attribute) -> None:
    match attribute:
        case TensorType() | UnrankedTensorType():
            _fill_tensor(proto.tensor_type, attribute)
        case SparseTensorType():
            _fill_tensor(proto.sparse_tensor_type, attribute.dense)
        case SequenceType():
            proto.sequence_type.elem_type.SetInParent()
            _fill(proto.sequence_type.elem_type, attribute.element)
        case OptionalType():
            proto.optional_type.elem_type.SetInParent()
            _fill(proto.optional_type.elem_type, attribute.element)
        case MapType():
            key = element_of(attribute.key)
            assert key is not None
            proto.map_type.key_type = key.code
            proto.map_type.value_type.SetInParent()
            _fill(proto.map_type.value_type, attribute.value)
        case UnknownType():
            pass
        case _:
            raise TypeError(f"{attribute} is no type of an ONNX value")


def _fill_tensor(proto: TypeProto.Tensor | TypeProto.SparseTensor, attribute: Attribute) -> None:
    inner = element_type(attribute)
    element = None if inner is None else element_of(inner)
    if element is None:
        raise TypeError(f"{inner} is no element type of ONNX")
    proto.elem_type = element.code
    dims = dims_of(attribute)
    if dims is None:
        return
    proto.shape.SetInParent()
    for dim in dims:
        entry = proto.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        elif dim is not None:
            entry.dim_param = dim
