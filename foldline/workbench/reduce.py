"""Makes a model small that breaks a compile: some of its nodes, which still break it.

Nodes around the place are taken until what they make breaks, then given up, many at once and then
one by one, as long as the rest still does. Values from outside become inputs, and keep the values
that they had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import onnx
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

MOST_RINGS = 6
"""So far from the place nodes are taken in."""

Breaks = Callable[[ModelProto, Mapping[str, Any]], bool]
"""Whether a model breaks on these inputs."""


@dataclass(frozen=True)
class Reduced:
    """A part of a model, and inputs for it."""

    model: ModelProto
    inputs: Mapping[str, Any]

    @property
    def nodes(self) -> int:
        """How many nodes it has, constants not counted."""
        return sum(node.op_type != "Constant" for node in self.model.graph.node)


def reduce(
    model: ModelProto,
    names: Sequence[str],
    values: Mapping[str, Any],
    breaks: Breaks,
) -> Reduced | None:
    """A small part of `model` that breaks, around the nodes or values called `names`.

    `values` holds the values of `model` in one run, by name. None where not even all of it breaks.
    """
    parts = _Parts(model, values)
    for chosen in parts.rings(names):
        found = parts.cut(chosen)
        if found is not None and breaks(found.model, found.inputs):
            return _smaller(parts, chosen, found, breaks)
    return None


def _smaller(parts: _Parts, chosen: set[int], found: Reduced, breaks: Breaks) -> Reduced:
    """Without what is not needed: first many nodes at once, then fewer, at last single ones."""
    size = max(len(chosen) // 2, 1)
    while True:
        before = len(chosen)
        for piece in _pieces(sorted(chosen), size):
            rest = chosen - piece
            part = parts.cut(rest) if rest else None
            if part is not None and breaks(part.model, part.inputs):
                chosen, found = rest, part
        if size == 1 and len(chosen) == before:
            return found
        size = max(min(size, len(chosen)) // 2, 1)


def _pieces(items: Sequence[int], size: int) -> Iterator[set[int]]:
    """Items in pieces, those far from the start first: what hangs on others goes before them."""
    for start in reversed(range(0, len(items), size)):
        yield set(items[start : start + size])


class _Parts:
    """Parts of one model."""

    def __init__(self, model: ModelProto, values: Mapping[str, Any]):
        self._model = model
        self._values = values
        graph = model.graph
        self._nodes = [node for node in graph.node if node.op_type != "Constant"]
        self._constants = {n.output[0]: n for n in graph.node if n.op_type == "Constant"}
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self._types = {info.name: info for info in (*graph.value_info, *graph.input, *graph.output)}
        self._reads = [_reads(node) for node in self._nodes]
        self._names = [set(_names(node)) for node in self._nodes]
        self._makers = {name: i for i, node in enumerate(self._nodes) for name in node.output}
        self._outputs = {info.name for info in graph.output}

    def named(self, names: Sequence[str]) -> set[int]:
        """The nodes that bear one of the names, or make or else read a value that does.

        What a body holds counts as of the node that has the body.
        """
        wanted = set(names)
        found = {i for i, names in enumerate(self._names) if not wanted.isdisjoint(names)}
        if found:
            return found
        return {i for i, reads in enumerate(self._reads) if not wanted.isdisjoint(reads)}

    def rings(self, names: Sequence[str]) -> Iterator[set[int]]:
        """The nodes called so, then with those around them, ring by ring; at last all nodes."""
        chosen = self.named(names)
        for _ in range(MOST_RINGS):
            if chosen:
                yield chosen
            wider = chosen | self.neighbours(chosen)
            if wider == chosen:
                break
            chosen = wider
        everything = set(range(len(self._nodes)))
        if chosen != everything:
            yield everything

    def neighbours(self, chosen: set[int]) -> set[int]:
        """Makers of what the chosen nodes read, and readers of what they make."""
        reads = {name for index in chosen for name in self._reads[index]}
        made = {name for index in chosen for name in self._nodes[index].output}
        readers = {i for i, names in enumerate(self._reads) if not made.isdisjoint(names)}
        return readers | {self._makers[name] for name in reads if name in self._makers}

    def cut(self, chosen: set[int]) -> Reduced | None:
        """The chosen nodes as a model; None where the type of an input is not known."""
        nodes = [self._nodes[index] for index in sorted(chosen)]
        made = {name for node in nodes for name in node.output}
        reads = list(dict.fromkeys(name for i in sorted(chosen) for name in self._reads[i]))
        outside = [name for name in reads if name not in made]
        inputs = [n for n in outside if n not in self._constants and n not in self._initializers]
        read_elsewhere = {
            name for index, names in enumerate(self._reads) if index not in chosen for name in names
        }
        outputs = [
            name
            for node in nodes
            for name in node.output
            if name and (name in self._outputs or name in read_elsewhere or name not in reads)
        ]
        if not outputs or any(name not in self._values for name in inputs):
            return None
        model = self._model
        part = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
        part.functions.extend(model.functions)
        graph = part.graph
        graph.name = model.graph.name or "part"
        graph.node.extend(self._constants[n] for n in outside if n in self._constants)
        graph.node.extend(nodes)
        graph.initializer.extend(self._initializers[n] for n in outside if n in self._initializers)
        graph.input.extend(self._info(name) for name in inputs)
        graph.output.extend(self._info(name) for name in outputs)
        return Reduced(part, {name: self._values[name] for name in inputs})

    def _info(self, name: str) -> ValueInfoProto:
        known = self._types.get(name)
        if known is not None and known.type.WhichOneof("value") is not None:
            return known
        value = self._values.get(name)
        if value is None or isinstance(value, list):
            return onnx.helper.make_empty_tensor_value_info(name)
        array: npt.NDArray[Any] = value
        element = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        return onnx.helper.make_tensor_value_info(name, element, array.shape)


def _reads(node: NodeProto) -> list[str]:
    """What a node reads, its bodies included."""
    names = dict.fromkeys(name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            names.update(dict.fromkeys(_free(graph)))
    return list(names)


def _names(node: NodeProto) -> Iterator[str]:
    """Names of a node and of what it makes, and of what its bodies hold."""
    yield from filter(None, (node.name, *node.output))
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _names(inner)


def _free(graph: GraphProto) -> list[str]:
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    read = [name for node in graph.node for name in _reads(node)]
    return [name for name in (*read, *(info.name for info in graph.output)) if name not in own]
