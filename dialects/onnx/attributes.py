"""Attributes of the onnx dialect that carry book-keeping: names, opsets, interfaces, references."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from foldline.dialects.onnx.text import (
    Metadata,
    MetadataAttr,
    ResidualAttr,
    TextAttr,
    parse_optional_text,
    parse_text,
    print_optional_text,
)
from foldline.dialects.onnx.text import (
    TextsAttr as TextsAttr,
)
from foldline.support.text import quoted

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a node and of its outputs."""

    node: str | None
    """None: the node has no name field."""
    values: tuple[str, ...] = ()
    """One name a result; empty where the result has none."""


@irdl_attr_definition
class NamesAttr(Data[Names]):
    """Node and value names of an operation. Discardable: comparison and merging ignore it."""

    name = "onnx.names"

    def print_parameter(self, printer: Printer) -> None:
        """Write `<"node" : "value", "value">`."""
        with printer.in_angle_brackets():
            print_optional_text(printer, self.data.node)
            if self.data.values:
                printer.print_string(" : ")
                printer.print_list(
                    self.data.values, lambda text: printer.print_string(quoted(text))
                )

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Names:
        """Read what `print_parameter` wrote."""
        with parser.in_angle_brackets():
            node = parse_optional_text(parser)
            values: Iterable[str] = ()
            if parser.parse_optional_punctuation(":") is not None:
                values = parser.parse_comma_separated_list(
                    parser.Delimiter.NONE, lambda: parse_text(parser)
                )
            return Names(node, tuple(values))


Opsets = tuple[tuple[str | None, int], ...]


@irdl_attr_definition
class OpsetsAttr(Data[Opsets]):
    """Operator set imports as written: domain (None: field unset) and version, in order."""

    name = "onnx.opsets"

    @property
    def versions(self) -> MappingProxyType[str, int]:
        """Version by domain; `ai.onnx` is the default domain, the highest of duplicates binds."""
        return _versions(self.data)

    def print_parameter(self, printer: Printer) -> None:
        """Write `<"" : 17, …>`; `_` for an unset domain."""

        def entry(pair: tuple[str | None, int]) -> None:
            print_optional_text(printer, pair[0])
            printer.print_string(f" : {pair[1]}")

        with printer.in_angle_brackets():
            printer.print_list(self.data, entry)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Opsets:
        """Read what `print_parameter` wrote."""

        def entry() -> tuple[str | None, int]:
            domain = parse_optional_text(parser)
            parser.parse_punctuation(":")
            return domain, parser.parse_integer(allow_negative=False)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry))


@lru_cache(maxsize=256)
def _versions(opsets: Opsets) -> MappingProxyType[str, int]:
    versions: dict[str, int] = {}
    for domain, version in opsets:
        canonical = canonical_domain(domain or "")
        versions[canonical] = max(version, versions.get(canonical, 0))
    return MappingProxyType(versions)


def canonical_domain(domain: str) -> str:
    """`ai.onnx` and the empty domain are one."""
    return "" if domain == "ai.onnx" else domain


@dataclass(frozen=True, slots=True)
class ValueInfo:
    """A declared value: name, type and what else its message holds."""

    name: str
    type: Attribute | None = None
    doc: str | None = None
    metadata: Metadata | None = None
    residual: bytes = b""
    is_constant: bool = False
    """A graph input of IR < 4 that an initializer makes a constant: no block argument."""

    def with_type(self, new: Attribute) -> ValueInfo:
        """The same declaration with another type; leftovers of the old type are dropped."""
        return replace(self, type=new, residual=b"")


@dataclass(frozen=True, slots=True)
class Interface:
    """What a graph, body or function declares beside its nodes."""

    name: str | None = None
    inputs: tuple[ValueInfo, ...] = ()
    outputs: tuple[ValueInfo, ...] = ()
    value_info: tuple[ValueInfo, ...] = ()
    doc: str | None = None
    metadata: Metadata | None = None
    residual: bytes = b""

    def argument_infos(self) -> tuple[ValueInfo, ...]:
        """Declarations of the block arguments, in order."""
        return tuple(info for info in self.inputs if not info.is_constant)


