"""Names of values in the exported model: those of the source, unique, interface names fixed.

Passes keep names where they can. Where two values claim one, or a value has none, a fresh name is
made that nothing else uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from onnx import NodeProto
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from foldline.dialects.onnx.op import result_names
from foldline.dialects.onnx.structure import interface, terminator
from foldline.dialects.onnx.types import AbsentType


class Names:
    """The name of every value of one graph or function, bodies included."""

    def __init__(self, block: Block):
        self.copies: dict[Block, list[tuple[SSAValue, str]]] = {}
        """Per block: a value, and an output name that needs a copy of it (an Identity)."""
        self.outputs: dict[Block, list[str]] = {}
        """Per block: the names of its outputs. Those of bodies mean nothing outside, and yield."""
        self._names: dict[SSAValue, str] = {}
        self._reserved = _interface_names(block)
        self._fresh: Counter[str] = Counter()
        self._block(block, ())

    def __getitem__(self, value: SSAValue) -> str:
        """The name; empty for an absent value."""
        if isinstance(value.type, AbsentType):
            return ""
        return self._names[value]

    def fresh(self, hint: str) -> str:
        """A name that nothing else has.

        Numbered hint by hint, so that a model exported again gets the names it has.
        """
        while (name := f"{hint}_{self._fresh[hint]}") in self._reserved:
            self._fresh[hint] += 1
        self._reserved.add(name)
        return name

    def _block(self, block: Block, outer: tuple[set[str], ...]) -> None:
        """Name the values of a block; `outer` are the names in sight around it."""
        visible: set[str] = set()
        for argument, info in zip(block.args, interface(block).argument_infos(), strict=True):
            name = self._unhidden(info.name, outer)
            self._names[argument] = name
            visible.add(name)
        outputs = self._outputs(block, outer)
        for op in block.ops:
            for region in op.regions:
                self._block(region.block, (*outer, visible))
            for result, name in zip(op.results, result_names(op), strict=False):
                if isinstance(result.type, AbsentType):
                    continue
                if result not in self._names:
                    taken = name in outputs or name in visible
                    if not name or taken or any(name in names for names in outer):
                        name = self.fresh(name or "value")
                    self._names[result] = name
                visible.add(self._names[result])

    def _unhidden(self, name: str, outer: tuple[set[str], ...]) -> str:
        """A name of a body's interface, or another one where it would hide an outer name."""
        return self.fresh(name) if any(name in names for names in outer) else name

    def _outputs(self, block: Block, outer: tuple[set[str], ...]) -> set[str]:
        """Give each output its interface name: to its value, or to a copy of it."""
        own = {info.name for info in interface(block).inputs if info.is_constant}
        end = terminator(block)
        seen: dict[str, str] = {}
        for value, info in zip(end.operands, interface(block).outputs, strict=True):
            if info.name in seen:
                continue
            name = seen[info.name] = self._unhidden(info.name, outer)
            if self._may_rename(value, block, name, own):
                self._names[value] = name
            elif self._names.get(value, own_name(value)) != name:
                self.copies.setdefault(block, []).append((value, name))
        self.outputs[block] = [seen[info.name] for info in interface(block).outputs]
        return set(seen.values())

    def _may_rename(self, value: SSAValue, block: Block, name: str, constants: set[str]) -> bool:
        """Whether a value may take an output's name: it is made here and has no fixed name."""
        if not isinstance(value, OpResult) or value.op.parent is not block:
            return False
        own = own_name(value)
        return value not in self._names and (own == name or own not in constants)


def make_unique(nodes: Iterable[NodeProto]) -> None:
    """Rename nodes whose name an earlier one has; those without name stay so."""
    listed = list(nodes)
    taken = {node.name for node in listed}
    seen = {""}
    suffixes: Counter[str] = Counter()
    for node in listed:
        given = node.name
        if given in seen and given:
            while node.name in taken:
                suffixes[given] += 1
                node.name = f"{given}_{suffixes[given]}"
            taken.add(node.name)
        seen.add(node.name)


def own_name(value: SSAValue) -> str:
    """The name a value carries in the IR; empty if it has none."""
    if isinstance(value, OpResult):
        return result_names(value.op)[value.index]
    if isinstance(value, BlockArgument):
        return interface(value.block).argument_infos()[value.index].name
    raise TypeError(f"{value} is neither a result nor an argument")


def _interface_names(block: Block) -> set[str]:
    names: set[str] = set()
    it = interface(block)
    names.update(info.name for info in (*it.inputs, *it.outputs))
    for op in block.ops:
        names.update(result_names(op))
        for region in op.regions:
            names |= _interface_names(region.block)
    return names
