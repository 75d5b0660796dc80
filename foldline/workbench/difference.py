"""What is different between two modules, node by node, and what became of those that are gone.

Nodes are the same where an output and the operator are, else where name and operator are, else
where they compute the same of the same: passes and other tools rename what they rebuild.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from xdsl.dialects.builtin import ModuleOp

from foldline.workbench.nodes import Node, nodes_of


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

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed or self.added)

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
    return _Comparison(old, new, inferred).result()


class _Comparison:
    def __init__(self, old: Sequence[Node], new: Sequence[Node], inferred: bool):
        self.old, self.new, self.inferred = old, new, inferred
        self.twin: dict[int, int] = {}
        """Position in `new` of each node of `old` that is in both."""
        self.values: dict[str, str] = {}
        """Values of `old` that go by another name in `new`."""
        self._match()

    def _match(self) -> None:
        for key in (_by_output, _by_name):
            self._pair(key)
        self._pair_by_structure()

    def _pair(self, key: Callable[[Node], Hashable]) -> None:
        """Pair nodes of equal key, in order; keys that are None say nothing."""
        taken = set(self.twin.values())
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for index, node in enumerate(self.new):
            if index not in taken and (found := key(node)) is not None:
                waiting[found].append(index)
        for index, node in enumerate(self.old):
            if index not in self.twin and (places := waiting.get(key(node))):
                self._set_twin(index, places.pop(0))

    def _pair_by_structure(self) -> None:
        """Producers come first, so that what they make is known under its new name."""
        taken = set(self.twin.values())
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for index, node in enumerate(self.new):
            if index not in taken:
                waiting[_structure(node, node.inputs)].append(index)
        for index, node in enumerate(self.old):
            if index not in self.twin:
                inputs = tuple(self.renamed(name) for name in node.inputs)
                if places := waiting.get(_structure(node, inputs)):
                    self._set_twin(index, places.pop(0))

    def _set_twin(self, old: int, new: int) -> None:
        self.twin[old] = new
        pairs = zip(self.old[old].outputs, self.new[new].outputs, strict=False)
        self.values.update(pair for pair in pairs if pair[0] != pair[1])

    def renamed(self, name: str) -> str:
        return self.values.get(name, name)

    def result(self) -> Difference:
        found = Difference()
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
        if before.graph != after.graph:
            yield f"moved from {before.graph or 'the main graph'}"
        inputs = tuple(self.renamed(name) for name in before.inputs)
        if inputs != after.inputs:
            yield from _listed("inputs", inputs, after.inputs)
        old, new = dict(before.attributes), dict(after.attributes)
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                yield f"{name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        types = before.types
        if not self.inferred:
            types = tuple(t or new for t, new in zip(types, after.types, strict=False))
        if types != after.types:
            yield from _listed("type", types, after.types)
        if before.value != after.value:
            yield f"value: {before.value} -> {after.value}"


class _Fates:
    """What became of nodes that are gone."""

    def __init__(self, comparison: _Comparison):
        self._of = comparison
        self._known: dict[int, str] = {}
        self._readers: dict[str, list[int]] = defaultdict(list)
        for index, node in enumerate(comparison.old):
            for name in dict.fromkeys(node.inputs):
                self._readers[name].append(index)
        self._makers = {name: node for node in comparison.new for name in node.outputs}
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
            if (maker := self._makers.get(name)) is not None:
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
                reads = [
                    n
                    for n in after.inputs
                    if self._of.renamed(n) in node.inputs or n in node.inputs
                ]
                tail = f" reads '{reads[0]}'" if reads else ""
                return f"bypassed: {after.op_type} '{after.label}'{tail}"
        return next(iter(fates), "unused")


def _by_output(node: Node) -> Hashable:
    return (node.op_type, node.is_constant, node.outputs[0]) if node.is_named else None


def _by_name(node: Node) -> Hashable:
    return (node.op_type, node.is_constant, node.name) if node.name else None


def _structure(node: Node, inputs: tuple[str, ...]) -> Hashable:
    return node.op_type, node.attributes, node.value, inputs, len(node.outputs)


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
