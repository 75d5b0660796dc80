"""Attributes that carry plain text, bytes and key-value pairs of the model.

All are `Data` with a print of their own: builtin string attributes cost three times as much and
lose text that is not ASCII.
"""

from __future__ import annotations

import base64

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from foldline.support.text import quoted, unquoted

Metadata = tuple[tuple[str, str], ...]


@irdl_attr_definition
class TextAttr(Data[str]):
    """A string of the model: a STRING attribute, a doc string, an operator's name."""

    name = "onnx.text"

    def verify(self) -> None:
        """Refuse bytes, which protobuf hands over for text that is not UTF-8."""
        "".join((self.data,))

    def print_parameter(self, printer: Printer) -> None:
        """Write `<"text">`."""
        with printer.in_angle_brackets():
            printer.print_string(quoted(self.data))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Read what `print_parameter` wrote."""
        with parser.in_angle_brackets():
            return parse_text(parser)


@irdl_attr_definition
class TextsAttr(Data[tuple[str, ...]]):
    """A list of strings of the model."""

    name = "onnx.texts"

    def verify(self) -> None:
        """Refuse bytes, which protobuf hands over for text that is not UTF-8."""
        "".join(self.data)

    def print_parameter(self, printer: Printer) -> None:
        """Write `<"a", "b">`."""
        with printer.in_angle_brackets():
            printer.print_list(self.data, lambda text: printer.print_string(quoted(text)))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        """Read what `print_parameter` wrote."""
        texts = parser.parse_comma_separated_list(
            parser.Delimiter.ANGLE, lambda: parse_text(parser)
        )
        return tuple(texts)


@irdl_attr_definition
class ResidualAttr(Data[bytes]):
    """A serialised message with what the IR does not model; export starts from it."""

    name = "onnx.residual"

    def print_parameter(self, printer: Printer) -> None:
        """Write the bytes in base 64."""
        with printer.in_angle_brackets():
            printer.print_string(f'"{base64.b64encode(self.data).decode()}"')

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        """Read what `print_parameter` wrote."""
        with parser.in_angle_brackets():
            return base64.b64decode(parser.parse_str_literal())


@irdl_attr_definition
class MetadataAttr(Data[Metadata]):
    """`metadata_props` of a message: key and value pairs, in order."""

    name = "onnx.metadata"

    def verify(self) -> None:
        """Refuse bytes, which protobuf hands over for text that is not UTF-8."""
        "".join(key + value for key, value in self.data)

    def print_parameter(self, printer: Printer) -> None:
        """Write `<"key" = "value", …>`."""
        with printer.in_angle_brackets():
            printer.print_list(
                self.data,
                lambda pair: printer.print_string(f"{quoted(pair[0])} = {quoted(pair[1])}"),
            )

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Metadata:
        """Read what `print_parameter` wrote."""

        def pair() -> tuple[str, str]:
            key = parse_text(parser)
            parser.parse_punctuation("=")
            return key, parse_text(parser)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, pair))


def print_optional_text(printer: Printer, text: str | None) -> None:
    """Write a string literal, or `_` for None."""
    printer.print_string("_" if text is None else quoted(text))


def parse_optional_text(parser: AttrParser) -> str | None:
    """Read what `print_optional_text` wrote."""
    text = parser.parse_optional_str_literal()
    if text is None:
        parser.parse_characters("_")
        return None
    return unquoted(text)


def parse_text(parser: AttrParser) -> str:
    """Read a string literal that `quoted` wrote."""
    return unquoted(parser.parse_str_literal())
