"""GraphProto and the node lists of functions as blocks of the onnx dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnx import GraphProto, NodeProto, TensorProto
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from foldline.dialects.onnx.attributes import (
    Interface,
    InterfaceAttr,
    Names,
    NamesAttr,
    ResidualAttr,
    ValueInfo,
)
from foldline.dialects.onnx.structure import DefaultOp, InitializerOp, NoneOp, ReturnOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import ABSENT, UNKNOWN
from foldline.importer.annotations import annotation_ops
from foldline.importer.attributes import GRAPH, GRAPHS, AttributeReader, tensor_rest
from foldline.importer.declarations import contradicts, described, metadata, value_info
from foldline.importer.node import NodeReader
from foldline.importer.residual import leftover
from foldline.importer.scope import Scope, defined_names, reads_of, sorted_nodes
from foldline.importer.utf8 import refuse_bytes
from foldline.support.errors import InvalidModel, ResourceLimit
from foldline.support.progress import told
from foldline.support.suggest import did_you_mean

MAX_NESTING = 64

_GRAPH_FIELDS = frozenset(
    {
        "node",
        "name",
        "initializer",
        "sparse_initializer",
        "doc_string",
        "input",
        "output",
        "value_info",
        "metadata_props",
    }
)


@dataclass
class ModelContext:
    """What the graphs of one model share while they are imported."""

    ir_version: int
    reader: AttributeReader
    functions: Mapping[tuple[str, str, str], StringAttr]
    """Symbols of the local functions by domain, name and overload."""
    notes: list[str] = field(default_factory=list[str])
    """Remarks on what was changed on the way in."""


TOLD_NODES = 1000
"""So many nodes are imported between two reports of progress."""


@dataclass(frozen=True)
class Place:
    """Where a graph stands in its model."""

    where: str
    """For messages: `graph: node 'if' (If): then_branch`."""
    outer: Scope | None = None
    depth: int = 0
    in_function: bool = False

    def inner(self, where: str, scope: Scope) -> Place:
        """The place of a body in this graph."""
        return Place(where, scope, self.depth + 1, self.in_function)


class GraphImporter:
    """Imports one graph, body or function."""

    def __init__(self, context: ModelContext, versions: Mapping[str, int], place: Place):
        if place.depth > MAX_NESTING:
            raise ResourceLimit(f"{place.where}: bodies are nested deeper than {MAX_NESTING}")
        self._context = context
        self._versions = versions
        self._place = place
        self._where = place.where
        self._nodes = NodeReader(context.reader, context.functions, versions, place.in_function)
        self._ops: list[Operation] = []
        self._types: dict[str, Attribute] = {}
        self._input_types: dict[str, Attribute] = {}
        self._none: NoneOp | None = None

    def graph(self, proto: GraphProto) -> Region:
        """The region of a graph or body."""
        if self._place.depth:
            refuse_bytes(proto)
        scope = Scope(self._where, defined_names(proto), self._place.outer)
        inputs = self._inputs(proto)
        outputs = tuple(value_info(info, "output", self._where) for info in proto.output)
        declared = tuple(value_info(info, "value_info", self._where) for info in proto.value_info)
        self._declare((*declared, *outputs))
        block = self._block(inputs, scope)
        self._initializers(proto, scope)
        modelled = _GRAPH_FIELDS
        if (annotated := annotation_ops(proto, scope)) is not None:
            self._ops.extend(annotated)
            modelled |= {"quantization_annotation"}
        self._import(proto.node, scope)
        rest = leftover(proto, modelled)
        interface = Interface(
            proto.name if proto.HasField("name") else None,
            inputs,
            outputs,
            declared,
            proto.doc_string if proto.HasField("doc_string") else None,
            metadata(proto.metadata_props, self._where),
            b"" if rest is None else rest.SerializeToString(deterministic=True),
        )
        return self._finished(block, scope, interface)

    def function(self, interface: Interface, nodes: Sequence[NodeProto]) -> Region:
        """The region of a local function's body."""
        names = {info.name for info in interface.inputs}
        names.update(name for node in nodes for name in node.output if name)
        scope = Scope(self._where, names)
        self._declare(interface.value_info)
        block = self._block(interface.inputs, scope)
        self._import(nodes, scope)
        return self._finished(block, scope, interface)

    def _declare(self, infos: Iterable[ValueInfo]) -> None:
        self._types.update((info.name, info.type) for info in infos if info.type is not None)

    def _inputs(self, proto: GraphProto) -> tuple[ValueInfo, ...]:
        """The declared inputs; below IR 4 an initializer makes the input of its name a constant."""
        constants = {tensor.name for tensor in proto.initializer}
        constants.update(tensor.values.name for tensor in proto.sparse_initializer)
        is_old = self._context.ir_version < 4
        infos: list[ValueInfo] = []
        for info in proto.input:
            read = value_info(info, "input", self._where)
            if read.type is not None:
                self._input_types[read.name] = read.type
            is_constant = read.name in constants
            if is_constant and self._place.depth and not is_old:
                raise InvalidModel(
                    f"{self._where}: '{read.name}' is both input and initializer of a body, which "
                    "IR 4 and later forbid: remove one of the two"
                )
            infos.append(replace(read, is_constant=is_constant and is_old))
        return tuple(infos)

    def _block(self, inputs: Iterable[ValueInfo], scope: Scope) -> Block:
        arguments = [info for info in inputs if not info.is_constant]
        block = Block(arg_types=[info.type or UNKNOWN for info in arguments])
        for info, argument in zip(arguments, block.args, strict=True):
            scope.define(info.name, argument, "an input")
        return block

    def _initializers(self, proto: GraphProto, scope: Scope) -> None:
        arguments = dict(scope.values)
        for tensor in proto.initializer:
            if not tensor.name:
                raise InvalidModel(f"{self._where}: an initializer has no name")
            where = f"{self._where}: initializer '{tensor.name}'"
            value = self._context.reader.tensor(tensor, where)
            rest = tensor_rest(tensor, named=True)
            self._initializer(tensor.name, {"value": value}, rest, arguments, scope)
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            if not name:
                raise InvalidModel(
                    f"{self._where}: a sparse initializer has no name: that of its values is it"
                )
            where = f"{self._where}: sparse initializer '{name}'"
            read = self._context.reader.sparse(sparse, where)
            properties: dict[str, Attribute] = {"value": read.dense, "sparse": read.source}
            self._initializer(name, properties, None, arguments, scope)

    def _initializer(
        self,
        name: str,
        properties: dict[str, Attribute],
        rest: TensorProto | None,
        arguments: Mapping[str, SSAValue],
        scope: Scope,
    ) -> None:
        value = properties["value"]
        assert isinstance(value, TensorAttr)
        declared = self._input_types.get(name)
        if declared is not None and contradicts(declared, value.type):
            raise InvalidModel(
                f"{self._where}: initializer '{name}' is {described(value.type)}, but the input of "
                f"its name is declared {described(declared)}: correct one of the two"
            )
        attributes: dict[str, Attribute] = {"onnx.names": NamesAttr(Names(None, (name,)))}
        if rest is not None:
            data = rest.SerializeToString(deterministic=True)
            attributes["onnx.residual"] = ResidualAttr(data)
        if name in arguments:
            self._ops.append(
                DefaultOp.create(
                    operands=[arguments[name]], properties=properties, attributes=attributes
                )
            )
            return
        op = InitializerOp.create(
            result_types=[value.type], properties=properties, attributes=attributes
        )
        self._ops.append(op)
        scope.define(name, op.results[0], "an initializer")

    def _import(self, nodes: Sequence[NodeProto], scope: Scope) -> None:
        if not _is_sorted(nodes):
            nodes = sorted_nodes(nodes, scope.visible_names(), self._where)
            self._context.notes.append(
                f"{self._where}: nodes were not in topological order and have been sorted"
            )
        for node in told(nodes, f"importing {self._where}", len(nodes), TOLD_NODES):
            self._node(node, scope)

    def _node(self, node: NodeProto, scope: Scope) -> None:
        label = _label(node)
        where = f"{self._where}: {label}"
        operands: list[SSAValue] = []
        for name in node.input:
            value = scope.find(name) if name else self._absent()
            if value is None:
                hint = did_you_mean(name, scope.visible_names())
                raise InvalidModel(f"{where} reads '{name}', which nothing defines{hint}")
            operands.append(value)

        def body(graph: GraphProto, attribute: str) -> Region:
            place = self._place.inner(f"{where}: {attribute}", scope)
            return GraphImporter(self._context, self._versions, place).graph(graph)

        types = [self._types.get(name, UNKNOWN) if name else ABSENT for name in node.output]
        op = self._nodes.read(node, operands, types, where, body)
        self._ops.append(op)
        for name, result in zip(node.output, op.results, strict=True):
            if name:
                scope.define(name, result, label)

    def _absent(self) -> SSAValue:
        if self._none is None:
            self._none = NoneOp.new()
        return self._none.results[0]

    def _finished(self, block: Block, scope: Scope, interface: Interface) -> Region:
        values: list[SSAValue] = []
        for info in interface.outputs:
            value = scope.find(info.name)
            if value is None:
                hint = did_you_mean(info.name, scope.visible_names())
                raise InvalidModel(f"{self._where}: nothing defines the output '{info.name}'{hint}")
            values.append(value)
        if self._none is not None:
            block.add_op(self._none)
        block.add_ops(self._ops)
        block.add_op(
            ReturnOp.create(operands=values, properties={"interface": InterfaceAttr(interface)})
        )
        return Region(block)


def _is_sorted(nodes: Sequence[NodeProto]) -> bool:
    """Whether every node stands behind what it and its bodies read."""
    later: set[str] = {name for node in nodes for name in node.output if name}
    for node in nodes:
        has_body = any(attribute.type in (GRAPH, GRAPHS) for attribute in node.attribute)
        if not later.isdisjoint(reads_of(node) if has_body else node.input):
            return False
        later.difference_update(node.output)
    return True


def _label(node: NodeProto) -> str:
    """For messages; joined, which fails for what is no text, as `utf8` counts on."""
    name = node.name or (node.output[0] if node.output else "")
    return "".join(("node '", name, "' (", node.op_type, ")"))
