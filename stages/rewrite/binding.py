"""Binding: all ways to fit a pattern, of which every node has to be there, from one operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import TypeAlias

from xdsl.ir import OpResult, SSAValue
from xdsl.traits import Commutative

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.rewrite.match import readers_of
from foldline.stages.rewrite.near_miss import Miss
from foldline.stages.rewrite.order import Index
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.slots import (
    ANY,
    AbsentOperand,
    Capture,
    ConstantOperand,
    Edge,
    PatternNode,
    Slot,
)

Goals: TypeAlias = "tuple[tuple[PatternNode, NodeOp], ...]"
"""Nodes that have to be bound next, and to what."""


@dataclass(frozen=True)
class State:
    """What is bound so far."""

    nodes: dict[PatternNode, NodeOp] = field(default_factory=dict[PatternNode, NodeOp])
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])


class Variant:
    """A pattern of which every node has to be there: some of the optional ones are left out."""

    def __init__(self, pattern: Pattern, whole: Pattern):
        self.pattern = pattern
        self.count = len(pattern.nodes)
        kept = set(pattern.nodes)
        self.left_out = tuple(node.label for node in whole.nodes if node not in kept)
        self._results = None if pattern.results is None else frozenset(pattern.results)
        slots: dict[PatternNode, list[Slot]] = {node: [] for node in pattern.nodes}
        for slot in pattern.slots():
            slots[slot.consumer].append(slot)
        self._slots = {node: tuple(given) for node, given in slots.items()}

    def solutions(self, node: PatternNode, op: NodeOp, index: Index, miss: Miss) -> Iterator[State]:
        """All ways to bind the nodes, `node` to `op`, which it accepts."""
        attempt = _Attempt(self, index, miss)
        for state in attempt.expand(node, op, (), State()):
            if self._results is None or self._is_closed(state, self._results, miss):
                yield state

    def slots(self, node: PatternNode) -> tuple[Slot, ...]:
        """What is said of the operands of a node."""
        return self._slots[node]

    def _is_closed(
        self, state: State, results: frozenset[tuple[PatternNode, int]], miss: Miss
    ) -> bool:
        """Whether only the results of the pattern are read outside."""
        inside = set(state.nodes.values())
        for node, op in state.nodes.items():
            for place, result in enumerate(op.results):
                if (node, place) in results:
                    continue
                for reader in readers_of(result, op.parent):
                    if reader not in inside:
                        why = f"the result of {node.label} is read outside as well, by"
                        miss.note(
                            state.nodes, self.count, self.left_out, why, reader, is_wired=True
                        )
                        return False
        return True


@dataclass(frozen=True)
class _Attempt:
    """One search for one variant, from one operation."""

    variant: Variant
    index: Index
    miss: Miss

    def expand(self, node: PatternNode, op: NodeOp, goals: Goals, state: State) -> Iterator[State]:
        """Bind a node to an operation that it accepts, then all that hangs on it."""
        slots = self.variant.slots(node)
        bound = State({**state.nodes, node: op}, state.values)
        for choice in _choices(slots, op):
            settled = self._settle(slots, choice, op, bound)
            if settled is not None:
                yield from self._reach((*settled[0], *goals), settled[1])

    def _reach(self, goals: Goals, state: State) -> Iterator[State]:
        if not goals:
            yield from self._forward(state)
            return
        (node, op), rest = goals[0], goals[1:]
        bound = state.nodes.get(node)
        if bound is op:
            yield from self._reach(rest, state)
        elif bound is not None:
            self._note(state, f"{node.label} would have to be two operations, the other is", op)
        elif op in state.nodes.values():
            self._note(state, f"{node.label} would be the same operation as another node,", op)
        elif not node.accepts(op):
            self._note(state, node.complaint(op), op)
        else:
            yield from self.expand(node, op, rest, state)

    def _forward(self, state: State) -> Iterator[State]:
        """Go on to a node that reads what is bound, until all nodes are."""
        if len(state.nodes) == self.variant.count:
            yield state
            return
        edge = next(
            e
            for e in self.variant.pattern.edges
            if e.producer in state.nodes and e.consumer not in state.nodes
        )
        producer = state.nodes[edge.producer]
        if edge.output >= len(producer.results):
            self._note(state, f"{edge.consumer.label} wants result {edge.output} of", producer)
            return
        uses = producer.results[edge.output].uses
        found = {op for use in uses if isinstance(op := use.operation, NodeOp)}
        users = [op for op in found if op.parent is producer.parent]
        if not users:
            self._note(state, f"{edge.consumer.label} is wanted, but nothing reads", producer)
        for user in sorted(users, key=self.index.order.position):
            yield from self._reach(((edge.consumer, user),), state)

    def _settle(
        self, slots: Sequence[Slot], choice: Sequence[int], op: NodeOp, state: State
    ) -> tuple[Goals, State] | None:
        """Goals that the operands of `op` give, each said to be where `choice` has it."""
        goals: list[tuple[PatternNode, NodeOp]] = []
        values = dict(state.values) if len(slots) > 0 else state.values
        for slot, place in zip(slots, choice, strict=True):
            value = op.operand(place)
            if isinstance(slot, Edge):
                problem = _edge_problem(slot, value, op)
                if problem is None:
                    assert isinstance(value, OpResult)
                    assert isinstance(value.op, NodeOp)
                    goals.append((slot.producer, value.op))
            else:
                problem = _value_problem(slot, value, place, values)
            if problem is not None:
                self._note(state, problem, op)
                return None
        return tuple(goals), State(state.nodes, values)

    def _note(self, state: State, problem: str, op: NodeOp) -> None:
        self.miss.note(state.nodes, self.variant.count, self.variant.left_out, problem, op)


def _choices(slots: Sequence[Slot], op: NodeOp) -> Iterable[tuple[int, ...]]:
    """Where the operands that the slots speak of may stand."""
    fixed = tuple(slot.input for slot in slots)
    count = len(op.operands)
    swaps = count == 2 and _is_commutative(type(op))
    return _ways(fixed, count, swaps)


@cache
def _ways(fixed: tuple[int, ...], count: int, swaps: bool) -> tuple[tuple[int, ...], ...]:
    ways = [fixed]
    if swaps and any(place in (0, 1) for place in fixed):
        ways.append(tuple(1 - place if place in (0, 1) else place for place in fixed))
    found: dict[tuple[int, ...], None] = {}
    for way in ways:
        claimed = {place for place in way if place != ANY}
        free = [place for place in range(count) if place not in claimed]
        options = [free if place == ANY else [place] for place in way]
        found.update((choice, None) for choice in product(*options) if _is_distinct(choice))
    return tuple(found)


def _is_distinct(choice: tuple[int, ...]) -> bool:
    return len(set(choice)) == len(choice)


@cache
def _is_commutative(cls: type[NodeOp]) -> bool:
    return cls.has_trait(Commutative)


def _edge_problem(edge: Edge, value: SSAValue | None, op: NodeOp) -> str | None:
    """Why a value is not what an edge wants."""
    wanted = edge.producer.label
    if value is None:
        return f"{wanted} is wanted where an operand is left out, at"
    if not isinstance(value, OpResult) or not isinstance(value.op, NodeOp):
        return f"{wanted} is wanted where an input or initializer is read by"
    if value.index != edge.output:
        return f"result {edge.output} of {wanted} is wanted, result {value.index} is read by"
    return None if value.op.parent is op.parent else f"{wanted} stands outside of the body of"


def _value_problem(
    slot: Capture | ConstantOperand | AbsentOperand,
    value: SSAValue | None,
    place: int,
    values: dict[str, SSAValue],
) -> str | None:
    """Why an operand is not what is said of it; a name it is given is noted in `values`."""
    match slot:
        case Capture():
            if value is None:
                return f"operand {place} ('{slot.name}') is left out at"
            same = values.setdefault(slot.name, value) is value
            return None if same else f"operand {place} is not the value '{slot.name}' at"
        case ConstantOperand():
            tensor = None if value is None else constant_tensor(value)
            if value is None or tensor is None:
                return f"operand {place} is not {slot.label} at"
            if slot.accepts is not None and not slot.accepts(tensor.array):
                return f"operand {place} is a constant, but not {slot.label} at"
            if slot.name:
                values[slot.name] = value
            return None
        case AbsentOperand():
            return None if value is None else f"operand {place} is given at"
