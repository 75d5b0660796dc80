"""Which symbol stands for the size of an axis.

    x : tensor<N x 4 x S> of a graph      N, S          the symbols of its names
    y : tensor<? x 4>                     d0            one of its own

An unknown axis of a value has one symbol for life. A named axis of a graph input has the symbol of
its name, shared by the axes of the same input. Equal names on different inputs are not trusted, as
real models declare sizes equal that are not, unless the user says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import Block, BlockArgument, SSAValue

from foldline.dialects.onnx.structure import GraphOp, interface
from foldline.dialects.onnx.types import dims_of
from foldline.stages.symbols.expression import Expr, symbol


class AxisSymbols:
    """The symbols of the axes of one module's values."""

    def __init__(self, trust_names: bool = False):
        self._trust_names = trust_names
        self._of_axes: dict[tuple[SSAValue, int], Expr] = {}
        self._named: dict[tuple[SSAValue | None, str], Expr] = {}
        self._names: dict[Expr, str] = {}
        self._taken: set[str] = set()

    def copied(self, values: Mapping[SSAValue, SSAValue]) -> AxisSymbols:
        """The same of a clone, whose values `values` gives for those of the original."""
        copy = AxisSymbols(self._trust_names)
        copy._of_axes = {(values[v], a): s for (v, a), s in self._of_axes.items() if v in values}
        copy._named = {
            (None if v is None else values[v], name): expr
            for (v, name), expr in self._named.items()
            if v is None or v in values
        }
        copy._names = dict(self._names)
        copy._taken = set(self._taken)
        return copy

    def of(self, value: SSAValue, axis: int) -> Expr:
        """The symbol of an axis, for life."""
        found = self._of_axes.get((value, axis))
        if found is None:
            found = self._of_axes[value, axis] = self._new(f"d{len(self._of_axes)}", value)
        return found

    def of_input(self, value: SSAValue) -> dict[int, Expr]:
        """The symbols of the named axes of a graph input; of other values none."""
        block = value.owner
        if not isinstance(block, Block) or not isinstance(block.parent_op(), GraphOp):
            return {}
        found: dict[int, Expr] = {}
        for axis, dim in enumerate(dims_of(value.type) or ()):
            if isinstance(dim, str) and dim.isidentifier():
                key = (None if self._trust_names else value, dim)
                made = self._named.get(key)
                if made is None:
                    made = self._named[key] = self._new(dim, value)
                    self._names[made] = dim
                found[axis] = made
        return found

    def name_of(self, expr: Expr) -> str | None:
        """The name that the model gives a size: that of an axis of a graph input."""
        return self._names.get(expr)

    def _new(self, name: str, value: SSAValue) -> Expr:
        """A symbol of a name that is not taken."""
        candidates = _spellings(name, value)
        free = next(text for text in candidates if text not in self._taken)
        self._taken.add(free)
        return symbol(free)


def _spellings(name: str, value: SSAValue) -> Iterator[str]:
    """`N`, `N@mask`, `N@mask@2`, …"""
    yield name
    block = value.owner
    if isinstance(value, BlockArgument) and isinstance(block, Block):
        inputs = [info for info in interface(block).inputs if not info.is_constant]
        if value.index < len(inputs):
            name = f"{name}@{inputs[value.index].name}"
            yield name
    number = 2
    while True:
        yield f"{name}@{number}"
        number += 1
