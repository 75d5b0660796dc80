"""What is known of the sizes and elements of values: one object a compile, asked by all passes.

    %s = onnx.Shape(%x) : tensor<2xi64>      dims(%x) = (N, S)     elements(%s) = [N, S]

Facts are found when asked for, producers first, and kept. They stay true whatever a pass rewrites,
as rewrites preserve values; `refresh` finds out whether more is known by now, and infer-shapes
calls it on every node it visits. Which symbols stand for sizes that are not known: `axis_symbols`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Attribute, Block, Operation, SSAValue

from foldline.dialects.fold import FullyKnown, get_fact
from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.constant import ConstantOp, constant_tensor
from foldline.dialects.onnx.control import IfOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.structure import GraphOp, InitializerOp, terminator
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import dims_of, rank
from foldline.stages.symbols.axis_symbols import AxisSymbols
from foldline.stages.symbols.expression import Expr, constant
from foldline.stages.symbols.facts import (
    MAX_ITEMS,
    Dims,
    Elements,
    elements_of_array,
    static_dims,
)
from foldline.stages.symbols.shape_rules import SHAPE_RULES
from foldline.stages.symbols.value_rules import VALUE_RULES

__all__ = ["Dims", "Elements", "Knowledge"]


@dataclass(slots=True)
class _Entry:
    """What is kept of a value."""

    inferred: Dims
    """Sizes by the rule of its operator, before the type is consulted."""
    elements: Elements | None = None
    type: Attribute | None = None
    dims: Dims = None
    """Sizes with what `type` says."""


class Knowledge:
    """Facts about the values of one module."""

    def __init__(self, trust_names: bool = False):
        self._symbols = AxisSymbols(trust_names)
        self._entries: dict[SSAValue, _Entry] = {}
        self._sizes: dict[Expr, None] = {}

    def copied(self, values: Mapping[SSAValue, SSAValue]) -> Knowledge:
        """The same knowledge of a clone, whose values `values` gives for those of the original."""
        copy = Knowledge()
        copy._symbols = self._symbols.copied(values)
        copy._entries = {values[v]: replace(e) for v, e in self._entries.items() if v in values}
        copy._sizes = dict(self._sizes)
        return copy

    def dims(self, value: SSAValue) -> Dims:
        """The sizes of a value, axis by axis; None where its rank is not known."""
        entry = self._entry(value)
        if entry.type is not value.type:
            entry.dims = self._merged(value, entry.inferred)
            entry.type = value.type
        return entry.dims

    def elements(self, value: SSAValue) -> Elements | None:
        """The elements of a small tensor, as far as they are known; None where none is."""
        found = self._entry(value).elements
        if found is not None and found.is_known:
            return found
        fact = get_fact(value)
        return _elements_of_tensor(fact.value) if isinstance(fact, FullyKnown) else found

    def same_shape(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether two values are certain to have the same shape."""
        dims = self.dims(a)
        return dims is not None and dims == self.dims(b)

    def name_of(self, expr: Expr) -> str | None:
        """The name that the model gives a size: that of an axis of a graph input."""
        return self._symbols.name_of(expr)

    def is_nonneg(self, expr: Expr) -> bool:
        """Whether an expression is certain not to be negative in a run that succeeds."""
        return expr.is_nonneg or expr in self._sizes

    def refresh(self, op: NodeOp) -> None:
        """Find out anew what is known of the results of an operation."""
        self._evaluate(op)

    def infer(self, op: NodeOp, types: Sequence[Attribute]) -> list[Dims]:
        """The sizes of the results of `op` where inference gives them `types`; they are kept."""
        self._evaluate(op)
        found: list[Dims] = []
        for result, given in zip(op.results, types, strict=True):
            entry = self._entries[result]
            found.append(_refined(entry.inferred, given))
        return found

    def fresh(self, op: OnnxOp, index: int, axis: int) -> Expr:
        """The symbol of an axis of a result about which nothing is known."""
        return self._symbols.of(op.results[index], axis)

    def result_shape(self, op: OnnxOp, index: int = 0) -> tuple[int, ...] | None:
        """The shape that the rule of `op` found for a result, if it is all numbers."""
        return static_dims(self._entries[op.results[index]].inferred)

    def _entry(self, value: SSAValue) -> _Entry:
        found = self._entries.get(value)
        if found is None:
            owner = value.owner
            if isinstance(owner, Operation):
                self._evaluate_with_sources(owner)
            else:
                self._entries[value] = _Entry(None)
            found = self._entries[value]
        return found

    def _evaluate_with_sources(self, op: Operation) -> None:
        """Evaluate an operation after all it hangs on, without recursion: graphs are deep."""
        stack = [(op, _sources(op))]
        open_ops = {op}
        while stack:
            here, sources = stack[-1]
            for value in sources:
                owner = value.owner
                if isinstance(owner, Block) or value in self._entries:
                    continue
                if owner not in open_ops:
                    stack.append((owner, _sources(owner)))
                    open_ops.add(owner)
                    break
            else:
                self._evaluate(here)
                stack.pop()

    def _evaluate(self, op: Operation) -> None:
        """Apply the rules of an operation; sizes first, as rules for elements go by them."""
        match op:
            case ConstantOp() | InitializerOp():
                tensor = constant_tensor(op.results[0])
                found = None if tensor is None else _elements_of_tensor(tensor)
                self._store(op, ())[0].elements = found
            case IfOp():
                dims, elements = self._of_if(op)
                for entry, items in zip(self._store(op, dims), elements, strict=True):
                    entry.elements = _useful(items)
            case OnnxOp() if not _has_references(op):
                shape_rule, value_rule = SHAPE_RULES.get(type(op)), VALUE_RULES.get(type(op))
                entries = self._store(op, shape_rule(op, self) if shape_rule else ())
                if value_rule is not None:
                    for entry, items in zip(entries, value_rule(op, self), strict=False):
                        entry.elements = _useful(items)
            case _:
                self._store(op, ())

    def _store(self, op: Operation, dims: Sequence[Dims]) -> list[_Entry]:
        is_certain_to_run = op.parent is not None and isinstance(op.parent.parent_op(), GraphOp)
        entries: list[_Entry] = []
        for index, result in enumerate(op.results):
            sizes = dims[index] if index < len(dims) else None
            if sizes is not None:
                if not all(map(_is_sound, sizes)):
                    sizes = tuple(
                        size if _is_sound(size) else self._symbols.of(result, axis)
                        for axis, size in enumerate(sizes)
                    )
                if is_certain_to_run:
                    self._sizes.update((size, None) for size in sizes if not size.is_nonneg)
            entry = self._entries[result] = _Entry(sizes)
            entries.append(entry)
        return entries

    def _of_if(self, op: IfOp) -> tuple[list[Dims], list[Elements | None]]:
        """What both branches say alike."""
        pairs = list(
            zip(terminator(op.then_block).operands, terminator(op.else_block).operands, strict=True)
        )
        dims: list[Dims] = []
        elements: list[Elements | None] = []
        for index, (a, b) in enumerate(pairs):
            left, right = self.dims(a), self.dims(b)
            if left is None or right is None or len(left) != len(right):
                dims.append(None)
            else:
                result = op.results[index]
                dims.append(
                    tuple(
                        x if x is y else self._symbols.of(result, axis)
                        for axis, (x, y) in enumerate(zip(left, right, strict=True))
                    )
                )
            elements.append(_common(self.elements(a), self.elements(b)))
        return dims, elements

    def _merged(self, value: SSAValue, inferred: Dims) -> Dims:
        """Sizes by rule and type together; a symbol where neither knows."""
        known = rank(value.type)
        if known is None:
            return inferred
        given = dims_of(value.type) or ()
        if inferred is None or len(inferred) != known:
            names = self._symbols.of_input(value)
            return tuple(
                constant(dim)
                if isinstance(dim, int) and dim >= 0
                else names.get(axis) or self._symbols.of(value, axis)
                for axis, dim in enumerate(given)
            )
        return _refined(inferred, value.type)


