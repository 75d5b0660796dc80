"""The one syntax of all ONNX operations: `%y = onnx.Conv(%x, %w) {group = 2 : i64} : tensor<…>`.

A region list follows the dictionary of operations that have bodies. Operand types are not
repeated, which halves the time to parse; so an operand has to be defined before it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, cast

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, f32
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import IRDLOperation, irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer


@irdl_attr_definition
class FloatBitsAttr(Data[bytes]):
    """How a list of floats is written when six digits do not say each of them.

    xDSL may write such a list in hexadecimal, which it cannot read. This attribute stands in text
    only, never in the IR.
    """

    name = "onnx.float_bits"

    def print_parameter(self, printer: Printer) -> None:
        """Write the float32 bits in hexadecimal."""
        with printer.in_angle_brackets():
            printer.print_string(f'"{self.data.hex()}"')

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> bytes:
        """Read what `print_parameter` wrote."""
        with parser.in_angle_brackets():
            return bytes.fromhex(parser.parse_str_literal())


class TerseOp(IRDLOperation):
    """An operation in the one terse syntax; properties and attributes share the dictionary.

    Names of discardable attributes hold a dot (`onnx.names`), names of properties do not.
    """

    def print(self, printer: Printer) -> None:
        """Write operands, dictionary, regions and result types."""
        printer.print_string("(")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(")")
        dictionary = {**self.properties, **self.attributes}
        if dictionary:
            printer.print_string(" ")
            printer.print_attr_dict(_each(dictionary, _writable))
        printer.print_regions(self.regions)
        if self.results:
            printer.print_string(" : ")
            printer.print_list(self.result_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` wrote."""
        operands = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: _defined_operand(parser)
        )
        dictionary = _each(parser.parse_optional_attr_dict(), _as_read)
        regions = parser.parse_region_list()
        result_types: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation(":") is not None:
            result_types = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_attribute
            )
        return cls.create(
            operands=operands,
            result_types=result_types,
            properties={key: value for key, value in dictionary.items() if "." not in key},
            attributes={key: value for key, value in dictionary.items() if "." in key},
            regions=regions,
        )


def _defined_operand(parser: Parser) -> SSAValue:
    operand = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(operand.operand_name, ())
    if operand.index >= len(values):
        parser.raise_error("operand is read before it is defined", operand.span)
    return values[operand.index]


def _each(
    dictionary: Mapping[str, Attribute], change: Callable[[Attribute], Attribute]
) -> dict[str, Attribute]:
    return {key: change(value) for key, value in dictionary.items()}


def _writable(value: Attribute) -> Attribute:
    """An attribute in a form that xDSL can read back."""
    if isinstance(value, DictionaryAttr):
        return DictionaryAttr(_each(value.data, _writable))
    if isinstance(value, DenseArrayBase):
        array = cast(Any, value)
        if array.elt_type == f32 and not all(map(_is_short, array.get_values())):
            return FloatBitsAttr(np.array(array.get_values(), "<f4").tobytes())
    return cast(Attribute, value)


def _is_short(value: float) -> bool:
    return math.isfinite(value) and np.float32(f"{value:.5e}") == np.float32(value)


def _as_read(value: Attribute) -> Attribute:
    """The inverse of `_writable`."""
    if isinstance(value, DictionaryAttr):
        return DictionaryAttr(_each(value.data, _as_read))
    if isinstance(value, FloatBitsAttr):
        return DenseArrayBase.from_list(f32, np.frombuffer(value.data, "<f4").tolist())
    return value
