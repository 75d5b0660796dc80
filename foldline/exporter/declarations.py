"""Declarations in the exported model: value infos, metadata, imports, inputs of old IR versions."""

from __future__ import annotations

from collections.abc import MutableSequence

from onnx import (
    GraphProto,
    OperatorSetIdProto,
    StringStringEntryProto,
    ValueInfoProto,
)

from foldline.dialects.onnx.attributes import Metadata, OpsetsAttr, ValueInfo
from foldline.dialects.onnx.type_proto import to_type_proto


def fill_info(proto: ValueInfoProto, info: ValueInfo, name: str | None = None) -> None:
    """Write what is said of a value, under another name if one is given."""
    proto.MergeFromString(info.residual)
    proto.name = info.name if name is None else name
    if info.type is not None and not proto.HasField("type"):
        type_ = to_type_proto(info.type)
        if type_ is not None:
            proto.type.CopyFrom(type_)
    if info.doc is not None:
        proto.doc_string = info.doc
    if info.metadata is not None:
        fill_metadata(proto.metadata_props, info.metadata)


def fill_metadata(target: MutableSequence[StringStringEntryProto], metadata: Metadata) -> None:
    """Write pairs of texts."""
    target.extend(StringStringEntryProto(key=key, value=value) for key, value in metadata)


def fill_opsets(target: MutableSequence[OperatorSetIdProto], opsets: OpsetsAttr) -> None:
    """Write operator-set imports."""
    target.extend(
        OperatorSetIdProto(domain=domain, version=version) for domain, version in opsets.data
    )


def list_initializers(graph: GraphProto) -> None:
    """Add each initializer that is not among the inputs to them: below IR 4 it must be."""
    listed = {info.name for info in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in listed:
            info = graph.input.add(name=tensor.name)
            info.type.tensor_type.elem_type = tensor.data_type
            info.type.tensor_type.shape.SetInParent()
            for dim in tensor.dims:
                info.type.tensor_type.shape.dim.add(dim_value=dim)
