"""Graphs, bodies and nodes of the onnx dialect as messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto
from xdsl.ir import Block, SSAValue

from foldline.dialects.onnx.attribute_proto import fill_attribute
from foldline.dialects.onnx.attributes import (
    MetadataAttr,
    NamesAttr,
    ResidualAttr,
    TextAttr,
    ValueInfo,
)
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import (
    CallOp,
    DefaultOp,
    InitializerOp,
    interface,
    terminator,
)
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.type_proto import to_type_proto
from foldline.exporter.annotations import Annotations
from foldline.exporter.declarations import fill_info, fill_metadata
from foldline.exporter.names import Names, make_unique
from foldline.exporter.splats import SplatForm
from foldline.exporter.tensors import TensorWriter
from foldline.stages.inference.joining import refine

ValueInfoPolicy: TypeAlias = Literal["keep", "all", "none"]
"""`keep`: as declared in the source; `all`: the types the IR knows; `none`: no entries."""
ExternalPolicy: TypeAlias = Literal["embed", "keep"]
"""`embed`: external data goes into the message; `keep`: the message names the source's files."""


@dataclass(frozen=True)
class Policy:
    """What is written of what the module knows."""

    value_info: ValueInfoPolicy
    external: ExternalPolicy
    unique_nodes: bool


class GraphWriter:
    """Writes the blocks of one graph or function."""

    def __init__(self, policy: Policy, tensors: TensorWriter, names: Names):
        self.policy = policy
        self.tensors = tensors
        self.names = names

    def graph(self, proto: GraphProto, block: Block) -> None:
        """A graph or body."""
        it = interface(block)
        proto.MergeFromString(it.residual)
        if it.name is not None:
            proto.name = it.name
        if it.doc is not None:
            proto.doc_string = it.doc
        if it.metadata is not None:
            fill_metadata(proto.metadata_props, it.metadata)
        constants = {self.names[op.results[0]] for op in block.ops if isinstance(op, InitializerOp)}
        arguments = iter(block.args)
        for info in it.inputs:
            if not info.is_constant:
                argument = next(arguments)
                info = self._described(info, argument)
                fill_info(proto.input.add(), info, self.names[argument])
            elif info.name in constants:
                fill_info(proto.input.add(), info)
        values = terminator(block).operands
        for info, value, name in zip(it.outputs, values, self.names.outputs[block], strict=True):
            fill_info(proto.output.add(), self._described(info, value), name)
        annotations = Annotations(block, self.names, keep=self.policy.value_info == "keep")
        for op in block.ops:
            if isinstance(op, InitializerOp):
                if not annotations.alone_name(op):
                    self._initializer(proto, op, self.names[op.results[0]])
            elif isinstance(op, DefaultOp):
                self._initializer(proto, op, self.names[op.argument])
        self.nodes(proto.node, block)
        self._declarations(proto, block)
        annotations.fill(proto)

    def _described(self, info: ValueInfo, value: SSAValue) -> ValueInfo:
        """What is declared; a type that it lacks, or that inference contradicts, is given.

        Bodies of functions may lack types, and real models declare outputs of a wrong rank.
        """
        if self.policy.value_info != "all":
            return info
        if info.type is None:
            return replace(info, type=value.type)
        refined = refine(info.type, value.type, trusted=True)
        return info.with_type(refined.type) if refined.contradiction else info

    def nodes(self, nodes: MutableSequence[NodeProto], block: Block) -> None:
        """The nodes of a block, and the copies its outputs need."""
        for op in block.ops:
            if isinstance(op, NodeOp):
                splat = SplatForm.of(op)
                if splat is None:
                    nodes.append(self.node(op))
                else:
                    nodes.extend(splat.nodes(self.names))
        for value, name in self.names.copies.get(block, ()):
            nodes.append(NodeProto(op_type="Identity", input=[self.names[value]], output=[name]))
        if self.policy.unique_nodes:
            make_unique(nodes)

    def node(self, op: NodeOp) -> NodeProto:
        """One node."""
        proto = NodeProto()
        leftovers: dict[str, AttributeProto] = {}
        if isinstance(residual := op.attributes.get("onnx.residual"), ResidualAttr):
            proto.MergeFromString(residual.data)
            leftovers = _taken(proto.attribute)
        _fill_header(proto, op)
        proto.input.extend(self.names[value] for value in op.operands)
        proto.output.extend(self.names[value] for value in op.results)
        for name, value in op.onnx_attributes.items():
            attribute = proto.attribute.add()
            if name in leftovers:
                self._merge(attribute, leftovers[name])
            fill_attribute(attribute, name, value, self.tensors.fill)
        self._bodies(proto, op, leftovers)
        return proto

    def _bodies(
        self, proto: NodeProto, op: NodeOp, leftovers: Mapping[str, AttributeProto]
    ) -> None:
        written: dict[str, AttributeProto] = {}
        for name, region in zip(op.region_names(), op.regions, strict=True):
            leftover = leftovers.get(name)
            if name not in written:
                written[name] = proto.attribute.add()
                if leftover is not None:
                    written[name].MergeFrom(leftover)
            attribute = written[name]
            attribute.name = name
            if attribute.type == AttributeProto.GRAPHS:
                self.graph(attribute.graphs.add(), region.block)
            else:
                attribute.type = AttributeProto.GRAPH
                attribute.g.SetInParent()
                self.graph(attribute.g, region.block)

    def _initializer(self, proto: GraphProto, op: InitializerOp | DefaultOp, name: str) -> None:
        sparse = op.properties.get("sparse")
        if isinstance(sparse, ResidualAttr):
            proto.sparse_initializer.append(SparseTensorProto.FromString(sparse.data))
            proto.sparse_initializer[-1].values.name = name
            return
        tensor = TensorProto()
        if isinstance(residual := op.attributes.get("onnx.residual"), ResidualAttr):
            self._merge_tensor(tensor, TensorProto.FromString(residual.data))
        tensor.name = name
        self.tensors.fill(tensor, cast("TensorAttr", op.properties["value"]).data)
        proto.initializer.append(tensor)

    def _merge(self, target: AttributeProto, source: AttributeProto) -> None:
        if self.policy.external == "embed" and source.HasField("t"):
            _forget_external(source.t)
        target.MergeFrom(source)

    def _merge_tensor(self, target: TensorProto, source: TensorProto) -> None:
        if self.policy.external == "embed":
            _forget_external(source)
        target.MergeFrom(source)

    def _declarations(self, proto: GraphProto, block: Block) -> None:
        it = interface(block)
        if self.policy.value_info == "keep":
            for info in it.value_info:
                fill_info(proto.value_info.add(), info)
        elif self.policy.value_info == "all":
            declared = {info.name: info for info in it.value_info}
            fixed = {info.name for info in (*proto.input, *proto.output)}
            for value in _node_results(block):
                name = self.names[value]
                type_ = to_type_proto(value.type)
                if name and name not in fixed and type_ is not None:
                    known = declared.get(name, ValueInfo(name))
                    if known.type != value.type:
                        known = known.with_type(value.type)
                    fill_info(proto.value_info.add(), known)


