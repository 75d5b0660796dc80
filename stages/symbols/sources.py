"""Where sizes can be read: the earliest tensor that has them; how vectors are put together.

[N, S, 64]   is   Concat(Gather(Shape(input_ids), [0, 1]), [64])
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.indexing import GatherOp
from foldline.dialects.onnx.math import CastOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ConcatOp, ShapeOp
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.types import element_attribute, rank, tensor_type
from foldline.stages.rewriting import Rewriter
from foldline.stages.symbols.expression import Expr, constant
from foldline.stages.symbols.facts import Elements
from foldline.support.dtypes import BY_NUMPY

SHAPE_WITH_RANGE = 15
"""The operator set from which Shape can give some of the sizes."""
INT64 = element_attribute(BY_NUMPY[np.dtype(np.int64)])


@dataclass(frozen=True)
class Whole:
    """The shape of a tensor."""

    source: SSAValue


@dataclass(frozen=True)
class Some:
    """Some sizes of a tensor, as a vector, or one as a scalar."""

    source: SSAValue
    axes: tuple[int, ...]
    is_scalar: bool = False


@dataclass(frozen=True)
class Numbers:
    """Numbers, as a vector."""

    numbers: tuple[int, ...]


Part: TypeAlias = Whole | Some | Numbers


@dataclass(frozen=True)
class Recipe:
    """How to put a vector or a scalar together."""

    parts: tuple[Part, ...]
    dtype: np.dtype[np.generic]


@dataclass
class Sizes:
    """What can be read at one place of a module."""

    axes: MutableMapping[Expr, tuple[SSAValue, int]]
    shapes: MutableMapping[tuple[Expr, ...], SSAValue]
    recipes: MutableMapping[Elements, Recipe]
    """What was found before: equal vectors are read alike, so that they can share nodes."""

    @classmethod
    def empty(cls) -> Sizes:
        """Nothing."""
        return cls({}, {}, {})

    def inner(self) -> Sizes:
        """The same at the start of a body."""
        return Sizes(ChainMap({}, self.axes), ChainMap({}, self.shapes), ChainMap({}, self.recipes))

    def add(self, value: SSAValue, dims: tuple[Expr, ...]) -> None:
        """From here on the sizes of a value can be read, unless an earlier one has them."""
        self.shapes.setdefault(dims, value)
        for axis, size in enumerate(dims):
            if size.value is None:
                self.axes.setdefault(size, (value, axis))

    def recipe(self, elements: Elements) -> Recipe | None:
        """How to read a vector or a scalar of sizes; None where one of them is nowhere."""
        found = self.recipes.get(elements) or self._recipe(elements)
        if found is not None:
            self.recipes[elements] = found
        return found

    def _recipe(self, elements: Elements) -> Recipe | None:
        wanted: list[Expr | int] = []
        for item in elements.items:
            if isinstance(item, Expr) or (isinstance(item, int) and not isinstance(item, bool)):
                wanted.append(item)
        if len(wanted) < len(elements.items):
            return None
        if not elements.shape:
            found = self._axis(wanted[0])
            parts = None if found is None else (Some(found[0], (found[1],), is_scalar=True),)
        else:
            parts = self._whole(wanted) or self._parts(wanted)
        return None if parts is None else Recipe(parts, elements.dtype)

    def _axis(self, item: Expr | int) -> tuple[SSAValue, int] | None:
        return self.axes.get(item) if isinstance(item, Expr) else None

    def _whole(self, wanted: list[Expr | int]) -> tuple[Part, ...] | None:
        dims = tuple(constant(item) if isinstance(item, int) else item for item in wanted)
        source = self.shapes.get(dims)
        return None if source is None else (Whole(source),)

    def _parts(self, wanted: list[Expr | int]) -> tuple[Part, ...] | None:
        parts: list[Part] = []
        for item in wanted:
            last = parts[-1] if parts else None
            if isinstance(item, int):
                before = last.numbers if isinstance(last, Numbers) else ()
                new: Part = Numbers((*before, item))
                joins = isinstance(last, Numbers)
            else:
                found = self._axis(item)
                if found is None:
                    return None
                source, axis = found
                joins = isinstance(last, Some) and last.source is source
                axes = last.axes if isinstance(last, Some) and joins else ()
                new = Some(source, (*axes, axis))
            parts[-1 if joins else len(parts) :] = [new]
        return tuple(parts)


@dataclass
class Maker:
    """Makes nodes that read sizes, each once: right after the tensors they are read from."""

    rewriter: Rewriter
    made: dict[tuple[object, ...], SSAValue] = field(
        default_factory=dict[tuple[object, ...], SSAValue]
    )

    def make(self, recipe: Recipe, anchor: NodeOp) -> SSAValue:
        """The vector or scalar of a recipe, to be read from `anchor` on."""
        key = (recipe, anchor.parent)
        if (found := self.made.get(key)) is not None:
            return found
        values = [self._part(part, anchor) for part in recipe.parts]
        value = values[0]
        if len(values) > 1:
            value = self._insert(
                Builder.at(anchor).operator(
                    ConcatOp, values, {"axis": 0}, (tensor_type(INT64, (_length(recipe),)),)
                ),
                anchor,
            )
        if recipe.dtype != np.int64:
            row = BY_NUMPY[recipe.dtype]
            dims = () if _is_scalar(recipe) else (_length(recipe),)
            type_ = tensor_type(element_attribute(row), dims)
            value = self._insert(
                Builder.at(anchor).operator(CastOp, [value], {"to": row}, (type_,)), anchor
            )
        self.made[key] = value
        return value

    def _part(self, part: Part, anchor: NodeOp) -> SSAValue:
        match part:
            case Numbers(numbers):
                return self._insert(
                    Builder.at(anchor).constant(np.array(numbers, np.int64)), anchor
                )
            case Whole(source):
                return self._shape(source, None)
            case Some(source, axes, is_scalar):
                if not is_scalar and _is_range(source, axes):
                    return self._shape(source, axes)
                key = (source, axes, is_scalar)
                if key not in self.made:
                    shape = self._shape(source, None)
                    index: Array = np.array(axes[0] if is_scalar else axes, np.int64)
                    place = _after(shape)
                    builder = Builder.at(place)
                    given = self._insert(builder.constant(index), place)
                    type_ = tensor_type(INT64, index.shape)
                    self.made[key] = self._insert(
                        builder.operator(GatherOp, [shape, given], {"axis": 0}, (type_,)), place
                    )
                return self.made[key]

    def _shape(self, source: SSAValue, axes: tuple[int, ...] | None) -> SSAValue:
        key = (source, axes)
        if key not in self.made:
            place = _after(source)
            found = rank(source.type) if axes is None else len(axes)
            given = {} if axes is None else {"start": axes[0], "end": axes[-1] + 1}
            type_ = tensor_type(INT64, (found,))
            self.made[key] = self._insert(
                Builder.at(place).operator(ShapeOp, [source], given, (type_,)), place
            )
        return self.made[key]

    def _insert(self, ops: list[Operation], anchor: Operation) -> SSAValue:
        for op in ops:
            self.rewriter.insert_before(op, anchor)
        return ops[-1].results[0]


def nodes_of(recipe: Recipe, block: Block | None) -> Iterator[tuple[object, ...]]:
    """The nodes that a recipe needs, as keys: equal ones are shared."""
    for part in recipe.parts:
        match part:
            case Whole(source):
                yield source, None
            case Some(source, axes, is_scalar):
                if not is_scalar and _is_range(source, axes):
                    yield source, axes
                else:
                    yield source, None
                    yield source, axes, is_scalar
            case Numbers():
                pass
    if len(recipe.parts) > 1:
        yield recipe.parts, block
    if recipe.dtype != np.int64:
        yield recipe, block


def sources_of(recipe: Recipe) -> Iterator[SSAValue]:
    """The tensors that a recipe reads."""
    for part in recipe.parts:
        if not isinstance(part, Numbers):
            yield part.source


def _is_range(source: SSAValue, axes: tuple[int, ...]) -> bool:
    """Whether one Shape gives these axes."""
    version = Builder.at(_after(source)).opsets.get("", 0)
    return version >= SHAPE_WITH_RANGE and axes == tuple(range(axes[0], axes[-1] + 1))


def _after(value: SSAValue) -> Operation:
    """The operation before which a reader of a value stands first."""
    owner = value.owner
    found = owner.first_op if isinstance(owner, Block) else owner.next_op
    assert found is not None, "a block ends with a return"
    return found


def _is_scalar(recipe: Recipe) -> bool:
    return any(isinstance(part, Some) and part.is_scalar for part in recipe.parts)


def _length(recipe: Recipe) -> int | None:
    total = 0
    for part in recipe.parts:
        match part:
            case Numbers(numbers):
                total += len(numbers)
            case Some(_, axes, _):
                total += len(axes)
            case Whole(source):
                total += rank(source.type) or 0
    return total
