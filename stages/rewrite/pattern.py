"""Patterns: predicate graphs that a search binds to operations.

    pattern = Pattern()
    conv = pattern.node("Conv")
    relu = pattern.node("Relu")
    pattern.edge(conv, relu)

A node has a predicate, an edge leads from a result to an operand. Operands that no edge leads to
can be captured under a name, or required to be constants. A node of a commutative operator takes
its two operands in either order; other operators only with `input=ANY`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeAlias

from foldline.stages.rewrite.slots import (
    ANY,
    AbsentOperand,
    Accepts,
    Capture,
    ConstantOperand,
    Edge,
    PatternNode,
    Predicate,
    Slot,
)
from foldline.support.errors import InvalidArgumentError

MAX_OPTIONAL_PATTERN_NODES = 8
"""More are refused, as every subset of them is tried."""

Operators: TypeAlias = "str | Sequence[str] | Predicate | None"


@dataclass
class Pattern:
    """A graph of predicates; connected, and without cycles."""

    nodes: list[PatternNode] = field(default_factory=list[PatternNode])
    edges: list[Edge] = field(default_factory=list[Edge])
    captures: list[Capture] = field(default_factory=list[Capture])
    constants: list[ConstantOperand] = field(default_factory=list[ConstantOperand])
    absent: list[AbsentOperand] = field(default_factory=list[AbsentOperand])
    results: list[tuple[PatternNode, int]] | None = None
    """The only values that may be read outside of a match; None: any."""

    def node(
        self,
        operators: Operators = None,
        *,
        where: Predicate | None = None,
        name: str = "",
        optional: bool = False,
    ) -> PatternNode:
        """Add a node.

        `operators`: the name of an operator (`Conv`, `com.microsoft::Gelu`), several, or a
        predicate on the operation; `where`: what must hold besides.
        """
        keys, predicate, label = _understood(operators, where)
        name = name or f"{label.split('::')[-1].lower()}_{len(self.nodes)}"
        made = PatternNode(name, label, predicate, keys, optional)
        self.nodes.append(made)
        return made

    def edge(
        self, producer: PatternNode, consumer: PatternNode, input: int = ANY, output: int = 0
    ) -> None:
        """Let a result of `producer` be an operand of `consumer`."""
        self.edges.append(Edge(producer, consumer, input, output))

    def capture(self, name: str, consumer: PatternNode, input: int) -> None:
        """Give an operand a name; the same name again stands for the same value."""
        self.captures.append(Capture(name, consumer, input))

    def constant(
        self,
        consumer: PatternNode,
        input: int,
        accepts: Accepts | None = None,
        *,
        name: str = "",
        label: str = "a constant",
    ) -> None:
        """Require an operand to be a constant whose array is accepted."""
        self.constants.append(ConstantOperand(consumer, input, accepts, name, label))

    def no_operand(self, consumer: PatternNode, input: int) -> None:
        """Require an operand to be absent."""
        self.absent.append(AbsentOperand(consumer, input))

    def slots(self) -> Iterator[Slot]:
        """What is said of operands, in the order in which it was said."""
        yield from self.edges
        yield from self.captures
        yield from self.constants
        yield from self.absent

    def snapshot(self) -> Pattern:
        """A copy that later changes of this pattern do not reach."""
        return replace(
            self,
            nodes=list(self.nodes),
            edges=list(self.edges),
            captures=list(self.captures),
            constants=list(self.constants),
            absent=list(self.absent),
            results=None if self.results is None else list(self.results),
        )

    def check(self) -> None:
        """Raise InvalidArgumentError for a pattern that cannot be searched for."""
        known = set(self.nodes)
        optional = [node for node in self.nodes if node.is_optional]
        if not self.nodes:
            raise InvalidArgumentError("the pattern has no node")
        names = [node.name for node in self.nodes]
        if len(set(names)) < len(names):
            raise InvalidArgumentError(f"two nodes of the pattern have one name: {sorted(names)}")
        for node in self.nodes:
            if node.predicate is None and node.operators is None:
                raise InvalidArgumentError(f"the node '{node.name}' has an empty predicate")
        for slot in self.slots():
            ends = (slot.producer, slot.consumer) if isinstance(slot, Edge) else (slot.consumer,)
            if not known.issuperset(ends):
                raise InvalidArgumentError("an edge names a node that was never added")
        if len(optional) > MAX_OPTIONAL_PATTERN_NODES:
            raise InvalidArgumentError(
                f"{len(optional)} nodes are optional, more than {MAX_OPTIONAL_PATTERN_NODES}"
            )
        if len(optional) == len(self.nodes):
            raise InvalidArgumentError("every node of the pattern is optional")
        if any(slot.input < ANY for slot in self.slots()):
            raise InvalidArgumentError("a position of an operand is negative")
        if self.results is not None and not known.issuperset(node for node, _ in self.results):
            raise InvalidArgumentError("a result is of a node that was never added")
        if len(_connected(self)) < len(self.nodes):
            raise InvalidArgumentError("the pattern is not connected")
        if _is_cyclic(self):
            raise InvalidArgumentError("the pattern has a cycle")

    def variants(self) -> Iterator[Pattern]:
        """The pattern with each subset of its optional nodes left out, the largest ones first."""
        optional = [node for node in self.nodes if node.is_optional]
        for count in range(len(optional) + 1):
            for left_out in combinations(optional, count):
                variant = self
                for node in left_out:
                    variant = _without(variant, node)
                if len(_connected(variant)) == len(variant.nodes):
                    yield variant


def _understood(
    operators: Operators, where: Predicate | None
) -> tuple[frozenset[tuple[str, str]] | None, Predicate | None, str]:
    if operators is None or callable(operators):
        given = [p for p in (operators, where) if p is not None]
        both = None if not given else given[0] if len(given) == 1 else _both(given[0], given[1])
        return None, both, getattr(operators, "__name__", "node")
    names = [operators] if isinstance(operators, str) else list(operators)
    keys = frozenset(_key(name) for name in names if name)
    return (keys or None), where, "|".join(names)


def _key(name: str) -> tuple[str, str]:
    domain, _, op_type = name.rpartition("::")
    return ("" if domain == "ai.onnx" else domain), op_type


def _both(a: Predicate, b: Predicate) -> Predicate:
    return lambda op: a(op) and b(op)


def _connected(pattern: Pattern) -> set[PatternNode]:
    """The nodes that the first one hangs together with."""
    near: dict[PatternNode, list[PatternNode]] = {}
    for edge in pattern.edges:
        near.setdefault(edge.producer, []).append(edge.consumer)
        near.setdefault(edge.consumer, []).append(edge.producer)
    reached: set[PatternNode] = set()
    waiting = pattern.nodes[:1]
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += near.get(node, [])
    return reached


def _is_cyclic(pattern: Pattern) -> bool:
    """Whether nodes are left when those that read no other one are taken away, again and again."""
    left, edges = set(pattern.nodes), pattern.edges
    while left:
        first = left - {e.consumer for e in edges if e.producer in left and e.consumer in left}
        if not first:
            return True
        left -= first
    return False


def _without(pattern: Pattern, node: PatternNode) -> Pattern:
    """The pattern with edges that bypass one node: what it reads first takes its place."""
    into = next((edge for edge in pattern.edges if edge.consumer is node), None)
    captured = next((c for c in pattern.captures if c.consumer is node), None)
    edges = [e for e in pattern.edges if node not in (e.producer, e.consumer)]
    captures = [c for c in pattern.captures if c.consumer is not node]
    results = pattern.results
    for edge in (e for e in pattern.edges if e.producer is node):
        if into is not None:
            edges.append(Edge(into.producer, edge.consumer, edge.input, into.output))
        elif captured is not None:
            captures.append(Capture(captured.name, edge.consumer, edge.input))
    if results is not None and into is not None:
        bypassed = (into.producer, into.output)
        results = [bypassed if result[0] is node else result for result in results]
    return Pattern(
        [n for n in pattern.nodes if n is not node],
        edges,
        captures,
        [c for c in pattern.constants if c.consumer is not node],
        [a for a in pattern.absent if a.consumer is not node],
        results,
    )
