"""Where operations stand: operators by name, and positions that survive insertions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import FunctionOp, GraphOp


@dataclass
class Order:
    """The order of operations within each block.

    An operation that is put between two others gets the number between theirs; where there is none
    left, its block is numbered again.
    """

    positions: dict[Operation, float] = field(default_factory=dict[Operation, float])

    def number(self, block: Block) -> None:
        """Number the operations of a block."""
        for position, op in enumerate(block.ops):
            self.positions[op] = float(position)

    def position(self, op: Operation) -> float:
        """The number of an operation: greater than that of each one before it in its block."""
        found = self.positions.get(op)
        return found if found is not None else self._placed(op)

    def moved(self, op: Operation) -> None:
        """An operation stands somewhere else now."""
        self.positions.pop(op, None)

    def between(self, first: Operation, last: Operation) -> Iterator[Operation]:
        """The operations from `first` to `last`, both included."""
        here: Operation | None = first
        while here is not None:
            following = here.next_op
            yield here
            here = None if here is last else following

    def in_order(self, ops: Iterable[Operation]) -> list[Operation]:
        """Operations of one block by their positions."""
        return sorted(ops, key=self.position)

    def _placed(self, op: Operation) -> float:
        block = op.parent
        assert block is not None
        before = None if op.prev_op is None else self.positions.get(op.prev_op)
        after = None if op.next_op is None else self.positions.get(op.next_op)
        if before is None or after is None or not before < (before + after) / 2 < after:
            self.number(block)
        else:
            self.positions[op] = (before + after) / 2
        return self.positions[op]


@dataclass
class Index:
    """The operators of a module by domain and name, in program order."""

    by_operator: dict[tuple[str, str], list[NodeOp]]
    every: list[NodeOp]
    order: Order

    @classmethod
    def of(cls, module: ModuleOp) -> Index:
        """The index of a module as it stands, bodies and functions included."""
        index = cls({}, [], Order())
        for op in module.body.block.ops:
            if isinstance(op, GraphOp | FunctionOp):
                index._add(op.regions[0].block)
        return index

    def candidates(self, operators: frozenset[tuple[str, str]] | None) -> list[NodeOp]:
        """The operations of any of these operators, in program order."""
        if operators is None:
            return self.every
        found = [self.by_operator[key] for key in sorted(operators) if key in self.by_operator]
        if len(found) == 1:
            return found[0]
        return sorted((op for ops in found for op in ops), key=self.place)

    def place(self, op: NodeOp) -> int:
        """The number of an operation in program order, the graph's bodies included."""
        return self._places.get(op, len(self.every))

    def __post_init__(self) -> None:
        self._places: dict[Operation, int] = {}

    def _add(self, block: Block) -> None:
        self.order.number(block)
        for op in block.ops:
            if isinstance(op, NodeOp):
                self._places[op] = len(self.every)
                self.every.append(op)
                self.by_operator.setdefault((op.domain, op.op_type), []).append(op)
                for region in op.regions:
                    self._add(region.block)
