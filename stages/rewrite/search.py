"""The search: binds a pattern at every place where it fits, and says how far the others got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foldline.dialects.onnx.op import NodeOp
from foldline.stages.rewrite.binding import State, Variant
from foldline.stages.rewrite.match import Lease, Match
from foldline.stages.rewrite.near_miss import Miss, NearMiss
from foldline.stages.rewrite.order import Index
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.slots import PatternNode

AROUND = 512
"""So often a near miss is looked for beside the search itself, variants counted."""


@dataclass
class Found:
    """All matches of a pattern, in a fixed order, and the near misses."""

    matches: list[Match] = field(default_factory=list[Match])
    misses: list[NearMiss] = field(default_factory=list[NearMiss])


class Search:
    """A pattern, ready to be searched for in any number of modules, by many threads at once."""

    def __init__(self, pattern: Pattern):
        """Raises InvalidArgumentError for a pattern that cannot be searched for."""
        pattern.check()
        self.pattern = pattern.snapshot()
        self._required = [node for node in self.pattern.nodes if not node.is_optional]
        self._variants = [Variant(v, self.pattern) for v in self.pattern.variants()]
        self._by_nodes = {frozenset(v.pattern.nodes): v for v in reversed(self._variants)}

    def find(self, index: Index, lease: Lease, *, looks_around: bool = True) -> Found:
        """All matches; they may overlap, and be parts of larger ones with more optional nodes.

        In the order of their first nodes, larger ones first, then of the nodes of the pattern. The
        search begins at the rarest node; with `looks_around`, near misses are looked for from some
        operations that can be other nodes, too.
        """
        anchor = min(self._required, key=lambda node: index.count(node.operators))
        matches: dict[tuple[NodeOp | None, ...], Match] = {}
        misses: list[NearMiss] = []
        if all(index.count(node.operators) for node in self._required):
            for op in index.candidates(anchor.operators):
                for state in self._at(anchor, op, index, misses):
                    nodes = tuple(state.nodes.get(node) for node in self.pattern.nodes)
                    if nodes not in matches:
                        matches[nodes] = self._match(state, index, lease)
        ordered = sorted(matches.values(), key=lambda match: index.place(match.ordered[0]))
        if looks_around:
            self._look_around(anchor, index, ordered, misses)
        return Found(ordered, misses)

    def renewed(self, match: Match, index: Index) -> bool:
        """Whether a match still is one after changes around it; it takes on its values of now."""
        variant = self._by_nodes[frozenset(match.bound)]
        node = next(node for node in variant.pattern.nodes if not node.is_optional)
        op = match.bound[node]
        if node.accepts(op):
            for state in variant.solutions(node, op, index, Miss()):
                if state.nodes == match.bound:
                    match.values = state.values
                    return True
        return False

    def _match(self, state: State, index: Index, lease: Lease) -> Match:
        ordered = tuple(sorted(state.nodes.values(), key=index.place))
        return Match(self.pattern, state.nodes, state.values, lease, ordered)

    def _at(
        self, anchor: PatternNode, op: NodeOp, index: Index, misses: list[NearMiss]
    ) -> list[State]:
        """The ways to bind the anchor to `op`, larger ones first; without any, the miss."""
        if not anchor.accepts(op):
            return []
        miss, found = Miss(), list[State]()
        seen: set[frozenset[NodeOp]] = set()
        for variant in self._variants:
            states = list(variant.solutions(anchor, op, index, miss))
            bound = [frozenset(state.nodes.values()) for state in states]
            found += [state for state, ops in zip(states, bound, strict=True) if ops not in seen]
            seen.update(bound)
        if not found and miss.is_near:
            misses.append(miss.at(op))
        return found

    def _look_around(
        self,
        anchor: PatternNode,
        index: Index,
        matches: Sequence[Match],
        misses: list[NearMiss],
    ) -> None:
        """Add near misses that begin at other nodes than the anchor, with bounded effort."""
        matched = {op for match in matches for op in match.ordered}
        effort = AROUND // len(self._variants)
        others = [node for node in self._required if node is not anchor]
        for node in sorted(others, key=lambda node: index.count(node.operators)):
            effort -= index.count(node.operators)
            if effort < 0:
                return
            for op in index.candidates(node.operators):
                if op not in matched:
                    self._at(node, op, index, misses)
