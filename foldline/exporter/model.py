"""The onnx dialect as ModelProto: the plain inverse of the importer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

from onnx import AttributeProto, FunctionProto, ModelProto
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation

from foldline.dialects.onnx.attribute_proto import fill_attribute
from foldline.dialects.onnx.attributes import MetadataAttr, ResidualAttr, TextAttr
from foldline.dialects.onnx.structure import FunctionOp, functions, interface, main_graph
from foldline.exporter.declarations import (
    fill_info,
    fill_metadata,
    fill_opsets,
    list_initializers,
)
from foldline.exporter.functions import function_form
from foldline.exporter.graph import ExternalPolicy, GraphWriter, Policy, ValueInfoPolicy
from foldline.exporter.names import Names
from foldline.exporter.standard import standard_form
from foldline.exporter.tensors import TensorWriter

FusedPolicy: TypeAlias = Literal["standard", "functions"]
"""How fused operators are written: as standard operators, or as calls of local functions."""

_FORMS = {"standard": standard_form, "functions": function_form}

_FIRST_IR_WITH_DEFAULTS = 4
"""Below, every initializer is listed among the inputs."""


def export_model(
    module: ModuleOp,
    *,
    value_info: ValueInfoPolicy = "keep",
    external: ExternalPolicy = "embed",
    fused: FusedPolicy = "standard",
    unique_nodes: bool = False,
    training: bool = True,
    tensors: TensorWriter | None = None,
) -> ModelProto:
    """The model of a module, of its own opset and IR version. The module is not changed.

    Fused operators are written as the standard operators that they stand for, or, from IR version 8
    on, as calls of functions that hold these.
    With `unique_nodes`, of several nodes of one name in a graph all but the first are renamed: the
    specification allows them, but there are runtimes that do not. `training`: keep training_info.
    """
    module = _FORMS[fused](module)
    writer = TensorWriter() if tensors is None else tensors
    policy = Policy(value_info, external, unique_nodes)
    proto = ModelProto()
    _merge_residual(proto, module)
    if not training:
        proto.ClearField("training_info")
    proto.ir_version = cast("IntegerAttr", module.attributes["onnx.ir_version"]).value.data
    graph = main_graph(module)
    fill_opsets(proto.opset_import, graph.opsets)
    if isinstance(doc := module.attributes.get("onnx.doc"), TextAttr):
        proto.doc_string = doc.data
    if isinstance(metadata := module.attributes.get("onnx.metadata"), MetadataAttr):
        fill_metadata(proto.metadata_props, metadata.data)
    for function in functions(module):
        _fill_function(proto.functions.add(), function, policy, writer)
    proto.graph.SetInParent()
    block = graph.body.block
    GraphWriter(policy, writer, Names(block)).graph(proto.graph, block)
    if proto.ir_version < _FIRST_IR_WITH_DEFAULTS:
        list_initializers(proto.graph)
    return proto


def _merge_residual(proto: ModelProto | FunctionProto, op: Operation) -> None:
    if isinstance(residual := op.attributes.get("onnx.residual"), ResidualAttr):
        proto.MergeFromString(residual.data)


def _fill_function(
    proto: FunctionProto, op: FunctionOp, policy: Policy, tensors: TensorWriter
) -> None:
    _merge_residual(proto, op)
    leftovers = {
        a.name: AttributeProto.FromString(a.SerializeToString()) for a in proto.attribute_proto
    }
    del proto.attribute_proto[:]
    proto.name = op.op_type.data
    if op.domain.data:
        proto.domain = op.domain.data
    if op.overload is not None:
        proto.overload = op.overload.data
    fill_opsets(proto.opset_import, op.opsets)
    if isinstance(doc := op.attributes.get("onnx.doc"), TextAttr):
        proto.doc_string = doc.data
    if isinstance(metadata := op.attributes.get("onnx.metadata"), MetadataAttr):
        fill_metadata(proto.metadata_props, metadata.data)
    proto.attribute.extend(op.parameters.data)
    for name, value in cast("Mapping[str, Attribute]", op.defaults.data).items():
        attribute = proto.attribute_proto.add()
        if name in leftovers:
            attribute.MergeFrom(leftovers[name])
        fill_attribute(attribute, name, value, tensors.fill)
    block = op.body.block
    it = interface(block)
    proto.input.extend(info.name for info in it.inputs)
    proto.output.extend(info.name for info in it.outputs)
    GraphWriter(policy, tensors, Names(block)).nodes(proto.node, block)
    for info in it.value_info:
        fill_info(proto.value_info.add(), info)
