"""What is different between two modules, node by node, and what became of those that are gone.

`matching` says which nodes are the same. Names of values, and attributes that say what holds
without them, are no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.structure import interface, main_graph
from foldline.workbench.matching import Matching
from foldline.workbench.nodes import Node, nodes_of

NO_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Changed:
    """A node that is in both, and what of it is different."""

    before: Node
    after: Node
    what: tuple[str, ...]
    """Sentences such as `axis: 1 -> 2`."""


@dataclass(frozen=True)
class Removed:
    """A node that is only in the first, and what became of it."""

    node: Node
    fate: str
    """`folded into 'w'`, `part of foldline.Linear 'y'`, `bypassed: Add 'z' reads 'x'`, `unused`."""


@dataclass
class Difference:
    """All that is different; nodes in the order in which they stand."""

    same: int = 0
    """Nodes without a difference."""
    changed: list[Changed] = field(default_factory=list[Changed])
    removed: list[Removed] = field(default_factory=list[Removed])
    added: list[Node] = field(default_factory=list[Node])
    twins: Mapping[int, int] = field(default_factory=dict[int, int], repr=False)
    """Position in the second of each node of the first that is in both."""

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed or self.added)

    def without_constants(self) -> Difference:
        """The difference of what computes: constants that came, went or changed are left out."""
        return Difference(
            self.same,
            [changed for changed in self.changed if not changed.after.is_constant],
            [removed for removed in self.removed if not removed.node.is_constant],
            [node for node in self.added if not node.is_constant],
        )

    def summary(self) -> str:
        """One line: how many nodes are the same, changed, gone and new."""
        return (
            f"{self.same} the same, {len(self.changed)} changed, "
            f"{len(self.removed)} removed, {len(self.added)} added"
        )

    def lines(self) -> Iterator[str]:
        """The difference as text: `-` is gone, `+` is new, `~` is changed."""
        for removed in self.removed:
            yield f"- {_placed(removed.node)}    [{removed.fate}]"
        for node in self.added:
            yield f"+ {_placed(node)}"
        for changed in self.changed:
            yield f"~ {_placed(changed.after)}    [{'; '.join(changed.what)}]"


def difference(before: ModuleOp, after: ModuleOp, *, inferred: bool = False) -> Difference:
    """Compare two modules, which are only read.

    `inferred`: whether a type that was not known before is a difference too.
    """
    old, new = ([node for _, node in nodes_of(module)] for module in (before, after))
    return node_difference(old, new, inferred=inferred, ports=_renamed(before, after))


def node_difference(
    before: Sequence[Node],
    after: Sequence[Node],
    *,
    inferred: bool = False,
    ports: Mapping[str, str] = NO_NAMES,
) -> Difference:
    """The same of modules of which only the nodes are at hand.

    `ports`: names in the second module of inputs and outputs of the first.
    """
    return _Comparison(Matching(before, after, ports), inferred).result()


def _renamed(before: ModuleOp, after: ModuleOp) -> dict[str, str]:
    """Names in the second module of what goes into the first and comes out of it, by position."""
    old, new = (interface(main_graph(module).body.block) for module in (before, after))
    return {
        mine.name: other.name
        for ours, theirs in ((old.inputs, new.inputs), (old.outputs, new.outputs))
        for mine, other in zip(ours, theirs, strict=False)
    }


class _Comparison:
    def __init__(self, matching: Matching, inferred: bool):
        self.old, self.new, self.twin = matching.old, matching.new, matching.twin
        self.renamed, self._moved = matching.renamed, matching.moved
        self._inferred = inferred
        self.constants = {node.outputs[0]: node for node in self.new if node.is_constant}
        """By name, in the second module."""
        self._old_constants = {n.outputs[0]: n.value for n in self.old if n.is_constant}

    def result(self) -> Difference:
        found = Difference(twins=self.twin)
        fates = _Fates(self)
        for index, node in enumerate(self.old):
            if index not in self.twin:
                found.removed.append(Removed(node, fates.of(index)))
                continue
            after = self.new[self.twin[index]]
            if what := tuple(self._changes(node, after)):
                found.changed.append(Changed(node, after, what))
            else:
                found.same += 1
        twins = set(self.twin.values())
        found.added = [node for index, node in enumerate(self.new) if index not in twins]
        return found

    def _changes(self, before: Node, after: Node) -> Iterator[str]:
        if self._moved(before.graph) != after.graph:
            yield f"moved from {before.graph or 'the main graph'}"
        inputs = self._read_now(before, after)
        if inputs != after.inputs:
            yield from _listed("inputs", inputs, after.inputs)
        old, new = dict(before.attributes), dict(after.attributes)
        for name in sorted({*dict(before.meant), *dict(after.meant)}):
            if old.get(name) != new.get(name):
                yield f"{name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        types = before.types
        if not self._inferred:
            types = tuple(t or new for t, new in zip(types, after.types, strict=False))
        if types != after.types:
            yield from _listed("type", types, after.types)
        if before.value != after.value:
            yield f"value: {before.value} -> {after.value}"

    def _read_now(self, before: Node, after: Node) -> tuple[str, ...]:
        """What a node read, by the names of now; an equal constant in its place is the same."""
        inputs = list(map(self.renamed, before.inputs))
        for index, (old, new) in enumerate(zip(before.inputs, after.inputs, strict=False)):
            constant = self.constants.get(new)
            if constant is not None and self._old_constants.get(old) == constant.value:
                inputs[index] = new
        return tuple(inputs)


class _Fates:
    """What became of nodes that are gone."""

    def __init__(self, comparison: _Comparison):
        self._of = comparison
        self._known: dict[int, str] = {}
        self._readers: dict[str, list[int]] = defaultdict(list)
        for index, node in enumerate(comparison.old):
            for name in dict.fromkeys(node.inputs):
                self._readers[name].append(index)
        old_of = {new: old for old, new in comparison.twin.items()}
        self._makers = {
            name: (node, old_of.get(place, -1))
            for place, node in enumerate(comparison.new)
            for name in node.outputs
        }
        self._folded = {name: node for node in comparison.new for name in node.folded}

    def of(self, index: int) -> str:
        """Readers are asked first, without recursion: chains are long."""
        waiting = [index]
        while waiting:
            here = waiting[-1]
            if here in self._known:
                waiting.pop()
                continue
            unknown = [r for r in self._gone_readers(here) if r not in self._known]
            if unknown and self._own_fate(here) is None:
                waiting += unknown
            else:
                self._known[here] = self._own_fate(here) or self._fate_of_readers(here)
                waiting.pop()
        return self._known[index]

    def _gone_readers(self, index: int) -> list[int]:
        """Those that are gone, and stand behind: bodies may name what they hold themselves."""
        return [
            reader
            for name in self._of.old[index].outputs
            for reader in self._readers.get(name, ())
            if reader not in self._of.twin and reader > index
        ]

    def _own_fate(self, index: int) -> str | None:
        node = self._of.old[index]
        if (constant := self._folded.get(node.label)) is not None:
            return f"folded into '{constant.label}'"
        for name in node.outputs:
            maker, was = self._makers.get(name, (None, -1))
            # What stood behind the node and makes its value now has only taken the name over.
            if maker is not None and was <= index:
                if maker.is_constant:
                    return f"folded into '{name}'"
                return f"part of {maker.op_type} '{maker.label}'"
        return None

    def _fate_of_readers(self, index: int) -> str:
        node = self._of.old[index]
        readers = list(chain.from_iterable(self._readers.get(name, ()) for name in node.outputs))
        fates = dict.fromkeys(self._known[r] for r in readers if r in self._known)
        for fate in fates:
            if fate.startswith(("folded", "part")):
                return fate
        for reader in readers:
            if (twin := self._of.twin.get(reader)) is not None:
                after = self._of.new[twin]
                if (constant := self._constant_now(node, self._of.old[reader], after)) is not None:
                    return f"folded into '{constant.label}'"
                reads = [
                    n
                    for n in after.inputs
                    if self._of.renamed(n) in node.inputs or n in node.inputs
                ]
                tail = f" reads '{reads[0]}'" if reads else ""
                return f"bypassed: {after.op_type} '{after.label}'{tail}"
        return next(iter(fates), "unused")

    def _constant_now(self, node: Node, before: Node, after: Node) -> Node | None:
        """The constant that a reader reads now where it read what `node` made."""
        if len(before.inputs) == len(after.inputs):
            for old, new in zip(before.inputs, after.inputs, strict=True):
                if old in node.outputs:
                    return self._of.constants.get(new)
        return None


def _listed(what: str, before: Sequence[str], after: Sequence[str]) -> Iterable[str]:
    if len(before) != len(after):
        return [f"{what}: {', '.join(before)} -> {', '.join(after)}"]
    pairs = enumerate(zip(before, after, strict=True))
    return [
        f"{what} {index}: {old or 'unknown'} -> {new or 'unknown'}"
        for index, (old, new) in pairs
        if old != new
    ]


def _placed(node: Node) -> str:
    return f"[{node.graph}] {node}" if node.graph else str(node)
