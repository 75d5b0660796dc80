"""The one syntax of all ONNX operations: `%y = onnx.Conv(%x, %w) {group = 2 : i64} : tensor<…>`.

A region list follows the dictionary of operations that have bodies. Operand types are not
repeated, which halves the time to parse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer


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
            printer.print_attr_dict(dictionary)
        printer.print_regions(self.regions)
        if self.results:
            printer.print_string(" : ")
            printer.print_list(self.result_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` wrote."""
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_operand)
        dictionary = parser.parse_optional_attr_dict()
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
