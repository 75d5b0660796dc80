"""ModelProto as a module of the onnx dialect."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import onnx
from onnx import FunctionProto, ModelProto, OperatorSetIdProto
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute

from foldline.dialects.onnx.attributes import (
    Interface,
    MetadataAttr,
    Opsets,
    OpsetsAttr,
    ResidualAttr,
    TextAttr,
    TextsAttr,
    ValueInfo,
    canonical_domain,
)
from foldline.dialects.onnx.schema import newest_versions
from foldline.dialects.onnx.structure import FunctionOp, GraphOp, function_symbol
from foldline.importer.attributes import AttributeReader
from foldline.importer.declarations import metadata, value_info
from foldline.importer.external_data import ExternalData
from foldline.importer.graph import GraphImporter, ModelContext, Place
from foldline.importer.large_tensors import LargeTensors
from foldline.importer.residual import leftover
from foldline.importer.source import Source, blamed_on, read_source
from foldline.importer.utf8 import refusing_bytes
from foldline.support.errors import InvalidModel

_MODEL_FIELDS = frozenset(
    {"ir_version", "opset_import", "graph", "functions", "doc_string", "metadata_props"}
)
_FUNCTION_FIELDS = frozenset(
    {
        "name",
        "domain",
        "overload",
        "input",
        "output",
        "attribute",
        "attribute_proto",
        "node",
        "doc_string",
        "opset_import",
        "value_info",
        "metadata_props",
    }
)


def import_model(source: Source, notes: list[str] | None = None) -> ModuleOp:
    """The module of a model: a path, bytes, a binary file object or a ModelProto.

    The caller's model is not touched. External data is memory-mapped and stays in its files.
    `notes` receives what was changed on the way in (nodes that had to be sorted).

    Raises InvalidModel naming what is wrong and where; InvalidArgumentError for no source at all.
    """
    read = read_source(source)
    reader = AttributeReader(ExternalData(read.folder), read.large)
    collecting = gc.isenabled()
    gc.disable()
    try:
        with blamed_on(source), refusing_bytes(read.proto):
            module = _model(read.proto, reader, [] if notes is None else notes)
    finally:
        if collecting:
            gc.enable()
    return module


def import_function(proto: FunctionProto) -> FunctionOp:
    """The operation of a function that stands alone, and calls no other.

    Raises InvalidModel naming what is wrong and where.
    """
    reader = AttributeReader(ExternalData(None), LargeTensors())
    return _function(proto, ModelContext(onnx.IR_VERSION, reader, {}), [])


def _model(proto: ModelProto, reader: AttributeReader, notes: list[str]) -> ModuleOp:
    if not proto.HasField("graph"):
        raise InvalidModel("the model has no graph")
    if not 1 <= proto.ir_version <= onnx.IR_VERSION:
        advice = (
            "install a newer onnx, or export with an older one"
            if proto.ir_version
            else ("set ir_version to that of the onnx release it was made with")
        )
        raise InvalidModel(
            f"the model has IR version {proto.ir_version}; the installed onnx knows 1 to "
            f"{onnx.IR_VERSION}: {advice}"
        )
    notes.extend(_ignored(proto))
    opsets = _opsets(proto, notes)
    context = ModelContext(proto.ir_version, reader, _symbols(proto), notes)
    ops = [_function(function, context, notes) for function in proto.functions]
    region = GraphImporter(context, opsets.versions, Place("graph")).graph(proto.graph)
    graph = GraphOp.create(properties={"opsets": opsets}, regions=[region])
    attributes: dict[str, Attribute] = {"onnx.ir_version": IntegerAttr(proto.ir_version, i64)}
    if proto.HasField("doc_string"):
        attributes["onnx.doc"] = TextAttr(proto.doc_string)
    if (pairs := metadata(proto.metadata_props, "model")) is not None:
        attributes["onnx.metadata"] = MetadataAttr(pairs)
    rest = leftover(proto, _MODEL_FIELDS)
    if rest is not None:
        attributes["onnx.residual"] = ResidualAttr(rest.SerializeToString(deterministic=True))
    return ModuleOp([*ops, graph], attributes)


def _opsets(proto: ModelProto | FunctionProto, notes: list[str]) -> OpsetsAttr:
    """The imports of a model or function, checked."""
    where = "model" if isinstance(proto, ModelProto) else _place(proto)
    if not proto.opset_import:
        if isinstance(proto, ModelProto) and proto.ir_version >= 3:
            raise InvalidModel(
                "the model imports no operator set; add to opset_import the version of domain "
                "'ai.onnx' that it was exported for"
            )
        return OpsetsAttr(((None, 1),)) if isinstance(proto, ModelProto) else OpsetsAttr(())
    entries: Opsets = tuple(_opset(entry, where) for entry in proto.opset_import)
    opsets = OpsetsAttr(entries)
    newest = newest_versions()
    for domain, version in opsets.versions.items():
        if domain in newest and version > newest[domain]:
            raise InvalidModel(
                f"{where} imports version {version} of domain '{domain or 'ai.onnx'}'; the "
                f"installed onnx knows 1 to {newest[domain]}: install a newer onnx, or export for "
                f"{newest[domain]} or earlier"
            )
        given = [v for d, v in entries if canonical_domain(d or "") == domain]
        if len(given) > 1:
            notes.append(
                f"{where}: domain '{domain or 'ai.onnx'}' is imported at versions "
                f"{', '.join(map(str, given))}; the highest is taken"
            )
    return opsets


def _opset(entry: OperatorSetIdProto, where: str) -> tuple[str | None, int]:
    if entry.version < 1:
        raise InvalidModel(
            f"{where} imports version {entry.version} of domain '{entry.domain or 'ai.onnx'}', "
            "expected 1 or later"
        )
    if leftover(entry, frozenset({"domain", "version"})) is not None:
        raise InvalidModel(f"{where}: the import of '{entry.domain}' has an unknown field")
    return entry.domain if entry.HasField("domain") else None, entry.version


def _symbols(proto: ModelProto) -> dict[tuple[str, str, str], StringAttr]:
    """The symbol of each local function by its identity."""
    symbols: dict[tuple[str, str, str], StringAttr] = {}
    for function in proto.functions:
        symbol = function_symbol(function.domain, function.name, function.overload)
        key = (canonical_domain(function.domain), function.name, function.overload)
        if key in symbols:
            raise InvalidModel(
                f"the model has two local functions '{symbol.data}'; rename one, or give it "
                "another overload"
            )
        symbols[key] = symbol
    return symbols


def _place(proto: FunctionProto) -> str:
    return f"function '{proto.domain}::{proto.name}'"


def _ignored(proto: ModelProto) -> Iterator[str]:
    """What a model holds that has no effect here."""
    if proto.training_info:
        yield (
            "model: training_info is ignored; it is not in optimised files, whose weights are "
            "no longer what it would train"
        )
    placed = any(node.device_configurations for node in proto.graph.node)
    if proto.configuration or placed:
        yield "model: device configurations are kept but ignored; all runs on the CPU of this host"


def _function(proto: FunctionProto, context: ModelContext, notes: list[str]) -> FunctionOp:
    where = _place(proto)
    if not proto.name:
        raise InvalidModel("a local function has no name")
    opsets = _opsets(proto, notes)
    interface = Interface(
        None,
        tuple(ValueInfo(name) for name in proto.input),
        tuple(ValueInfo(name) for name in proto.output),
        tuple(value_info(info, "value_info", where) for info in proto.value_info),
    )
    importer = GraphImporter(context, opsets.versions, Place(where, in_function=True))
    region = importer.function(interface, proto.node)
    rest = leftover(proto, _FUNCTION_FIELDS)
    rest = FunctionProto() if rest is None else rest
    defaults: dict[str, Attribute] = {}
    for attribute in proto.attribute_proto:
        label = f"{where}: default of '{attribute.name}'"
        kind = context.reader.kind(attribute, label)
        if attribute.name in defaults or attribute.name in proto.attribute:
            raise InvalidModel(f"{label} is given twice")
        defaults[attribute.name] = context.reader.read(attribute, kind, label)
        if (kept := context.reader.rest(attribute, kind, label)) is not None:
            kept.name = attribute.name
            rest.attribute_proto.append(kept)
    for name in ("domain", "overload"):
        if proto.HasField(name) and not getattr(proto, name):
            setattr(rest, name, "")
    properties: dict[str, Attribute] = {
        "sym_name": function_symbol(proto.domain, proto.name, proto.overload),
        "domain": TextAttr(proto.domain),
        "op_type": TextAttr(proto.name),
        "opsets": opsets,
        "parameters": TextsAttr(tuple(proto.attribute)),
        "defaults": DictionaryAttr(defaults),
    }
    if proto.overload:
        properties["overload"] = TextAttr(proto.overload)
    attributes: dict[str, Attribute] = {}
    if proto.HasField("doc_string"):
        attributes["onnx.doc"] = TextAttr(proto.doc_string)
    if (pairs := metadata(proto.metadata_props, where)) is not None:
        attributes["onnx.metadata"] = MetadataAttr(pairs)
    if data := rest.SerializeToString(deterministic=True):
        attributes["onnx.residual"] = ResidualAttr(data)
    return FunctionOp.create(properties=properties, attributes=attributes, regions=[region])
