"""What a graph declares beside its nodes: value infos and metadata."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import StringStringEntryProto, ValueInfoProto
from xdsl.ir import Attribute

from foldline.dialects.onnx.attributes import Metadata, ValueInfo
from foldline.dialects.onnx.demands import spelling
from foldline.dialects.onnx.type_proto import from_type_proto, is_exact
from foldline.dialects.onnx.types import UNKNOWN, SparseTensorType, dims_of, element_type
from foldline.importer.residual import leftover
from foldline.support.errors import InvalidModel

_VALUE_FIELDS = frozenset({"name", "type", "doc_string", "metadata_props"})
_PAIR_FIELDS = frozenset({"key", "value"})


def value_info(proto: ValueInfoProto, role: str, where: str) -> ValueInfo:
    """A declared value; what types cannot say stays as residual. `role` is for messages."""
    if not proto.name:
        raise InvalidModel(f"{where}: an entry of {role} has no name")
    rest = leftover(proto, _VALUE_FIELDS)
    declared = proto.HasField("type")
    if declared and not is_exact(proto.type):
        rest = ValueInfoProto() if rest is None else rest
        rest.type.CopyFrom(proto.type)
    return ValueInfo(
        proto.name,
        from_type_proto(proto.type) if declared else None,
        proto.doc_string if proto.HasField("doc_string") else None,
        metadata(proto.metadata_props, where),
        b"" if rest is None else rest.SerializeToString(deterministic=True),
    )


def contradicts(declared: Attribute, actual: Attribute) -> bool:
    """Whether a tensor of the type `actual` cannot be what is declared."""
    if isinstance(declared, SparseTensorType):
        declared = declared.dense
    if declared == UNKNOWN:
        return False
    if element_type(declared) != element_type(actual):
        return True
    sizes, given = dims_of(declared), dims_of(actual)
    if sizes is None or given is None:
        return False
    fixed = [isinstance(size, int) and size >= 0 for size in sizes]
    return len(sizes) != len(given) or any(
        is_fixed and size != one for is_fixed, size, one in zip(fixed, sizes, given, strict=True)
    )


def described(type_: Attribute) -> str:
    """A type for messages: `tensor(float) [2, N]`."""
    dims = dims_of(type_)
    shape = "" if dims is None else f" [{', '.join('?' if d is None else str(d) for d in dims)}]"
    return f"{spelling(type_) or 'of an unknown type'}{shape}"


def metadata(entries: Sequence[StringStringEntryProto], where: str) -> Metadata | None:
    """`metadata_props` as pairs; None where there are none. Refuses what a pair cannot hold."""
    if not entries:
        return None
    pairs = tuple((entry.key, entry.value) for entry in entries)
    if len({key for key, _ in pairs}) != len(pairs):
        raise InvalidModel(f"{where}: metadata_props has a key twice")
    for entry in entries:
        complete = entry.HasField("key") and entry.HasField("value")
        if not complete or leftover(entry, _PAIR_FIELDS) is not None:
            raise InvalidModel(f"{where}: metadata_props entry '{entry.key}' is not a plain pair")
    return pairs
