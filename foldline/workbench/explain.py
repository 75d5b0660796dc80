"""What is known of one node or value: its neighbours, type, contents, facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from foldline.dialects.fold.known import FullyKnown, get_fact
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.tensor import Tensor
from foldline.support.errors import InvalidArgumentError
from foldline.support.suggest import did_you_mean
from foldline.workbench.nodes import Naming, Node, nodes_of, type_text, value_text

MOST_SHOWN = 16
"""So many neighbours are listed on each side; how many more there are is said."""


class Lookup:
    """The nodes and values of a module by name."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.naming = Naming(module)
        self.nodes = nodes_of(module)

    @cached_property
    def _by_label(self) -> dict[str, tuple[Operation, Node]]:
        """Nodes by the names of their outputs, and by their own, which is stronger."""
        found: dict[str, tuple[Operation, Node]] = {}
        for pair in self.nodes:
            found.update((name, pair) for name in pair[1].outputs if name)
        for pair in self.nodes:
            if pair[1].name and not pair[1].is_constant:
                found[pair[1].name] = pair
        return found

    @property
    def names(self) -> Sequence[str]:
        """What `node` finds something for."""
        return list(self._by_label)

    def find(self, name: str) -> tuple[Operation, Node] | None:
        """The node of that name, or that makes the value of that name."""
        return self._by_label.get(name)

    def node(self, name: str) -> tuple[Operation, Node]:
        """As `find`. Raises InvalidArgumentError."""
        found = self.find(name)
        if found is None:
            hint = did_you_mean(name, self._by_label)
            raise InvalidArgumentError(f"no node and no value is called {name!r} here{hint}")
        return found


def around(lookup: Lookup, name: str, depth: int = 1) -> Iterator[str]:
    """A node with what it reads (above it) and what reads it (below), `depth` steps far."""
    op, node = lookup.node(name)
    described = dict(lookup.nodes)
    yield from reversed(list(_side(op, described, _producers, "^", depth)))
    yield f"> {node}"
    yield from _side(op, described, _readers, "v", depth)


def _side(
    op: Operation,
    described: Mapping[Operation, Node],
    step: Callable[[Operation], Iterator[Operation]],
    sign: str,
    depth: int,
) -> Iterator[str]:
    seen, edge = {op}, [op]
    for distance in range(1, depth + 1):
        found = dict.fromkeys(near for here in edge for near in step(here) if near not in seen)
        edge = [near for near in described if near in found]
        seen.update(edge)
        for near in edge[:MOST_SHOWN]:
            yield f"{sign * distance} {described[near]}"
        if len(edge) > MOST_SHOWN:
            yield f"{sign * distance} and {len(edge) - MOST_SHOWN} more"


def _producers(op: Operation) -> Iterator[Operation]:
    for value in op.operands:
        if not isinstance(value.owner, Block):
            yield value.owner


def _readers(op: Operation) -> Iterator[Operation]:
    for result in op.results:
        for use in result.uses:
            yield use.operation


def value_lines(lookup: Lookup, name: str) -> Iterator[str]:
    """Type, contents and facts of a value."""
    value = _value(lookup, name)
    yield f"{lookup.naming[value] or name}: {type_text(value.type) or 'type not known'}"
    tensor = constant_tensor(value)
    if tensor is not None:
        yield f"constant: {value_text(tensor.data)}"
        yield from _statistics(tensor.data)
    fact = get_fact(value)
    if isinstance(fact, FullyKnown) and tensor is None:
        yield f"potential constant by {fact.source}: {value_text(fact.value.data)}"
    elif fact is not None and not isinstance(fact, FullyKnown):
        elements = ", ".join("?" if e is None else str(e) for e in fact.elements)
        yield f"partly known by {fact.source}: [{elements}]"
    readers = {use.operation for use in value.uses}
    names = [node.label for op, node in lookup.nodes if op in readers]
    more = [f"{len(names) - MOST_SHOWN} more"] if len(names) > MOST_SHOWN else []
    outputs = ["the model's outputs"] if len(names) < len(readers) else []
    yield f"read by {', '.join([*names[:MOST_SHOWN], *more, *outputs]) or 'nobody'}"


def _value(lookup: Lookup, name: str) -> SSAValue:
    for op, node in lookup.nodes:
        if name in node.outputs:
            return op.results[node.outputs.index(name)]
    for op in lookup.module.walk():
        for region in op.regions:
            for argument in region.block.args:
                if lookup.naming[argument] == name:
                    return argument
    op, _ = lookup.node(name)
    return op.results[0]


def _statistics(tensor: Tensor) -> Iterator[str]:
    """Of float and integer tensors that are not shown in full."""
    array = tensor.array
    if array.size <= 8 or array.dtype.kind not in "fiu":
        return
    wide = array.astype(np.float64)
    special = int((~np.isfinite(wide)).sum())
    finite = wide[np.isfinite(wide)]
    if finite.size:
        yield (
            f"min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}, "
            f"{int((wide == 0).sum())} zeros, {special} not finite, {array.nbytes} bytes"
        )


def marks(module: ModuleOp) -> Iterator[str]:
    """Every potential or partly known value."""
    for op, node in nodes_of(module):
        for result, name in zip(op.results, node.outputs, strict=True):
            assert isinstance(result, OpResult)
            fact = get_fact(result)
            if fact is None or node.is_constant:
                continue
            if isinstance(fact, FullyKnown):
                yield f"{name} = {value_text(fact.value.data)}    [{node.op_type}, {fact.source}]"
            else:
                elements = ", ".join("?" if e is None else str(e) for e in fact.elements)
                yield f"{name} = [{elements}]    [{node.op_type}, {fact.source}]"
