"""Regions of a large graph: what its picture shows as one box until it is opened.

Nodes of one name scope (`/model/layer.0/...`) are a region. Where names say nothing, a region is
a block of neighbours, cut where few values cross. No region holds more than a person can look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from foldline.workbench.nodes import Node
from foldline.workbench.recorder import History, Moment

MOST_CHILDREN = 32
"""Nodes and regions in a region."""
MOST_BLOCKS = 24
LEAST_SCOPE = 3
"""A scope of fewer nodes is not worth a box."""
NO_REGION = -1


@dataclass
class Regions:
    """A forest; a region comes before those in it."""

    parents: list[int] = field(default_factory=list[int])
    """`NO_REGION` at the top."""
    labels: list[str] = field(default_factory=list[str])
    """The scope, or '' for a block."""
    of: dict[int, int] = field(default_factory=dict[int, int])
    """The region of each entity; of constants that nothing reads, none."""

    def add(self, parent: int, label: str) -> int:
        """A new region in another one."""
        self.parents.append(parent)
        self.labels.append(label)
        return len(self.parents) - 1


@dataclass(frozen=True)
class _Unit:
    """What stays together: the nodes of a scope (by position), or one node."""

    label: str
    items: tuple[int, ...]


def regions_of(past: History, moments: Sequence[Moment]) -> Regions:
    """Find the regions of all entities; constants go with what reads them first."""
    nodes = past.first
    shown = [entity for entity in past.order if not nodes[entity].is_constant]
    regions = _Builder(shown, nodes).regions
    for entities, moment in zip(past.entities, moments, strict=True):
        first_reader: dict[str, int] = {}
        for entity, node in zip(entities, moment.nodes, strict=True):
            for name in node.inputs:
                first_reader.setdefault(name, entity)
        for entity, node in zip(entities, moment.nodes, strict=True):
            reader = first_reader.get(node.outputs[0]) if node.is_constant else None
            if reader is not None:
                regions.of.setdefault(entity, regions.of[reader])
    return regions


class _Builder:
    def __init__(self, entities: Sequence[int], nodes: Mapping[int, Node]):
        self.entities = entities
        self.scopes = list(_scopes([nodes[entity] for entity in entities]))
        self.crossing = _crossing([nodes[entity] for entity in entities])
        self.regions = Regions()
        self._place(range(len(entities)), 0, NO_REGION)

    def _place(self, items: Sequence[int], depth: int, parent: int) -> None:
        """Put nodes, all of one scope of `depth` parts, in a region."""
        units = self._units(items, depth)
        while len(units) == 1 and len(items) > 1:
            depth += 1
            units = self._units(items, depth)
        if len(items) <= MOST_CHILDREN:
            units = [_Unit("", (item,)) for item in items]
        self._place_units(units, depth, parent)

    def _units(self, items: Sequence[int], depth: int) -> list[_Unit]:
        """The scopes one level down, and the nodes in none, by where they begin."""
        scopes: dict[str, list[int]] = {}
        for item in items:
            if depth < len(self.scopes[item]):
                scopes.setdefault(self.scopes[item][depth], []).append(item)
        large = {label: held for label, held in scopes.items() if len(held) >= LEAST_SCOPE}
        units = [_Unit(label, tuple(held)) for label, held in large.items()]
        within = {item for held in large.values() for item in held}
        units += [_Unit("", (item,)) for item in items if item not in within]
        return sorted(units, key=lambda unit: unit.items[0])

    def _place_units(self, units: Sequence[_Unit], depth: int, parent: int) -> None:
        if len(units) > MOST_CHILDREN:
            for block in self._blocks(units):
                self._place_units(block, depth, self.regions.add(parent, ""))
            return
        for unit in units:
            if unit.label:
                self._place(unit.items, depth + 1, self.regions.add(parent, unit.label))
            else:
                self.regions.of[self.entities[unit.items[0]]] = parent

    def _blocks(self, units: Sequence[_Unit]) -> Iterator[Sequence[_Unit]]:
        """Blocks of about equal size, cut where the fewest values cross."""
        count = max(2, min(MOST_BLOCKS, -(-len(units) // MOST_CHILDREN)))
        size, begin = len(units) / count, 0
        for number in range(1, count):
            middle, slack = int(number * size), int(size // 4)
            places = range(max(begin + 1, middle - slack), min(len(units), middle + slack + 1))
            cut = min(
                places,
                key=lambda i: (self.crossing[units[i].items[0]], abs(i - middle)),
            )
            yield units[begin:cut]
            begin = cut
        yield units[begin:]


def _scopes(nodes: Sequence[Node]) -> Iterator[tuple[str, ...]]:
    """The parts of each node's scope; a body is a scope, and who has no name is where he stands."""
    last: tuple[str, ...] = ()
    for node in nodes:
        name = node.name or next(filter(None, node.outputs), "")
        parts = tuple(part for part in name.split("/")[:-1] if part)
        inside = (node.graph,) if node.graph else ()
        if not parts and not node.name and not node.is_named and last[: len(inside)] == inside:
            parts = last[len(inside) :]
        last = (*inside, *parts)
        yield last


def _crossing(nodes: Sequence[Node]) -> list[int]:
    """For each node, how many values are made before it and read by it or behind it."""
    made: dict[str, int] = {}
    until: dict[str, int] = {}
    for position, node in enumerate(nodes):
        until.update((name, position) for name in node.inputs if name in made)
        for name in node.outputs:
            made.setdefault(name, position)
    steps = [0] * (len(nodes) + 2)
    for name, last in until.items():
        steps[made[name] + 1] += 1
        steps[last + 1] -= 1
    crossing: list[int] = []
    for step in steps[: len(nodes)]:
        crossing.append(step + (crossing[-1] if crossing else 0))
    return crossing
