"""Near misses: how far the best partial match got, and what stopped it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation

from foldline.dialects.onnx.op import NodeOp
from foldline.stages.rewrite.match import name_of
from foldline.stages.rewrite.slots import PatternNode


@dataclass(frozen=True)
class NearMiss:
    """The best partial match at one operation."""

    op: NodeOp
    """Where the search began."""
    ops: frozenset[NodeOp]
    """What fitted."""
    bound: int
    """How many nodes that are."""
    wanted: int
    """Nodes that the pattern has, without the optional ones that were left out."""
    message: str
    """For remarks: what fitted, and what did not."""

    @property
    def distance(self) -> tuple[int, int]:
        """Sorts the nearest first: those that miss the fewest nodes, then the larger ones."""
        return self.wanted - self.bound, -self.bound


def nearest(misses: Iterable[NearMiss], matched: Collection[Operation]) -> list[NearMiss]:
    """The nearest misses of which none has an operation in common with another, or with a match."""
    kept: list[NearMiss] = []
    taken = set(matched)
    for miss in sorted(misses, key=lambda miss: miss.distance):
        if taken.isdisjoint(miss.ops):
            kept.append(miss)
            taken |= miss.ops
    return kept


@dataclass
class Miss:
    """The furthest that a search got from one operation."""

    bound: Mapping[PatternNode, NodeOp] = field(default_factory=dict[PatternNode, NodeOp])
    wanted: int = 0
    left_out: tuple[str, ...] = ()
    problem: str = ""
    stopped_at: Operation | None = None
    rank: tuple[int, bool, int] = (0, False, 0)
    """Lower is nearer."""

    def note(
        self,
        bound: Mapping[PatternNode, NodeOp],
        wanted: int,
        left_out: tuple[str, ...],
        problem: str,
        op: Operation,
        *,
        is_wired: bool = False,
    ) -> None:
        """Note why one more node does not fit, if so few were not missing before.

        `is_wired`: all nodes fit, with their operands; the problem is what is around them.
        """
        rank = (wanted - len(bound), not is_wired, -len(bound))
        if not self.bound or rank < self.rank:
            self.bound, self.wanted, self.left_out = bound, wanted, left_out
            self.problem, self.stopped_at, self.rank = problem, op, rank

    @property
    def is_near(self) -> bool:
        """Whether at least two nodes, and half of all, matched."""
        return len(self.bound) >= 2 and 2 * len(self.bound) >= self.wanted

    def at(self, op: NodeOp) -> NearMiss:
        """The miss of a search that began at `op`."""
        fitted = _listed([node.label for node in self.bound])
        without = f" without {_listed(self.left_out)}" if self.left_out else ""
        where = "" if self.stopped_at is None else f" {_spelled(self.stopped_at)}"
        text = (
            f"{len(self.bound)} of {self.wanted} nodes match{without} ({fitted}); "
            f"{self.problem}{where}"
        )
        return NearMiss(op, frozenset(self.bound.values()), len(self.bound), self.wanted, text)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(labels)


def _spelled(op: Operation) -> str:
    kind = op.op_type if isinstance(op, NodeOp) else op.name
    return f"{kind} '{name_of(op)}'"