def _sources(op: Operation) -> list[SSAValue]:
    """The values that facts about an operation may hang on."""
    if isinstance(op, IfOp):
        ends = [terminator(op.then_block), terminator(op.else_block)]
        return [value for end in ends for value in end.operands]
    return list(op.operands)


def _has_references(op: OnnxOp) -> bool:
    return any(isinstance(value, ReferenceAttr) for value in op.properties.values())


def _elements_of_tensor(tensor: TensorAttr) -> Elements | None:
    array = tensor.array
    if array.size > MAX_ITEMS or array.dtype.kind not in "iubf":
        return None
    return elements_of_array(array)


def _is_sound(size: Expr) -> bool:
    """Whether an expression can be a size, and is small enough to go on with."""
    return not size.is_unwieldy and (size.value is None or size.value >= 0)


def _useful(found: Elements | None) -> Elements | None:
    """Elements, if any is known; expressions that are too large are not."""
    if found is None:
        return None
    items = tuple(None if isinstance(x, Expr) and x.is_unwieldy else x for x in found.items)
    if items and all(item is None for item in items):
        return None
    return found if items == found.items else Elements(found.dtype, found.shape, items)


def _common(a: Elements | None, b: Elements | None) -> Elements | None:
    if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
        return None
    items = tuple(
        x if x is y or (x == y and repr(x) == repr(y)) else None
        for x, y in zip(a.items, b.items, strict=True)
    )
    return Elements(a.dtype, a.shape, items)


def _refined(inferred: Dims, given: Attribute) -> Dims:
    """Sizes by rule, replaced by the numbers that a type knows."""
    dims = dims_of(given)
    if inferred is None or dims is None or len(dims) != len(inferred):
        return inferred if dims is None else None
    return tuple(
        constant(dim) if isinstance(dim, int) and dim >= 0 else size
        for dim, size in zip(dims, inferred, strict=True)
    )
