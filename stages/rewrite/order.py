"""Where operations stand: operators by name, and positions that survive changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import FunctionOp, GraphOp

SPACING = 1 << 32
"""Between the numbers of neighbours: so much room is there for what is inserted."""

Key: TypeAlias = "tuple[str, str]"
Place: TypeAlias = tuple[int, ...]


@dataclass
class Order:
    """The order of operations within each block.

    Operations that are put between two others get numbers between theirs; where there is no room
    left, their block is numbered again.
    """

    positions: dict[Operation, int] = field(default_factory=dict[Operation, int])
    renumberings: int = 0
    """How often a block was numbered again."""

    def number(self, block: Block) -> None:
        """Number the operations of a block."""
        for position, op in enumerate(block.ops):
            self.positions[op] = position * SPACING

    def position(self, op: Operation) -> int:
        """The number of an operation: greater than that of each one before it in its block."""
        found = self.positions.get(op)
        return found if found is not None else self._placed(op)

    def forget(self, op: Operation) -> None:
        """An operation goes, or stands somewhere else now."""
        self.positions.pop(op, None)

    def in_order(self, ops: Iterable[Operation]) -> list[Operation]:
        """Operations of one block by their positions."""
        return sorted(ops, key=self.position)

    def _placed(self, op: Operation) -> int:
        """Number an operation, and with it the neighbours that have no number either."""
        run, known = [op], self.positions
        while (before := run[0].prev_op) is not None and before not in known:
            run.insert(0, before)
        while (after := run[-1].next_op) is not None and after not in known:
            run.append(after)
        low = known[before] if before is not None else None
        high = known[after] if after is not None else None
        if low is None:
            low = (high or 0) - SPACING * (len(run) + 1)
        step = SPACING if high is None else (high - low) // (len(run) + 1)
        if step < 1:
            assert op.parent is not None
            self.renumberings += 1
            self.number(op.parent)
        for place, each in enumerate(run, 1) if step else ():
            known[each] = low + place * step
        return known[op]


class Index:
    """The operators of a module by domain and name, in program order.

    It listens to a rewriter, and so holds while the module changes. What fused operators are made
    of is theirs, and not listed.
    """

    def __init__(self, module: ModuleOp):
        self.order = Order()
        self._by_operator: dict[Key, dict[NodeOp, None]] = {}
        self._sorted: dict[frozenset[Key] | None, list[NodeOp]] = {}
        self._roots: dict[Block, int] = {}
        for op in module.body.block.ops:
            if isinstance(op, GraphOp | FunctionOp):
                self._roots[op.regions[0].block] = len(self._roots)
                self._add_block(op.regions[0].block)

    @property
    def every(self) -> list[NodeOp]:
        """All nodes, those of bodies after the node that holds them."""
        return self.candidates(None)

    def count(self, operators: frozenset[Key] | None) -> int:
        """How many operations there are of these operators."""
        keys = self._by_operator if operators is None else operators
        return sum(len(self._by_operator.get(key, ())) for key in keys)

    def candidates(self, operators: frozenset[Key] | None) -> list[NodeOp]:
        """The operations of any of these operators, in program order; None: all."""
        found = self._sorted.get(operators)
        if found is None:
            keys = self._by_operator if operators is None else operators
            ops = (op for key in keys for op in self._by_operator.get(key, ()))
            found = self._sorted[operators] = sorted(ops, key=self.place)
        return found

    def place(self, op: Operation) -> Place:
        """A key that sorts operations in program order, those of bodies after their holder."""
        path: list[int] = []
        here: Operation | None = op
        while here is not None and (block := here.parent) is not None:
            path.append(self.order.position(here))
            root = self._roots.get(block)
            if root is not None:
                path.append(root)
                break
            region, here = block.parent, block.parent_op()
            if here is not None:
                path.append(next(i for i, r in enumerate(here.regions) if r is region))
        return tuple(reversed(path))

    def created(self, op: Operation) -> None:
        """An operation was inserted, or moved."""
        self.order.forget(op)
        if isinstance(op, NodeOp):
            self._add(op)

    def changed(self, op: Operation) -> None:
        """Operands are not looked at here."""

    def retyped(self, value: SSAValue) -> None:
        """Nor are types."""

    def erasing(self, op: Operation) -> None:
        """An operation goes, with all that it holds."""
        for inner in op.walk() if op.regions else (op,):
            self.order.forget(inner)
            if isinstance(inner, NodeOp):
                key = (inner.domain, inner.op_type)
                self._by_operator.get(key, {}).pop(inner, None)
                self._outdated(key)

    def _add(self, op: NodeOp) -> None:
        key = (op.domain, op.op_type)
        self._by_operator.setdefault(key, {})[op] = None
        self._outdated(key)
        for region in op.regions if op.domain != FUSED_DOMAIN else ():
            for block in region.blocks:
                self._add_block(block)

    def _add_block(self, block: Block) -> None:
        self.order.number(block)
        for op in block.ops:
            if isinstance(op, NodeOp):
                self._add(op)

    def _outdated(self, key: Key) -> None:
        for operators in [o for o in self._sorted if o is None or key in o]:
            del self._sorted[operators]
