"""Patterns written as Python functions, which are run once on stand-ins for values.

    @traced
    def gelu(op, x):
        return op.Mul(x * (op.Erf(x / op.constant(math.sqrt(2), rel=1e-6)) + 1.0), 0.5)

Parameters are values from outside. Numbers are constants of one element. What the function returns
are the only values that may be read outside of a match. Attributes given as keywords have to be
those of the node, with the defaults of its version.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.tensor import Array
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.slots import Accepts, PatternNode, Predicate
from foldline.support.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Traced:
    """A stand-in for a value while a pattern is traced."""

    op: PatternOperators
    name: str = ""
    """Of a value from outside."""
    node: PatternNode | None = None
    """What makes it, if the pattern says so."""
    output: int = 0

    def __add__(self, other: Any) -> Traced:
        return self.op.Add(self, other)

    def __mul__(self, other: Any) -> Traced:
        return self.op.Mul(self, other)

    def __sub__(self, other: Any) -> Traced:
        return self.op.Sub(self, other)

    def __truediv__(self, other: Any) -> Traced:
        return self.op.Div(self, other)

    def __radd__(self, other: Any) -> Traced:
        return self.op.Add(other, self)

    def __rmul__(self, other: Any) -> Traced:
        return self.op.Mul(other, self)

    def __rsub__(self, other: Any) -> Traced:
        return self.op.Sub(other, self)

    def __rtruediv__(self, other: Any) -> Traced:
        return self.op.Div(other, self)

    def __matmul__(self, other: Any) -> Traced:
        return self.op.MatMul(self, other)


@dataclass(frozen=True)
class TracedConstant:
    """A constant operand."""

    accepts: Accepts | None
    name: str
    label: str


class PatternOperators:
    """What a traced function calls: `op.Name(inputs…, attribute=value)`."""

    def __init__(self) -> None:
        self.pattern = Pattern()

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_"):
            raise AttributeError(op_type)
        return self.any_of(op_type)

    def any_of(self, *op_types: str) -> Callable[..., Any]:
        """A node of any of these operators (`Conv`, `com.microsoft::Gelu`)."""
        return lambda *inputs, **given: self._node(op_types, inputs, given)

    def where(self, predicate: Predicate) -> Callable[..., Any]:
        """A node of any operator that the predicate accepts."""
        return lambda *inputs, **given: self._node(predicate, inputs, given)

    def constant(
        self, value: Any = None, *, rel: float = 0.0, name: str = "", where: Accepts | None = None
    ) -> TracedConstant:
        """A constant: of one element near `value` where that is given, accepted by `where`."""
        if value is None:
            return TracedConstant(where, name, "a constant" if where is None else "such a constant")
        near = is_near(value, rel)

        def accepts(array: Array) -> bool:
            return near(array) and (where is None or bool(where(array)))

        return TracedConstant(accepts, name, f"a constant {value:g}")

    def _node(
        self, operators: Sequence[str] | Predicate, inputs: Sequence[Any], given: Mapping[str, Any]
    ) -> Any:
        given = dict(given)
        name, outputs = given.pop("name", ""), given.pop("outputs", 1)
        optional, where = given.pop("optional", False), given.pop("where", None)
        check = _Attributes(given, where) if given else where
        node = self.pattern.node(operators, where=check, name=name, optional=optional)
        for index, value in enumerate(inputs):
            self._operand(node, index, value)
        made = tuple(Traced(self, node=node, output=i) for i in range(outputs))
        return made[0] if outputs == 1 else made

    def _operand(self, node: PatternNode, index: int, value: Any) -> None:
        match value:
            case None:
                self.pattern.no_operand(node, index)
            case Traced() if value.node is not None:
                self.pattern.edge(value.node, node, index, value.output)
            case Traced():
                self.pattern.capture(value.name, node, index)
            case TracedConstant():
                self.pattern.constant(
                    node, index, value.accepts, name=value.name, label=value.label
                )
            case int() | float():
                self._operand(node, index, self.constant(value))
            case _:
                raise InvalidArgumentError(f"{value!r} is no value of a pattern")


def traced(function: Callable[..., Any]) -> Pattern:
    """The pattern that a function of (op, values…) describes.

    Raises InvalidArgumentError where it returns something else than values of nodes.
    """
    op = PatternOperators()
    names = list(inspect.signature(function).parameters)[1:]
    given = function(op, *(Traced(op, name) for name in names))
    values = cast("tuple[Any, ...]", given if isinstance(given, tuple) else (given,))
    results: list[tuple[PatternNode, int]] = []
    for value in values:
        if not isinstance(value, Traced) or value.node is None:
            raise InvalidArgumentError(f"{function.__name__} returns {value!r}, made by no node")
        results.append((value.node, value.output))
    op.pattern.results = results
    op.pattern.check()
    return op.pattern


def is_near(value: float, rel: float = 0.0) -> Accepts:
    """Whether an array has one element, `value` up to a relative error.

    Without one, the value has to be `value` as the array's type has it.
    """

    def accepts(array: Array) -> bool:
        if array.size != 1 or array.dtype.kind in "OSU":
            return False
        found = array.reshape(())
        if rel == 0:
            is_whole = array.dtype.kind in "biu"
            wanted = np.asarray(value, None if is_whole else array.dtype)
            return bool(found == wanted)
        return bool(abs(float(found) - value) <= rel * abs(value))

    return accepts


@dataclass(frozen=True)
class _Attributes:
    """The predicate that a node has these attributes, and that `where` holds."""

    wanted: Mapping[str, Any]
    where: Predicate | None

    def __call__(self, op: NodeOp) -> bool:
        return self.complaint(op) is None and (self.where is None or bool(self.where(op)))

    def complaint(self, op: NodeOp) -> str | None:
        """The attribute that is another one."""
        values = op.attribute_values()
        for name, wanted in self.wanted.items():
            if not _same(values.get(name), wanted):
                return f"{name} is {values.get(name)!r} instead of {wanted!r}"
        return None


def _same(actual: Any, wanted: Any) -> bool:
    return actual == (tuple(cast("list[Any]", wanted)) if isinstance(wanted, list) else wanted)
