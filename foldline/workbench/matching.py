"""Which nodes of two modules are the same one.

    computed   all that it hangs on, from the inputs on, is the same
    output     its first output bears the same name, and the operator is the same
    name       name and operator are the same
    structure  operator, attributes and inputs are the same, but for names
    use        operator and attributes are the same, and all that hangs on it
    place      the operator is the same and reads the same first input

Passes keep names, and so names come before structure; other tools rename what they write, or number
it, and where most of what computes the same goes by other names, names come last.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence

from foldline.workbench.nodes import Node

Key = Callable[[int, Node], Hashable]
"""What nodes must agree in; None where it says nothing."""


class Matching:
    """The pairs of two modules."""

    def __init__(self, old: Sequence[Node], new: Sequence[Node], ports: Mapping[str, str]):
        """`ports`: inputs and outputs of the first module, and their names in the second."""
        self.old, self.new = old, new
        self.twin: dict[int, int] = {}
        """Position in `new` of each node of `old` that is in both."""
        self._values = {a: b for a, b in ports.items() if a != b}
        self._graphs: dict[str, str] = {}
        computed = _digests(old, ports), _digests(new, {})
        used = _uses(old, ports), _uses(new, {name: name for name in ports.values()})
        self._pair(_with_output(computed[0]), _with_output(computed[1]))
        if self._names_lie(computed):
            self._pair(_at(computed[0]), _at(computed[1]))
            self._pair_without_names(used)
        for key in (_by_output, _by_name):
            self._pair(key, key)
        self._pair_without_names(used)

    def renamed(self, name: str) -> str:
        """The name in the second module of a value of the first."""
        return self._values.get(name, name)

    def moved(self, graph: str) -> str:
        """The graph in the second module that is `graph` of the first."""
        holder, dot, body = graph.rpartition(".")
        return f"{self._graphs.get(holder, holder)}{dot}{body}"

    def _names_lie(self, computed: tuple[list[int], list[int]]) -> bool:
        """Whether more nodes than not compute the same under another name."""
        old, new = (Counter(digests) for digests in computed)
        return (old & new).total() > 2 * len(self.twin)

    def _pair_without_names(self, used: tuple[list[int], list[int]]) -> None:
        self._pair(self._old_structure, _structure)
        self._pair(_at(used[0]), _at(used[1]))
        self._pair(self._old_place, _place)

    def _pair(self, old_key: Key, new_key: Key) -> None:
        """Pair nodes of equal key, in order, so that producers come before readers."""
        taken = set(self.twin.values())
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for index, node in enumerate(self.new):
            if index not in taken and (found := new_key(index, node)) is not None:
                waiting[found].append(index)
        for index, node in enumerate(self.old):
            if index not in self.twin and (places := waiting.get(old_key(index, node))):
                self._set_twin(index, places.popleft())

    def _set_twin(self, old: int, new: int) -> None:
        self.twin[old] = new
        before, after = self.old[old], self.new[new]
        for mine, other in (
            (before.outputs, after.outputs),
            (before.arguments, after.arguments),
        ):
            pairs = zip(mine, other, strict=False)
            self._values.update(pair for pair in pairs if pair[0] != pair[1])
        if before.holder != after.holder:
            self._graphs[before.holder] = after.holder

    def _old_structure(self, index: int, node: Node) -> Hashable:
        return _structure(index, node, tuple(map(self.renamed, node.inputs)))

    def _old_place(self, index: int, node: Node) -> Hashable:
        return _place(index, node, tuple(map(self.renamed, node.inputs[:1])))


def _digests(nodes: Sequence[Node], ports: Mapping[str, str]) -> list[int]:
    """For each node a number for all that it hangs on; `ports` are taken for others."""
    values: dict[str, int] = {}
    found: list[int] = []
    for node in nodes:
        reads = tuple(values.get(name) or hash(ports.get(name, name)) for name in node.inputs)
        digest = hash((node.op_type, node.meant, node.value, reads, len(node.outputs)))
        found.append(digest)
        for kind, names in enumerate((node.outputs, node.arguments)):
            values.update((name, hash((digest, kind, at))) for at, name in enumerate(names))
    return found


def _uses(nodes: Sequence[Node], ports: Mapping[str, str]) -> list[int]:
    """For each node a number for all that hangs on it, and as what; `ports` go by other names."""
    uses: dict[str, int] = defaultdict(int)
    found: list[int] = []
    for node in reversed(nodes):
        # Sums, since the order of readers says nothing.
        reads = tuple(uses.get(name) or hash(ports.get(name)) for name in node.outputs)
        digest = hash((node.op_type, node.meant, node.value, reads, len(node.inputs)))
        found.append(digest)
        for at, name in enumerate(node.inputs):
            uses[name] += hash((digest, at))
    return found[::-1]


def _at(digests: Sequence[int]) -> Key:
    return lambda index, node: digests[index]


def _with_output(digests: Sequence[int]) -> Key:
    return lambda index, node: (digests[index], node.outputs[:1])


def _by_output(index: int, node: Node) -> Hashable:
    return (node.op_type, node.is_constant, node.outputs[0]) if node.is_named else None


def _by_name(index: int, node: Node) -> Hashable:
    return (node.op_type, node.is_constant, node.name) if node.name else None


def _structure(index: int, node: Node, inputs: tuple[str, ...] | None = None) -> Hashable:
    reads = node.inputs if inputs is None else inputs
    return node.op_type, node.meant, node.value, reads, len(node.outputs)


def _place(index: int, node: Node, inputs: tuple[str, ...] | None = None) -> Hashable:
    reads = node.inputs[:1] if inputs is None else inputs
    return (node.op_type, reads, len(node.outputs)) if reads and reads[0] else None
