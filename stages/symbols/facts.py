"""What rules read and give: sizes of a value, elements of a small tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import OnnxOp
from foldline.stages.symbols.expression import Expr, constant

MAX_ITEMS = 1024
"""Tensors of more elements are not followed element by element."""

Dims: TypeAlias = "tuple[Expr, ...] | None"
"""Sizes of the axes; None where the rank is not known."""
Item: TypeAlias = "Expr | int | float | bool | None"
"""An element: a number, an expression that is no number, or None, unknown."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of a tensor of known, small shape."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    items: tuple[Item, ...]
    """In C order."""

    @property
    def is_known(self) -> bool:
        """Whether every element is a number."""
        return not any(item is None or isinstance(item, Expr) for item in self.items)

    def array(self) -> np.ndarray[Any, Any]:
        """The elements in their shape. Raises ValueError unless all are numbers."""
        if not self.is_known:
            raise ValueError("not every element is known")
        return np.array(self.items, self.dtype).reshape(self.shape)

    def objects(self) -> np.ndarray[Any, Any]:
        """The elements in their shape, as objects, for NumPy to move."""
        array = np.empty(len(self.items), np.object_)
        array[:] = self.items
        return array.reshape(self.shape)


class Known(Protocol):
    """What is known of values: the view that rules have."""

    def dims(self, value: SSAValue) -> Dims:
        """The sizes of a value."""
        ...

    def elements(self, value: SSAValue) -> Elements | None:
        """The elements of a value."""
        ...

    def result_shape(self, op: OnnxOp, index: int = 0) -> tuple[int, ...] | None:
        """The shape that the rule of `op` found for a result, if it is all numbers."""
        ...

    def fresh(self, op: OnnxOp, index: int, axis: int) -> Expr:
        """The symbol of an axis of a result about which nothing is known."""
        ...

    def is_nonneg(self, expr: Expr) -> bool:
        """Whether an expression is certain not to be negative in a run that succeeds."""
        ...


ShapeRule: TypeAlias = Callable[[OnnxOp, Known], Sequence[Dims]]
"""The sizes of the results; fewer than there are results: nothing is known of the rest."""
ValueRule: TypeAlias = Callable[[OnnxOp, Known], Sequence[Elements | None]]
"""The elements of the results, likewise."""


def item_of(number: Expr | int) -> Expr | int:
    """A number as an element: expressions that are numbers are written as such."""
    if isinstance(number, Expr):
        value = number.value
        return number if value is None else value
    return number


def elements_of_array(array: np.ndarray[Any, Any]) -> Elements:
    """The elements of an array of numbers or truth values."""
    return Elements(array.dtype, array.shape, tuple(array.reshape(-1).tolist()))


def as_expr(item: Item) -> Expr | None:
    """An integer element as an expression."""
    if isinstance(item, Expr):
        return item
    return constant(int(item)) if isinstance(item, int) else None


def static_dims(dims: Dims) -> tuple[int, ...] | None:
    """The sizes as numbers, if all are."""
    if dims is None:
        return None
    numbers = [dim.value for dim in dims]
    return None if None in numbers else tuple(n for n in numbers if n is not None)
