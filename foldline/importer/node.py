"""NodeProto as an operation: its class, its attributes, and what the class does not model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from onnx import AttributeProto, GraphProto, NodeProto
from xdsl.dialects.builtin import DictionaryAttr, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, Region, SSAValue

from foldline.dialects import operator_class
from foldline.dialects.fold.flags import KEEP
from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.attributes import (
    MetadataAttr,
    Names,
    NamesAttr,
    ReferenceAttr,
    ResidualAttr,
    TextAttr,
    TextsAttr,
    canonical_domain,
)
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.structure import CallOp, CustomOp
from foldline.importer.attributes import GRAPH, GRAPHS, AttributeReader
from foldline.importer.declarations import metadata
from foldline.importer.residual import leftover
from foldline.support.errors import InvalidModel, UnsupportedOperator
from foldline.support.suggest import did_you_mean

KEEP_KEY = "foldline.keep"
"""A node whose metadata has this key with another value than `false` is not folded."""

_NODE_FIELDS = frozenset(
    {
        "input",
        "output",
        "name",
        "op_type",
        "domain",
        "overload",
        "attribute",
        "doc_string",
        "metadata_props",
    }
)

ImportBody: TypeAlias = Callable[[GraphProto, str], Region]
"""Imports a body; the second argument names the attribute it stands in."""


@dataclass(frozen=True)
class NodeReader:
    """Reads the nodes of one graph or function."""

    reader: AttributeReader
    functions: Mapping[tuple[str, str, str], StringAttr]
    """Symbols of the model's local functions by domain, name and overload."""
    versions: Mapping[str, int]
    """Imported version by domain."""
    in_function: bool

    def read(
        self,
        node: NodeProto,
        operands: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        where: str,
        body: ImportBody,
    ) -> NodeOp:
        """The operation of a node."""
        cls, properties = self._class(node, where)
        given = self._attributes(node, where, body)
        graph_names = tuple(given.graph_names)
        if graph_names != cls.REGIONS:
            properties["graph_names"] = TextsAttr(graph_names)
        if issubclass(cls, OnnxOp):
            _refuse_unknown(cls, given, where)
            properties.update(given.values)
        else:
            properties["given"] = DictionaryAttr(given.values)
        return cls.create(
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=_discardable(node, _rest(node, cls, given.rest), where),
            regions=given.regions,
        )

    def _class(self, node: NodeProto, where: str) -> tuple[type[NodeOp], dict[str, Attribute]]:
        """The operation class of a node, and the properties that say which operator it is."""
        if not node.op_type:
            raise InvalidModel(f"{where} has no op_type: it names no operator")
        domain = canonical_domain(node.domain)
        version = self.versions.get(domain)
        cls = operator_class(domain, node.op_type)
        callee = self.functions.get((domain, node.op_type, node.overload))
        # Fused operators are no operators of files, so there the name is the function's.
        is_function = callee is not None and domain == FUSED_DOMAIN
        if cls is not None and version is not None and not is_function:
            if signature(domain, node.op_type, version):
                return cls, {}
        if callee is not None:
            return CallOp, {"callee": SymbolRefAttr(callee)}
        overloads = [key[2] for key in self.functions if key[:2] == (domain, node.op_type)]
        if overloads:
            raise InvalidModel(
                f"{where}: function '{domain}::{node.op_type}' has no overload "
                f"'{node.overload}'; the model has {', '.join(map(repr, overloads))}"
            )
        return CustomOp, {"domain": TextAttr(domain), "op_type": TextAttr(node.op_type)}

    def _attributes(self, node: NodeProto, where: str, body: ImportBody) -> _Attributes:
        result = _Attributes()
        for proto in node.attribute:
            label = "".join((where, ": attribute '", proto.name, "'"))
            if not proto.name or proto.name in result.values or proto.name in result.graph_names:
                raise InvalidModel(f"{label} has no name or is given twice")
            if proto.ref_attr_name and not self.in_function:
                raise InvalidModel(f"{label} refers to a parameter outside a function")
            kind = self.reader.kind(proto, label)
            if kind in (GRAPH, GRAPHS) and not proto.ref_attr_name:
                for graph in [proto.g] if kind == GRAPH else proto.graphs:
                    result.graph_names.append(proto.name)
                    result.regions.append(body(graph, proto.name))
            else:
                result.values[proto.name] = self.reader.read(proto, kind, label)
            rest = self.reader.rest(proto, kind, label)
            if kind == GRAPHS:
                # One body or several: the leftover says which of the two kinds it was.
                rest = AttributeProto() if rest is None else rest
                rest.type = AttributeProto.GRAPHS
            if rest is not None:
                rest.name = proto.name
                result.rest.append(rest)
        return result


@dataclass
class _Attributes:
    """The attributes of one node, sorted by what becomes of them."""

    values: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    graph_names: list[str] = field(default_factory=list[str])
    regions: list[Region] = field(default_factory=list[Region])
    rest: list[AttributeProto] = field(default_factory=list[AttributeProto])


def _rest(
    node: NodeProto, cls: type[NodeOp], attributes: Sequence[AttributeProto]
) -> NodeProto | None:
    """Fields that nothing models, and spellings of domain and overload that say nothing."""
    rest = leftover(node, _NODE_FIELDS)
    is_alias = node.HasField("domain") and node.domain in ("", "ai.onnx")
    is_idle_overload = node.HasField("overload") and (
        not node.overload or not issubclass(cls, CallOp)
    )
    if rest is None and not (is_alias or is_idle_overload or attributes):
        return None
    rest = NodeProto() if rest is None else rest
    if is_alias:
        rest.domain = node.domain
    if is_idle_overload:
        rest.overload = node.overload
    rest.attribute.extend(attributes)
    return rest


def _discardable(node: NodeProto, rest: NodeProto | None, where: str) -> dict[str, Attribute]:
    name = node.name if node.HasField("name") else None
    attributes: dict[str, Attribute] = {"onnx.names": NamesAttr(Names(name, tuple(node.output)))}
    if node.HasField("doc_string"):
        attributes["onnx.doc"] = TextAttr(node.doc_string)
    if (pairs := metadata(node.metadata_props, where)) is not None:
        attributes["onnx.metadata"] = MetadataAttr(pairs)
        if any(key == KEEP_KEY and value.lower() != "false" for key, value in pairs):
            attributes[KEEP] = UnitAttr()
    if rest is not None:
        data = rest.SerializeToString(deterministic=True)
        attributes["onnx.residual"] = ResidualAttr(data)
    return attributes


def _refuse_unknown(cls: type[OnnxOp], given: _Attributes, where: str) -> None:
    known = cls.get_irdl_definition().properties
    unknown = [name for name in given.values if name not in known]
    unknown += [name for name in given.graph_names if name not in cls.REGIONS]
    if not unknown:
        return
    name, value = unknown[0], given.values.get(unknown[0])
    if name in cls.REGIONS and isinstance(value, ReferenceAttr):
        raise UnsupportedOperator(
            f"{where}: attribute '{name}' is the graph that '{value.data.attribute}' of the "
            "function names; graphs as parameters are not supported: inline the function first"
        )
    hint = did_you_mean(name, [*(known.keys() - {"graph_names"}), *cls.REGIONS])
    raise InvalidModel(f"{where}: {cls.OP_TYPE} has no attribute '{name}'{hint}")
