"""`fold.known`: what the stages know about the values of an operation, as one attribute.

`#fold.known<[_, "int64", [3], [1, _, "2*N"], "dimension-compute"], …>`: one entry a result.
Facts about block arguments stand on the operation that owns the region, in `fold.known_arguments`.

A fact is discardable: comparison and merging ignore it, and whoever changes operand types or
values drops the facts that hang on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.ir import Block, BlockArgument, Data, Operation, OpResult, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.text import parse_text
from foldline.support.text import quoted, unquoted

KNOWN = "fold.known"
KNOWN_ARGUMENTS = "fold.known_arguments"


@dataclass(frozen=True, slots=True)
class PartlyKnown:
    """An integer tensor known element by element, in C order."""

    element: str
    """ONNX's name of the element type: `int64`."""
    shape: tuple[int, ...]
    elements: tuple[int | str | None, ...]
    """A number; the text of an expression of unknown sizes; None where an element is not known."""
    source: str
    """The pass that found it."""


@dataclass(frozen=True, slots=True)
class FullyKnown:
    """A value known in full. On an operation that is no constant: a potential constant."""

    value: TensorAttr
    source: str
    """The pass that found it."""


Fact: TypeAlias = PartlyKnown | FullyKnown
Facts: TypeAlias = tuple[Fact | None, ...]


@irdl_attr_definition
class KnownAttr(Data[Facts]):
    """Facts about the results, or the block arguments, of an operation; None: nothing known."""

    name = "fold.known"

    def print_parameter(self, printer: Printer) -> None:
        """Write one entry a value."""
        with printer.in_angle_brackets():
            printer.print_list(self.data, lambda fact: _print_fact(printer, fact))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Facts:
        """Read what `print_parameter` wrote."""
        facts = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _fact(parser))
        return tuple(facts)


def _print_fact(printer: Printer, fact: Fact | None) -> None:
    match fact:
        case None:
            printer.print_string("_")
        case FullyKnown():
            printer.print_string("[")
            printer.print_attribute(fact.value)
            printer.print_string(f", {quoted(fact.source)}]")
        case PartlyKnown():
            shape = ", ".join(map(str, fact.shape))
            elements = ", ".join(map(_element_text, fact.elements))
            head = f"[{quoted(fact.element)}, [{shape}], [{elements}]"
            printer.print_string(f"{head}, {quoted(fact.source)}]")


def _element_text(element: int | str | None) -> str:
    return "_" if element is None else quoted(element) if isinstance(element, str) else str(element)


def _fact(parser: AttrParser) -> Fact | None:
    if parser.parse_optional_punctuation("[") is None:
        parser.parse_characters("_")
        return None
    element = parser.parse_optional_str_literal()
    if element is None:
        value = parser.parse_attribute()
        if not isinstance(value, TensorAttr):
            parser.raise_error(f"expected a tensor, got {value}")
        fact: Fact = FullyKnown(value, _source(parser))
    else:
        parser.parse_punctuation(",")
        square = parser.Delimiter.SQUARE
        shape = parser.parse_comma_separated_list(square, parser.parse_integer)
        parser.parse_punctuation(",")
        elements = parser.parse_comma_separated_list(square, lambda: _element(parser))
        fact = PartlyKnown(element, tuple(shape), tuple(elements), _source(parser))
    parser.parse_punctuation("]")
    return fact


def _source(parser: AttrParser) -> str:
    parser.parse_punctuation(",")
    return parse_text(parser)


def _element(parser: AttrParser) -> int | str | None:
    text = parser.parse_optional_str_literal()
    if text is not None:
        return unquoted(text)
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is None:
        parser.parse_characters("_")
    return number


def get_fact(value: SSAValue) -> Fact | None:
    """What is known of a value beside its type; None if nothing is."""
    holder, key, index = _place(value)
    facts = _facts(holder, key)
    return facts[index] if index < len(facts) else None


def set_fact(value: SSAValue, fact: Fact | None) -> None:
    """Note what is known of a value; None takes the note away.

    Raises ValueError where a block argument's block stands in no operation.
    """
    holder, key, index = _place(value)
    if holder is None:
        raise ValueError("the block of the argument stands in no operation")
    facts = list(_facts(holder, key))
    facts += [None] * (index + 1 - len(facts))
    facts[index] = fact
    if any(entry is not None for entry in facts):
        holder.attributes[key] = KnownAttr(tuple(facts))
    else:
        holder.attributes.pop(key, None)


def drop_facts(op: Operation) -> bool:
    """Drop all that is noted of the results and block arguments; whether there was anything."""
    dropped = [op.attributes.pop(key, None) for key in (KNOWN, KNOWN_ARGUMENTS)]
    return any(fact is not None for fact in dropped)


def _facts(holder: Operation | None, key: str) -> Sequence[Fact | None]:
    found = holder.attributes.get(key) if holder is not None else None
    return found.data if isinstance(found, KnownAttr) else ()


def _place(value: SSAValue) -> tuple[Operation | None, str, int]:
    """The operation that holds a value's fact, under which key, and at which index."""
    owner = value.owner
    if isinstance(value, BlockArgument) and isinstance(owner, Block):
        holder = owner.parent_op()
        before = _arguments_before(holder, owner) if holder is not None else 0
        return holder, KNOWN_ARGUMENTS, before + value.index
    if isinstance(owner, Operation):
        return owner, KNOWN, cast(OpResult, value).index
    raise ValueError(f"{value} is neither a result nor a block argument")


def _arguments_before(holder: Operation, block: Block) -> int:
    count = 0
    for region in holder.regions:
        for other in region.blocks:
            if other is block:
                return count
            count += len(other.args)
    return count
