"""How rules read parameters and axes: attributes and inputs alike, symbols included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from foldline.dialects import OPERATORS
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.parameters import Given
from foldline.stages.symbols.expression import Expr, constant
from foldline.stages.symbols.facts import Dims, Item, Known

Items = tuple[Item, ...]
RuleT = TypeVar("RuleT")


def given_items(op: OnnxOp, known: Known, name: str, index: int) -> Given[Items] | None:
    """A list parameter, from the attribute or the input; None where nothing is known of it."""
    attribute: Any = op.value_of(name)
    if attribute is not None:
        items: list[Item] = np.ravel(attribute).tolist()
        return Given(tuple(items))
    operand = op.operand(index)
    if operand is None:
        return Given(None)
    elements = known.elements(operand)
    return None if elements is None else Given(elements.items)


def given_numbers(op: OnnxOp, known: Known, name: str, index: int) -> Given[tuple[int, ...]] | None:
    """A list parameter of which every element is an integer number."""
    found = given_items(op, known, name, index)
    if found is None or found.value is None:
        return None if found is None else Given(None)
    numbers = [item for item in found.value if isinstance(item, int)]
    return Given(tuple(numbers)) if len(numbers) == len(found.value) else None


def operand_dims(op: OnnxOp, known: Known, index: int) -> Dims:
    """The sizes of an input; None where it is absent or of unknown rank."""
    operand = op.operand(index)
    return None if operand is None else known.dims(operand)


def axis_of(op: OnnxOp, rank: int, default: int = 0, name: str = "axis") -> int | None:
    """The axis that an attribute names, from 0; None where there is no such axis."""
    return normalised(value if (value := op.int_of(name)) is not None else default, rank)


def normalised(axis: int, rank: int) -> int | None:
    """An axis counted from 0."""
    return axis % rank if -rank <= axis < rank else None


def axes_of(axes: Iterable[int], rank: int) -> tuple[int, ...] | None:
    """Axes counted from 0; None where one does not exist or stands twice."""
    found = [normalised(axis, rank) for axis in axes]
    known = [axis for axis in found if axis is not None]
    return tuple(known) if len(set(known)) == len(found) else None


def product(sizes: Iterable[Expr]) -> Expr:
    """The product of sizes; 1 of none."""
    found = constant(1)
    for size in sizes:
        found = found * size
    return found


def without_common(left: Sequence[Expr], right: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
    """Two lists of factors without those that stand in both."""
    rest, others = list(left), list[Expr]()
    for factor in right:
        if factor in rest:
            rest.remove(factor)
        else:
            others.append(factor)
    return rest, others


def by_class(rules: Mapping[RuleT, Sequence[str]], domain: str = "") -> dict[type[NodeOp], RuleT]:
    """A table of rules by operator class, written as rule to operator names of one domain."""
    return {OPERATORS[domain, name]: rule for rule, names in rules.items() for name in names}
