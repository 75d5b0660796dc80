"""AttributeProto values as attributes of the dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from onnx import AttributeProto, SparseTensorProto, TensorProto
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, f32, i64
from xdsl.ir import Attribute

from foldline.dialects.onnx.attributes import (
    Reference,
    ReferenceAttr,
    ResidualAttr,
    TextAttr,
    TextsAttr,
)
from foldline.dialects.onnx.tensor import SparseTensorAttr, Tensor, TensorAttr
from foldline.dialects.onnx.tensor_proto import TYPED_FIELDS, read_tensor
from foldline.dialects.onnx.type_proto import from_type_proto, is_exact
from foldline.importer.external_data import ExternalData
from foldline.importer.large_tensors import LargeTensors
from foldline.importer.residual import leftover
from foldline.importer.sparse import densified
from foldline.support.errors import InvalidModel
from foldline.support.text import decoded

GRAPH, GRAPHS = AttributeProto.GRAPH, AttributeProto.GRAPHS

_FIELDS: dict[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
_VALUES = frozenset(_FIELDS.values())
_MODELLED = {
    kind: frozenset({"name", "type", "ref_attr_name", field}) for kind, field in _FIELDS.items()
}
_TENSOR_DATA = frozenset({"dims", "data_type", "raw_data", *TYPED_FIELDS})


class AttributeReader:
    """Reads attributes of one model; `external` and `large` serve tensors kept elsewhere."""

    def __init__(self, external: ExternalData, large: LargeTensors):
        self.external = external
        self.large = large

    def kind(self, proto: AttributeProto, where: str) -> int:
        """The attribute's kind; IR 1 leaves it out, and the set field tells."""
        if proto.type:
            if proto.type not in _FIELDS:
                raise InvalidModel(f"{where}: attribute has unknown type {proto.type}")
            return proto.type
        for kind, field in _FIELDS.items():
            value = getattr(proto, field)
            is_set = proto.HasField(field) if _is_single(kind) else len(value) > 0
            if is_set:
                return kind
        raise InvalidModel(f"{where}: attribute has neither type nor value")

    def read(self, proto: AttributeProto, kind: int, where: str) -> Attribute:
        """The value of any attribute that holds no graph."""
        if proto.ref_attr_name:
            held = [field.name for field, _ in proto.ListFields() if field.name in _VALUES]
            if held:
                raise InvalidModel(f"{where}: refers to a parameter and also holds {held[0]}")
            return ReferenceAttr(Reference(proto.ref_attr_name, kind))
        return _READERS[kind](self, getattr(proto, _FIELDS[kind]), where)

    def tensor(self, proto: TensorProto, where: str) -> TensorAttr:
        """A tensor, wherever its data stands."""
        if proto.data_location == TensorProto.EXTERNAL:
            return TensorAttr(self.external.read(proto, where))
        if len(proto.external_data):
            raise InvalidModel(f"{where}: tensor names external data but does not use it")
        return TensorAttr(read_tensor(proto, where, self.large.find(proto)))

    def sparse(self, proto: SparseTensorProto, where: str) -> SparseTensorAttr:
        """A sparse tensor with its dense value."""
        values = self.tensor(proto.values, where).data
        indices = self.tensor(proto.indices, where).data
        dense = densified(values.array, indices.array, tuple(proto.dims), where)
        source = ResidualAttr(proto.SerializeToString(deterministic=True))
        return SparseTensorAttr(TensorAttr(Tensor(dense)), source)

    def rest(self, proto: AttributeProto, kind: int, where: str) -> AttributeProto | None:
        """What the value and name do not cover: doc string, names inside tensors, other fields."""
        kept = leftover(proto, _MODELLED[kind])
        if kind == AttributeProto.TENSOR and not proto.ref_attr_name:
            tensor = tensor_rest(proto.t)
            if tensor is not None:
                kept = AttributeProto() if kept is None else kept
                kept.t.CopyFrom(tensor)
        elif kind == AttributeProto.TYPE_PROTO and not is_exact(proto.tp):
            kept = AttributeProto() if kept is None else kept
            kept.tp.CopyFrom(proto.tp)
        _refuse_inexact(proto, where)
        return kept


def tensor_rest(proto: TensorProto, named: bool = False) -> TensorProto | None:
    """What a tensor holds beside its data (and, if `named`, its name)."""
    modelled = _TENSOR_DATA | {"name"} if named else _TENSOR_DATA
    return leftover(proto, modelled)


def _refuse_inexact(proto: AttributeProto, where: str) -> None:
    """Lists of messages keep no leftovers: refuse what would be lost."""
    exact = [tensor_rest(tensor) is None for tensor in proto.tensors]
    exact += [is_exact(type_proto) for type_proto in proto.type_protos]
    if not all(exact):
        raise InvalidModel(f"{where}: entry {exact.index(False)} has fields that cannot be kept")


def _is_single(kind: int) -> bool:
    return kind < AttributeProto.FLOATS or kind in (
        AttributeProto.SPARSE_TENSOR,
        AttributeProto.TYPE_PROTO,
    )


@lru_cache(maxsize=1 << 12)
def int_attribute(value: int) -> Attribute:
    """An INT attribute, interned."""
    return IntegerAttr(value, i64)


@lru_cache(maxsize=1 << 12)
def ints_attribute(values: tuple[int, ...]) -> Attribute:
    """An INTS attribute, interned."""
    return DenseArrayBase.from_list(i64, values)


def _texts(_: AttributeReader, value: Sequence[bytes], where: str) -> Attribute:
    del where
    return TextsAttr(tuple(decoded(item) for item in value))


_READERS: dict[int, Callable[[AttributeReader, Any, str], Attribute]] = {
    AttributeProto.INT: lambda _, value, __: int_attribute(value),
    AttributeProto.INTS: lambda _, value, __: ints_attribute(tuple(value)),
    AttributeProto.FLOAT: lambda _, value, __: FloatAttr(value, f32),
    AttributeProto.FLOATS: lambda _, value, __: DenseArrayBase.from_list(f32, list(value)),
    AttributeProto.STRING: lambda _, value, __: TextAttr(decoded(value)),
    AttributeProto.STRINGS: _texts,
    AttributeProto.TENSOR: lambda reader, value, where: reader.tensor(value, where),
    AttributeProto.TENSORS: lambda reader, value, where: ArrayAttr(
        [reader.tensor(item, where) for item in value]
    ),
    AttributeProto.SPARSE_TENSOR: lambda reader, value, where: reader.sparse(value, where),
    AttributeProto.SPARSE_TENSORS: lambda reader, value, where: ArrayAttr(
        [reader.sparse(item, where) for item in value]
    ),
    AttributeProto.TYPE_PROTO: lambda _, value, __: from_type_proto(value),
    AttributeProto.TYPE_PROTOS: lambda _, value, __: ArrayAttr(
        [from_type_proto(item) for item in value]
    ),
}
