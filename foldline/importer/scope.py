"""Names in force while a graph is imported: what a node may read and what it may not redefine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import GraphProto, NodeProto
from xdsl.ir import Block, SSAValue

from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.structure import CallOp
from foldline.support.errors import InvalidModel


class Scope:
    """The values of one graph by name, inside the scope of the graph around it.

    A body may not define a name that it could read from outside. Names that the graph around
    defines later, or gives to the body's own node, are out of its sight and no conflict: merged
    decoders call the result of an If like the results of its branches.
    """

    def __init__(self, where: str, names: set[str], outer: Scope | None = None):
        "".join(names)  # fails for what is no text, as `utf8` counts on
        self.where = where
        self.outer = outer
        self.values: dict[str, SSAValue] = {}
        while outer is not None:
            if shadowed := names & outer.values.keys():
                raise InvalidModel(
                    f"{where}: '{min(shadowed)}' is already defined in {outer.where}; a body "
                    "must not define a name of the graph around it: rename it in the body"
                )
            outer = outer.outer

    def define(self, name: str, value: SSAValue, by: str) -> None:
        """Bind a name; `by` says what defines it. Raises InvalidModel if the graph has it."""
        if name in self.values:
            before = _definer(self.values[name])
            raise InvalidModel(
                f"{self.where}: '{name}' is defined twice, by {before} and by {by}: rename one"
            )
        self.values[name] = value

    def find(self, name: str) -> SSAValue | None:
        """The value of a name here or in a graph around, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.values.get(name)
            if found is not None:
                return found
            scope = scope.outer
        return None

    def visible_names(self) -> set[str]:
        """Every name bound here or in a graph around."""
        names: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            names.update(scope.values)
            scope = scope.outer
        return names


def defined_names(graph: GraphProto) -> set[str]:
    """Every name that a graph defines itself: inputs, initializers, node outputs."""
    names = {info.name for info in graph.input}
    names.update(tensor.name for tensor in graph.initializer)
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        names.update(node.output)
    names.discard("")
    return names


def sorted_nodes(nodes: Sequence[NodeProto], defined: set[str], where: str) -> list[NodeProto]:
    """The nodes in a stable topological order: a node moves only as far back as it must.

    `defined` are names that need no node. Reads of bodies count. Raises InvalidModel naming a
    cycle, or a name that nothing defines.
    """
    nodes = list(nodes)  # each look at a repeated field may make objects, and ids, of its own
    producer = {name: node for node in nodes for name in node.output if name}
    keys = {id(node): index for index, node in enumerate(nodes)}
    done: set[int] = set()
    ordered: list[NodeProto] = []
    for root in nodes:
        if keys[id(root)] in done:
            continue
        path: list[tuple[NodeProto, Iterator[str]]] = [(root, iter(reads_of(root)))]
        active = {keys[id(root)]}
        while path:
            node, reads = path[-1]
            needed = _next_needed(reads, producer, defined, keys, done)
            if needed is None:
                path.pop()
                active.discard(keys[id(node)])
                done.add(keys[id(node)])
                ordered.append(node)
            elif keys[id(needed)] in active:
                names = [_label(n) for n, _ in path]
                cycle = [*names[names.index(_label(needed)) :], _label(needed)]
                raise InvalidModel(
                    f"{where}: nodes form a cycle: {' -> '.join(cycle)}; each reads what the next "
                    "one gives"
                )
            else:
                active.add(keys[id(needed)])
                path.append((needed, iter(reads_of(needed))))
    return ordered


def _next_needed(
    reads: Iterator[str],
    producer: dict[str, NodeProto],
    defined: set[str],
    keys: dict[int, int],
    done: set[int],
) -> NodeProto | None:
    for name in reads:
        needed = producer.get(name)
        if needed is not None and name not in defined and keys[id(needed)] not in done:
            return needed
    return None


def reads_of(node: NodeProto) -> list[str]:
    """Names a node reads, those its bodies take from outside included, in order."""
    reads = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            reads.extend(captured(graph))
    return reads


def captured(graph: GraphProto) -> list[str]:
    """Names that a body reads and does not define."""
    own = defined_names(graph)
    reads: list[str] = []
    for node in graph.node:
        reads.extend(reads_of(node))
    reads.extend(info.name for info in graph.output)
    return [name for name in dict.fromkeys(reads) if name not in own]


def _definer(value: SSAValue) -> str:
    owner = value.owner
    if not isinstance(owner, NodeOp):
        return "an input" if isinstance(owner, Block) else "an initializer"
    # A call is in no module yet in which its function could be looked up.
    kind = owner.callee.string_value() if isinstance(owner, CallOp) else owner.op_type
    return f"node '{node_name(owner) or result_names(owner)[0]}' ({kind})"


def _label(node: NodeProto) -> str:
    return f"'{node.name or (node.output[0] if node.output else node.op_type)}'"