@irdl_attr_definition
class InterfaceAttr(Data[Interface]):
    """The interface of a graph, on its terminator."""

    name = "onnx.interface"

    def print_parameter(self, printer: Printer) -> None:
        """Write name, inputs, outputs, value_info, doc string, metadata, residual."""
        it = self.data
        with printer.in_angle_brackets():
            print_optional_text(printer, it.name)
            for infos in (it.inputs, it.outputs, it.value_info):
                printer.print_string(", [")
                printer.print_list(infos, lambda info: _print_info(printer, info))
                printer.print_string("]")
            _print_extras(printer, it.doc, it.metadata, it.residual)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Interface:
        """Read what `print_parameter` wrote."""
        with parser.in_angle_brackets():
            name = parse_optional_text(parser)
            lists: list[tuple[ValueInfo, ...]] = []
            for _ in range(3):
                parser.parse_punctuation(",")
                lists.append(_parse_list(parser, lambda: _parse_info(parser)))
            doc, metadata, residual = _parse_extras(parser)
        return Interface(name, lists[0], lists[1], lists[2], doc, metadata, residual)


def _parse_list(parser: AttrParser, item: Callable[[], Item]) -> tuple[Item, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, item))


def _print_info(printer: Printer, info: ValueInfo) -> None:
    printer.print_string(quoted(info.name))
    if info.is_constant:
        printer.print_string(" constant")
    if info.type is not None:
        printer.print_string(" : ")
        printer.print_attribute(info.type)
    _print_extras(printer, info.doc, info.metadata, info.residual)


def _parse_info(parser: AttrParser) -> ValueInfo:
    name = parse_text(parser)
    is_constant = parser.parse_optional_keyword("constant") is not None
    type_ = None
    if parser.parse_optional_punctuation(":") is not None:
        type_ = parser.parse_attribute()
    doc, metadata, residual = _parse_extras(parser)
    return ValueInfo(name, type_, doc, metadata, residual, is_constant)


def _print_extras(
    printer: Printer, doc: str | None, metadata: Metadata | None, residual: bytes
) -> None:
    if doc is not None:
        printer.print_string(" doc ")
        printer.print_attribute(TextAttr(doc))
    if metadata is not None:
        printer.print_string(" metadata ")
        printer.print_attribute(MetadataAttr(metadata))
    if residual:
        printer.print_string(" residual ")
        printer.print_attribute(ResidualAttr(residual))


def _parse_extras(parser: AttrParser) -> tuple[str | None, Metadata | None, bytes]:
    doc: str | None = None
    metadata: Metadata | None = None
    residual = b""
    while (word := parser.parse_optional_keyword_in(("doc", "metadata", "residual"))) is not None:
        match parser.parse_attribute():
            case TextAttr(data=text) if word == "doc":
                doc = text
            case MetadataAttr(data=pairs) if word == "metadata":
                metadata = pairs
            case ResidualAttr(data=data) if word == "residual":
                residual = data
            case other:
                parser.raise_error(f"{word} cannot be {other}")
    return doc, metadata, residual


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to an attribute of the enclosing function (`ref_attr_name`)."""

    attribute: str
    kind: int
    """Value of `AttributeProto.type`."""


@irdl_attr_definition
class ReferenceAttr(Data[Reference]):
    """The value of an attribute that a caller of the function gives."""

    name = "onnx.reference"

    def print_parameter(self, printer: Printer) -> None:
        """Write `<"attribute", kind>`."""
        with printer.in_angle_brackets():
            printer.print_string(f"{quoted(self.data.attribute)}, {self.data.kind}")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Reference:
        """Read what `print_parameter` wrote."""
        with parser.in_angle_brackets():
            attribute = parse_text(parser)
            parser.parse_punctuation(",")
            return Reference(attribute, parser.parse_integer())
