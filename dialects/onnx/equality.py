"""Structural equality of operations that ignores what is discardable: names and facts.

xDSL's `is_structurally_equivalent` compares all attributes; two graphs that differ only in what
they are called, or in what a pass noted, are equal here. Other attributes (doc strings, metadata)
count. Types count, and constants are compared by their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from foldline.dialects.onnx.op import describe


def is_discardable(name: str) -> bool:
    """Whether an attribute of this name has no part in equality and merging."""
    return name == "onnx.names" or name.startswith("fold.")


def are_equal(one: Operation, other: Operation) -> bool:
    """Whether two operations, with their bodies, are the same but for names and facts.

    Values defined outside of both are equal only if they are the same value.
    """
    return difference(one, other) is None


def difference(one: Operation, other: Operation) -> str | None:
    """The first place where two operations differ, in words; None if they are equal."""
    return _Comparison().operations(one, other)


class _Comparison:
    def __init__(self) -> None:
        self.twins: dict[SSAValue, SSAValue] = {}
        """Each value of the one met so far, and its counterpart."""

    def operations(self, one: Operation, other: Operation) -> str | None:
        label = describe(one)
        if type(one) is not type(other):
            return f"{label} against {describe(other)}"
        if len(one.operands) != len(other.operands):
            return f"{label}: {len(one.operands)} operands against {len(other.operands)}"
        for index, (a, b) in enumerate(zip(one.operands, other.operands, strict=True)):
            if self.twins.get(a, a) is not b:
                return f"{label}: operand {index} is another value"
        if (found := _types(one.results, other.results)) is not None:
            return f"{label}: {found}"
        if (found := _attributes(one.properties, other.properties)) is not None:
            return f"{label}: {found}"
        if (found := _attributes(_kept(one), _kept(other))) is not None:
            return f"{label}: {found}"
        if len(one.regions) != len(other.regions):
            return f"{label}: {len(one.regions)} regions against {len(other.regions)}"
        for region, twin in zip(one.regions, other.regions, strict=True):
            if (found := self._regions(region, twin)) is not None:
                return f"{label} > {found}"
        self.twins.update(zip(one.results, other.results, strict=True))
        return None

    def _regions(self, one: Region, other: Region) -> str | None:
        blocks, twins = list(one.blocks), list(other.blocks)
        if len(blocks) != len(twins):
            return f"{len(blocks)} blocks against {len(twins)}"
        for block, twin in zip(blocks, twins, strict=True):
            if (found := self._blocks(block, twin)) is not None:
                return found
        return None

    def _blocks(self, one: Block, other: Block) -> str | None:
        if (found := _types(one.args, other.args)) is not None:
            return f"block arguments: {found}"
        self.twins.update(zip(one.args, other.args, strict=True))
        ops, twins = list(one.ops), list(other.ops)
        for op, twin in zip(ops, twins, strict=False):
            if (found := self.operations(op, twin)) is not None:
                return found
        if len(ops) != len(twins):
            return f"{len(ops)} operations against {len(twins)}"
        return None


def _kept(op: Operation) -> dict[str, Attribute]:
    return {name: value for name, value in op.attributes.items() if not is_discardable(name)}


def _types(one: Sequence[SSAValue], other: Sequence[SSAValue]) -> str | None:
    if len(one) != len(other):
        return f"{len(one)} values against {len(other)}"
    for index, (a, b) in enumerate(zip(one, other, strict=True)):
        if a.type != b.type:
            return f"type {index} is {a.type} against {b.type}"
    return None


def _attributes(one: Mapping[str, Attribute], other: Mapping[str, Attribute]) -> str | None:
    if one.keys() != other.keys():
        return f"attributes {sorted(one)} against {sorted(other)}"
    for name, value in one.items():
        if value != other[name]:
            return f"{name} is {value} against {other[name]}"
    return None
