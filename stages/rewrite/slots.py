"""What a pattern says of operations and their operands: its nodes, edges and captures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from foldline.dialects.onnx.op import NodeOp

ANY = -1
"""An operand of an edge: whichever position fits."""

Predicate: TypeAlias = Callable[[NodeOp], bool]
Accepts: TypeAlias = Callable[[Any], bool]


@dataclass(frozen=True, eq=False)
class PatternNode:
    """A node of a pattern, bound to one operation by a match."""

    name: str
    """What a match calls it; unique in its pattern."""
    label: str
    """What it stands for, in messages."""
    predicate: Predicate | None
    operators: frozenset[tuple[str, str]] | None
    """Domains and names of the only operators that can match; None: any."""
    is_optional: bool = False

    def accepts(self, op: NodeOp) -> bool:
        """Whether an operation can be this node, its operands apart."""
        if self.operators is not None and (op.domain, op.op_type) not in self.operators:
            return False
        return self.predicate is None or bool(self.predicate(op))

    def complaint(self, op: NodeOp) -> str:
        """Why an operation cannot be this node; the message goes on with the operation."""
        if self.operators is not None and (op.domain, op.op_type) not in self.operators:
            return f"{self.label} is wanted where there is"
        why = self.predicate.complaint(op) if isinstance(self.predicate, Complaining) else None
        return f"{why} at" if why else f"the condition of {self.label} does not hold at"


@runtime_checkable
class Complaining(Protocol):
    """A predicate that can say why it does not hold."""

    def complaint(self, op: NodeOp) -> str | None:
        """Why it does not hold, or None."""
        ...


@dataclass(frozen=True, eq=False)
class Edge:
    """A result of one node that is an operand of another."""

    producer: PatternNode
    consumer: PatternNode
    input: int = ANY
    output: int = 0


@dataclass(frozen=True, eq=False)
class Capture:
    """An operand that has a name: a value from outside, the same one wherever the name stands."""

    name: str
    consumer: PatternNode
    input: int


@dataclass(frozen=True, eq=False)
class ConstantOperand:
    """An operand that has to be a constant."""

    consumer: PatternNode
    input: int
    accepts: Accepts | None
    """Asked of the array; None accepts every constant."""
    name: str
    """What a match calls it, or ''."""
    label: str


@dataclass(frozen=True, eq=False)
class AbsentOperand:
    """An operand that has to be left out."""

    consumer: PatternNode
    input: int


Slot: TypeAlias = Edge | Capture | ConstantOperand | AbsentOperand
"""What a pattern says of one operand."""
