"""A match: what each node of a pattern is bound to, and what lies at its border."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.tensor import Array
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.slots import PatternNode
from foldline.stages.symbols.knowledge import Knowledge
from foldline.support.errors import RewriteError


@dataclass
class Lease:
    """How long matches hold: until the graph they were found in changes without them."""

    is_over: bool = False
    knowledge: Knowledge = field(default_factory=Knowledge)
    """What is known of the graph meanwhile."""

    @cached_property
    def trusting(self) -> Knowledge:
        """What would be known if equal names of sizes meant equal sizes."""
        return Knowledge(trust_names=True)


@dataclass(eq=False)
class Match:
    """One occurrence of a pattern.

    `match["name"]` is the operation that a node is bound to, None for an optional one that is
    absent. A match may not be used once its run is over.
    """

    pattern: Pattern
    bound: Mapping[PatternNode, NodeOp]
    values: Mapping[str, SSAValue]
    """Captured values and named constants by name."""
    lease: Lease
    ordered: tuple[NodeOp, ...]
    """The operations in program order."""
    reason: str = field(default="", init=False)
    """Why the condition refused it, if it did."""
    left: list[str] = field(default_factory=list[str], init=False)
    """What stays although the match is replaced, and why."""
    notes: dict[str, Any] = field(default_factory=dict[str, Any], init=False)
    """What the condition found out and the replacement needs."""

    def __getitem__(self, node: str | PatternNode) -> NodeOp | None:
        self._check()
        found = node if isinstance(node, PatternNode) else self._named(node)
        return self.bound.get(found)

    def op(self, node: str | PatternNode) -> NodeOp:
        """The operation that a node is bound to; raises RewriteError for one that is absent."""
        found = self[node]
        if found is None:
            raise RewriteError(f"the optional node '{node}' is absent")
        return found

    def value(self, name: str) -> SSAValue:
        """A captured value. Raises RewriteError for a name that is not in the pattern."""
        self._check()
        if name not in self.values:
            raise RewriteError(f"'{name}' is not captured; captured are {sorted(self.values)}")
        return self.values[name]

    def constant(self, name: str) -> Array | None:
        """The array of a captured value, or None if that is no constant."""
        tensor = constant_tensor(self.value(name))
        return None if tensor is None else tensor.array

    @property
    def knowledge(self) -> Knowledge:
        """What is known of sizes and of elements of small tensors, symbols included."""
        self._check()
        return self.lease.knowledge

    @property
    def nodes(self) -> tuple[NodeOp, ...]:
        """The operations in program order."""
        self._check()
        return self.ordered

    @property
    def inputs(self) -> list[SSAValue]:
        """Distinct values from outside that are read, ordered by first use."""
        inside = set(self.nodes)
        read = (value for op in self.nodes for value in reads_of(op))
        return [value for value in dict.fromkeys(read) if not _is_made_by(value, inside)]

    @property
    def outputs(self) -> list[SSAValue]:
        """Values made inside and read outside, in the order of their nodes."""
        inside = set(self.nodes)
        return [
            result
            for op in self.nodes
            for result in op.results
            if any(reader not in inside for reader in readers_of(result, op.parent))
        ]

    def refuse(self, reason: str) -> bool:
        """Give the reason why a condition refuses this match; False, to be returned."""
        self.reason = reason
        return False

    def leave(self, reason: str) -> None:
        """Say what stays, though it might have been replaced with the rest, and why."""
        self.left.append(reason)

    def describe(self) -> str:
        """The first matched operation, for messages."""
        return name_of(self.ordered[0])

    def _named(self, name: str) -> PatternNode:
        for node in self.pattern.nodes:
            if node.name == name:
                return node
        known = ", ".join(node.name for node in self.pattern.nodes)
        raise RewriteError(f"the pattern has no node '{name}'; it has {known}")

    def _check(self) -> None:
        if self.lease.is_over:
            raise RewriteError("this match is of a run that is over; search again")


def name_of(op: Operation) -> str:
    """The name of a node, else of its first result, else its operator."""
    return node_name(op) or next((name for name in result_names(op) if name), op.name)


def reads_of(op: Operation) -> Iterable[SSAValue]:
    """What an operation reads, its bodies included."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            yield from (v for v in inner.operands if not _is_within(v, op))


def readers_of(value: SSAValue, block: Block | None) -> Iterator[Operation]:
    """The operations of a block that read a value, themselves or in a body, once a use."""
    return (holder_in(use.operation, block) for use in value.uses)


def holder_in(op: Operation, block: Block | None) -> Operation:
    """The operation of `block` that is `op` or holds it."""
    here: Operation | None = op
    while here is not None and here.parent is not block:
        here = here.parent_op()
    return op if here is None else here


def _is_made_by(value: SSAValue, ops: set[NodeOp]) -> bool:
    return value.owner in ops


def _is_within(value: SSAValue, op: Operation) -> bool:
    here: Operation | None = (
        value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    )
    while here is not None:
        if here is op:
            return True
        here = here.parent_op()
    return False
