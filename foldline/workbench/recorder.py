"""What a compile looked like after each stage, for the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from foldline.dialects.onnx.attributes import ValueInfo
from foldline.dialects.onnx.constant import constant_tensor, is_constant
from foldline.dialects.onnx.structure import GraphOp, interface
from foldline.stages.context import PassContext
from foldline.stages.observers import Observer
from foldline.stages.stage import Stage
from foldline.workbench.difference import Changed, Difference, node_difference
from foldline.workbench.nodes import Node, nodes_of, type_text


@dataclass(frozen=True)
class Moment:
    """The nodes after a stage."""

    stage: str
    nodes: tuple[Node, ...]
    """In the order of the module: producers before readers."""
    stored: tuple[int, ...]
    """For each node: the bytes that it holds, 0 of those that are no constants."""
    inputs: tuple[tuple[str, str], ...]
    """Names and types of the main graph's inputs."""
    outputs: tuple[tuple[str, str], ...]


class StageRecorder(Observer):
    """Records the model as imported and after each stage; it holds text, not modules."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []

    def before_pipeline(self, context: PassContext) -> None:
        """Record the model as imported."""
        self.moments.append(moment("import", context.module))

    def after_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        """Record what the stage left."""
        self.moments.append(moment(stage.name, context.module))


def moment(stage: str, module: ModuleOp) -> Moment:
    """A module as it stands now."""
    pairs = nodes_of(module)
    graph = next(op for op in module.body.block.ops if isinstance(op, GraphOp))
    known = interface(graph.regions[0].block)
    return Moment(
        stage,
        tuple(node for _, node in pairs),
        tuple(_stored_bytes(op) for op, _ in pairs),
        tuple((info.name, _type_text(info)) for info in known.argument_infos()),
        tuple((info.name, _type_text(info)) for info in known.outputs),
    )


def _type_text(info: ValueInfo) -> str:
    return "" if info.type is None else type_text(info.type)


def _stored_bytes(op: Operation) -> int:
    """A constant of equal elements stores one of them."""
    tensor = constant_tensor(op.results[0]) if is_constant(op) else None
    if tensor is None:
        return 0
    array = tensor.data.array
    return array.itemsize if tensor.data.is_splat else array.nbytes


@dataclass(frozen=True)
class Judgement:
    """How a node took part in a stage."""

    status: str
    """`changed`, `typed` (only its types became known), `folded`, `fused`, `removed`, `new`."""
    text: str
    """What became of it, what is different, or what it was made of."""


@dataclass
class Change:
    """A stage, node by node: by position in the moments before and after it."""

    difference: Difference
    before: dict[int, Judgement]
    after: dict[int, Judgement]


LONGEST_LIST = 12
"""So many nodes that a fused node stands for are named."""


def change(before: Moment, after: Moment) -> Change:
    """What happened between two moments; nodes that nothing happened to are left out."""
    found = node_difference(before.nodes, after.nodes, inferred=True)
    # The difference holds the very nodes it was given.
    old = {id(node): index for index, node in enumerate(before.nodes)}
    new = {id(node): index for index, node in enumerate(after.nodes)}
    result = Change(found, {}, {})
    parts = _parts(found)
    for removed in found.removed:
        status = _status_of(removed.fate)
        result.before[old[id(removed.node)]] = Judgement(status, removed.fate)
    for node in found.added:
        made = _made_of(node, parts)
        status = "new"
        if node.is_constant and (made or node.folded):
            status, made = "folded", made or _listed("folded from", node.folded)
        elif made:
            status = "fused"
        result.after[new[id(node)]] = Judgement(status, made)
    for pair in found.changed:
        judged = _judged_change(pair)
        result.before[old[id(pair.before)]] = judged
        if made := _made_of(pair.after, parts):
            judged = Judgement("fused", f"{made}; {judged.text}")
        result.after[new[id(pair.after)]] = judged
    return result


def _judged_change(pair: Changed) -> Judgement:
    if _is_moved_in(pair):
        return Judgement("fused", f"moved into {pair.after.graph}")
    only_types = all(what.startswith("type") for what in pair.what)
    return Judgement("typed" if only_types else "changed", "; ".join(pair.what))


def _is_moved_in(pair: Changed) -> bool:
    """Whether it went from its graph into the body of a node: fused, but still told apart."""
    return pair.before.graph != pair.after.graph and "." in pair.after.graph


def _parts(found: Difference) -> dict[str, list[str]]:
    """What is gone by its fate, and what has moved by the node whose body it is in now."""
    nodes: dict[str, list[Node]] = {}
    for removed in found.removed:
        nodes.setdefault(removed.fate, []).append(removed.node)
    for pair in found.changed:
        if _is_moved_in(pair):
            nodes.setdefault(pair.after.graph.rpartition(".")[0], []).append(pair.before)
    # The constants of what was fused are told where there is nothing else to tell.
    return {
        key: [n.label for n in held if not n.is_constant] or [n.label for n in held]
        for key, held in nodes.items()
    }


def _status_of(fate: str) -> str:
    words = {"folded": "folded", "part": "fused"}
    return words.get(fate.partition(" ")[0], "removed")


def _made_of(node: Node, parts: Mapping[str, Sequence[str]]) -> str:
    """The nodes whose fate names this one, or that are in its body now."""
    place = f"{node.graph}{'/' if node.graph else ''}{node.label}"
    fates = [f"part of {node.op_type} '{node.label}'", place]
    if node.is_constant:
        fates = [f"folded into '{name}'" for name in dict.fromkeys((node.label, *node.outputs))]
    names = [name for fate in fates for name in parts.get(fate, ())]
    return _listed("folded from" if node.is_constant else "in place of", names) if names else ""


def _listed(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - LONGEST_LIST} more" if len(names) > LONGEST_LIST else ""
    return f"{what} {', '.join(names[:LONGEST_LIST])}{more}"


@dataclass
class History:
    """The nodes of all moments: which of them are one and the same, and where it stands.

    What is one node through all stages is an *entity*, a number.
    """

    entities: list[list[int]]
    """For each moment, those of its nodes."""
    order: list[int]
    """Entities, producers before readers; one that a stage made stands behind its neighbour."""
    first: dict[int, Node]
    """Each entity as it was when it was first seen."""


def history(moments: Sequence[Moment], changes: Sequence[Change]) -> History:
    """Follow the nodes through the moments; `changes` are those between neighbours."""
    found = History([], [], {})
    for index, here in enumerate(moments):
        known: dict[int, int] = {}
        if index:
            twins = changes[index - 1].difference.twins
            known = {new: found.entities[-1][old] for old, new in twins.items()}
        entities = list(_numbered(here.nodes, known, found.first))
        fresh = {e for position, e in enumerate(entities) if position not in known}
        found.entities.append(entities)
        found.order = list(_merged(found, entities, fresh))
    return found


def _numbered(
    nodes: Sequence[Node], known: Mapping[int, int], first: dict[int, Node]
) -> Iterator[int]:
    for position, node in enumerate(nodes):
        entity = known.get(position, len(first))
        first.setdefault(entity, node)
        yield entity


def _merged(past: History, entities: Sequence[int], fresh: set[int]) -> Iterator[int]:
    """The order with the fresh entities, each behind the one it stands behind.

    Constants are no neighbours: they stand far from what reads them.
    """
    behind: dict[int, list[int]] = {}
    last = -1
    for entity in entities:
        if entity in fresh:
            behind.setdefault(last, []).append(entity)
        elif not past.first[entity].is_constant:
            last = entity
    yield from behind.get(-1, ())
    for entity in past.order:
        yield entity
        yield from behind.get(entity, ())