def _taken(attributes: MutableSequence[AttributeProto]) -> dict[str, AttributeProto]:
    """Copies of leftover attributes by name; the list they stood in is emptied."""
    copies: dict[str, AttributeProto] = {}
    for attribute in attributes:
        copies[attribute.name] = AttributeProto()
        copies[attribute.name].CopyFrom(attribute)
    del attributes[:]
    return copies


def _node_results(block: Block) -> Iterable[SSAValue]:
    for op in block.ops:
        if isinstance(op, NodeOp):
            yield from op.results


def _forget_external(tensor: TensorProto) -> None:
    if tensor.data_location == TensorProto.EXTERNAL:
        tensor.ClearField("data_location")
        del tensor.external_data[:]


def _fill_header(proto: NodeProto, op: NodeOp) -> None:
    """Operator, name, doc string and metadata of a node."""
    if op.domain:
        proto.domain = op.domain
    proto.op_type = op.op_type
    if isinstance(op, CallOp) and op.function.overload is not None:
        proto.overload = op.function.overload.data
    if isinstance(names := op.attributes.get("onnx.names"), NamesAttr):
        if names.data.node is not None:
            proto.name = names.data.node
    if isinstance(doc := op.attributes.get("onnx.doc"), TextAttr):
        proto.doc_string = doc.data
    if isinstance(metadata := op.attributes.get("onnx.metadata"), MetadataAttr):
        fill_metadata(proto.metadata_props, metadata.data)
