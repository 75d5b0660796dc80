"""The search: binds a pattern at every place where it fits, and says how far the others got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import Commutative

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.rewrite.match import Lease, Match, name_of, readers_of
from foldline.stages.rewrite.order import Index
from foldline.stages.rewrite.pattern import (
    ANY,
    AbsentOperand,
    Capture,
    ConstantOperand,
    Edge,
    Pattern,
    PatternNode,
    Slot,
)


@dataclass(frozen=True)
class NearMiss:
    """The best partial match at one operation."""

    op: NodeOp
    """Where the search began."""
    bound: int
    """Nodes that fitted."""
    wanted: int
    """Nodes that the pattern has."""
    reason: str
    """What the next one was and why it did not fit."""

    @property
    def message(self) -> str:
        """For remarks."""
        return f"{self.bound} of {self.wanted} nodes match; {self.reason}"


@dataclass
class Found:
    """All matches of a pattern, in a fixed order, and the near misses."""

    matches: list[Match]
    misses: list[NearMiss]


def find(pattern: Pattern, index: Index, lease: Lease) -> Found:
    """All matches, those of more optional nodes first at each operation; they may overlap.

    In the order of their first nodes, then of the nodes of the pattern.
    """
    anchor = _anchor(pattern, index)
    variants = [_Variant(variant, index) for variant in pattern.variants()]
    matches: dict[tuple[NodeOp | None, ...], Match] = {}
    misses: list[NearMiss] = []
    for op in index.candidates(anchor.operators):
        miss = _Miss()
        found: list[Match] = []
        for variant in variants:
            for state in variant.solutions(anchor, op, miss):
                if any(set(state.nodes.values()) < set(m.bound.values()) for m in found):
                    continue
                found.append(_match(pattern, state, index, lease))
        for match in found:
            matches.setdefault(tuple(match.bound.get(node) for node in pattern.nodes), match)
        if not found and miss.is_near(len(variants[0].pattern.nodes)):
            misses.append(NearMiss(op, miss.bound, miss.wanted, miss.text()))
    ordered = sorted(matches.values(), key=lambda match: index.place(match.ordered[0]))
    return Found(ordered, misses)


def still_matches(match: Match, index: Index) -> bool:
    """Whether the operations of a match are wired as the pattern wants, after changes around."""
    present = [node for node in match.pattern.nodes if node in match.bound]
    for variant in match.pattern.variants():
        if set(variant.nodes) == set(present):
            search = _Variant(variant, index)
            node = present[0]
            solutions = search.solutions(node, match.bound[node], _Miss())
            return any(state.nodes == match.bound for state in solutions)
    return False


def _anchor(pattern: Pattern, index: Index) -> PatternNode:
    """The node that always is there, of the operators that stand in the module least often."""
    required = [node for node in pattern.nodes if not node.is_optional]
    return min(required, key=lambda node: len(index.candidates(node.operators)))


def _match(pattern: Pattern, state: _State, index: Index, lease: Lease) -> Match:
    ordered = tuple(sorted(state.nodes.values(), key=index.place))
    return Match(pattern, state.nodes, state.values, lease, ordered)


@dataclass(frozen=True)
class _State:
    """What is bound so far."""

    nodes: dict[PatternNode, NodeOp] = field(default_factory=dict[PatternNode, NodeOp])
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])


@dataclass
class _Miss:
    """The furthest that a search got from one operation."""

    bound: int = 0
    wanted: int = 0
    node: str = ""
    problem: str = ""
    found: Operation | None = None

    def note(self, state: _State, wanted: int, label: str, problem: str, op: Operation) -> None:
        """Note why one more node does not fit."""
        if len(state.nodes) > self.bound:
            self.bound, self.wanted = len(state.nodes), wanted
            self.node, self.problem, self.found = label, problem, op

    def is_near(self, nodes: int) -> bool:
        """Whether at least two nodes, and half of all, matched."""
        return self.bound >= 2 and 2 * self.bound >= nodes

    def text(self) -> str:
        """What did not fit."""
        at = "" if self.found is None else f" '{name_of(self.found)}'"
        return f"{self.node}: {self.problem}{at}"


class _Variant:
    """A pattern of which every node has to be there."""

    def __init__(self, pattern: Pattern, index: Index):
        self.pattern = pattern
        self._index = index
        self._slots: dict[PatternNode, list[Slot]] = {node: [] for node in pattern.nodes}
        for slot in pattern.slots():
            self._slots[slot.consumer].append(slot)

    def solutions(self, node: PatternNode, op: NodeOp, miss: _Miss) -> Iterator[_State]:
        """All ways to bind the nodes, `node` to `op`."""
        for state in self._bind([(node, op)], _State(), miss):
            if self._is_closed(state, miss):
                yield state

    def _bind(
        self, goals: Sequence[tuple[PatternNode, NodeOp]], state: _State, miss: _Miss
    ) -> Iterator[_State]:
        if not goals:
            yield from self._forward(state, miss)
            return
        (node, op), rest = goals[0], goals[1:]
        bound = state.nodes.get(node)
        if bound is not None or op in state.nodes.values():
            if bound is op:
                yield from self._bind(rest, state, miss)
            elif bound is not None:
                self._note(miss, state, node, "another operation is in its place", op)
            return
        if not node.accepts(op):
            self._note(miss, state, node, f"{op.op_type} does not fit", op)
            return
        state = replace(state, nodes={**state.nodes, node: op})
        slots = self._slots[node]
        for choice in _choices(slots, op):
            settled = self._settle(slots, choice, op, state, miss)
            if settled is not None:
                yield from self._bind([*settled[0], *rest], settled[1], miss)

    def _settle(
        self,
        slots: Sequence[Slot],
        choice: Sequence[int],
        op: NodeOp,
        state: _State,
        miss: _Miss,
    ) -> tuple[list[tuple[PatternNode, NodeOp]], _State] | None:
        """Goals that the operands of `op` give, each said to be where `choice` has it."""
        goals: list[tuple[PatternNode, NodeOp]] = []
        values = dict(state.values)
        for slot, place in zip(slots, choice, strict=True):
            value = op.operand(place)
            problem = None
            match slot:
                case Edge():
                    problem = _made_by(slot, value, op)
                    if problem is None:
                        assert isinstance(value, OpResult)
                        assert isinstance(value.op, NodeOp)
                        goals.append((slot.producer, value.op))
                        continue
                case Capture():
                    if value is None:
                        problem = f"operand {place} is absent at"
                    elif values.setdefault(slot.name, value) is not value:
                        problem = f"operand {place} is not the value '{slot.name}' at"
                case ConstantOperand():
                    problem = _constant_problem(slot, value, place)
                    if problem is None and slot.name and value is not None:
                        values[slot.name] = value
                case AbsentOperand():
                    problem = None if value is None else f"operand {place} is given at"
            if problem is not None:
                label = slot.producer.label if isinstance(slot, Edge) else slot.consumer.label
                miss.note(state, len(self.pattern.nodes), label, problem, op)
                return None
        return goals, _State(state.nodes, values)

    def _forward(self, state: _State, miss: _Miss) -> Iterator[_State]:
        """Go on to a node that reads what is bound, until all nodes are."""
        if len(state.nodes) == len(self.pattern.nodes):
            yield state
            return
        edge = next(
            e
            for e in self.pattern.edges
            if e.producer in state.nodes and e.consumer not in state.nodes
        )
        producer = state.nodes[edge.producer]
        if edge.output >= len(producer.results):
            return
        result = producer.results[edge.output]
        users = {use.operation for use in result.uses if use.operation.parent is producer.parent}
        candidates = [user for user in users if isinstance(user, NodeOp)]
        if not candidates:
            self._note(miss, state, edge.consumer, "nothing reads what is before it,", producer)
        for user in sorted(candidates, key=self._index.place):
            yield from self._bind([(edge.consumer, user)], state, miss)

    def _is_closed(self, state: _State, miss: _Miss) -> bool:
        """Whether only the results of the pattern are read outside."""
        if self.pattern.results is None:
            return True
        inside = set(state.nodes.values())
        for node, op in state.nodes.items():
            for place, result in enumerate(op.results):
                if (node, place) in self.pattern.results:
                    continue
                for reader in readers_of(result, op.parent):
                    if reader not in inside:
                        problem = f"its result is read outside as well, by {reader.name}"
                        miss.note(state, len(self.pattern.nodes), node.label, problem, reader)
                        return False
        return True

    def _note(
        self, miss: _Miss, state: _State, node: PatternNode, problem: str, op: Operation
    ) -> None:
        miss.note(state, len(self.pattern.nodes), node.label, problem, op)


def _choices(slots: Sequence[Slot], op: NodeOp) -> Iterator[tuple[int, ...]]:
    """Where the operands that the slots speak of may stand."""
    fixed = [slot.input for slot in slots]
    count = len(op.operands)
    ways = [fixed]
    if count == 2 and op.has_trait(Commutative) and any(place in (0, 1) for place in fixed):
        ways.append([1 - place if place in (0, 1) else place for place in fixed])
    for way in ways:
        claimed = {place for place in way if place != ANY}
        free = [place for place in range(count) if place not in claimed]
        options = [free if place == ANY else [place] for place in way]
        for choice in product(*options):
            if len(set(choice)) == len(choice):
                yield choice


def _made_by(edge: Edge, value: SSAValue | None, op: NodeOp) -> str | None:
    """Why a value is not what an edge wants."""
    if value is None:
        return "is absent before"
    if not isinstance(value, OpResult) or not isinstance(value.op, NodeOp):
        return "an input or initializer is in its place before"
    if value.index != edge.output:
        return f"result {value.index} is read instead of {edge.output} by"
    return None if value.op.parent is op.parent else "stands outside of the body of"


def _constant_problem(slot: ConstantOperand, value: SSAValue | None, place: int) -> str | None:
    tensor = None if value is None else constant_tensor(value)
    if tensor is None:
        return f"operand {place} is not {slot.label} at"
    if slot.accepts is not None and not slot.accepts(tensor.array):
        return f"operand {place} is a constant, but not {slot.label} at"
    return None
