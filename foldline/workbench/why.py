"""Why a node was, or was not, folded or fused: what became of it, by which pass, what was said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import TextWrapper

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from foldline.dialects.fold.flags import (
    folded_nodes,
    is_inserted,
    is_kept,
    no_need_reason,
    replaced_nodes,
)
from foldline.dialects.fold.known import FullyKnown, get_fact
from foldline.dialects.onnx.constant import constant_tensor
from foldline.stages.gate import Application
from foldline.support.remarks import Remark
from foldline.workbench.difference import difference
from foldline.workbench.explain import Lookup
from foldline.workbench.nodes import Node

LINE = 100
"""Lists of passes are broken into lines of so many characters."""


def wrapped(text: str, indent: str = "") -> list[str]:
    """A long list as lines, which break at spaces only."""
    rest = f"{indent}  "
    wrapper = TextWrapper(LINE, indent, rest, break_on_hyphens=False, break_long_words=False)
    return wrapper.wrap(text)


@dataclass(frozen=True)
class Past:
    """A change that was made, and the stage it was made in."""

    stage: str
    change: Application

    @property
    def by(self) -> str:
        """The pass, as `stage/pass`."""
        return f"{self.stage}/{self.change.pass_name}"


@dataclass(frozen=True)
class Why:
    """The state to explain from."""

    original: ModuleOp
    here: ModuleOp
    remarks: Sequence[Remark]
    past: Sequence[Past]
    """All changes so far, in order."""
    ahead: Sequence[str]
    """Passes that have not run yet, as `stage/pass`."""

    def lines(self, name: str) -> Iterator[str]:
        """What became of a node, what passes said of it, and what could still come.

        Raises InvalidArgumentError for a name that nothing has here, nor in the original.
        """
        lookup = Lookup(self.here)
        found = lookup.find(name)
        node = (found or Lookup(self.original).node(name))[1]
        if found is None:
            fate, found = self._fate(node, lookup)
            yield fate
        names = {name, node.label, node.name, *node.outputs} - {""}
        touching = [past for past in self.past if not names.isdisjoint(past.change.touched)]
        if found is None:
            if touching:
                yield f"by {touching[-1].by}{place_of(touching[-1].change)}"
        else:
            yield f"it is here: {found[1]}"
            yield from _standing(found[0])
        yield from _in_short(touching)
        yield from self._said(names, touching)
        if found is not None and not found[1].is_constant:
            yield from self._to_come()

    def _fate(self, node: Node, lookup: Lookup) -> tuple[str, tuple[Operation, Node] | None]:
        """What became of a node whose name is gone; where it only changed that, the node too."""
        found = difference(self.original, self.here)
        for removed in found.removed:
            if removed.node == node:
                return f"it is gone: {removed.fate}", None
        place = [known for _, known in Lookup(self.original).nodes].index(node)
        return "it goes by another name", lookup.nodes[found.twins[place]]

    def _said(self, names: set[str], touching: Sequence[Past]) -> Iterator[str]:
        """Remarks on the node; on others that name it; on changes that took it in."""
        changes = {(past.stage, past.change.pass_name, past.change.node) for past in touching}
        is_silent = True
        for remark in self.remarks:
            where = f"{remark.stage}/{remark.pass_name} {remark.kind}"
            at = remark.stage, remark.pass_name, remark.node
            if remark.node in names:
                yield f"{where}: {remark.message}"
            elif (remark.kind == "applied" and at in changes) or any(
                f"'{name}'" in remark.message for name in names
            ):
                at_node = f" at '{remark.node}'" if remark.node else ""
                yield f"{where}{at_node}: {remark.message}"
            else:
                continue
            is_silent = False
        if is_silent:
            yield "no pass has said anything of it"

    def _to_come(self) -> Iterator[str]:
        """What is left of the stage in full, later stages by name."""
        if not self.ahead:
            yield "nothing is still to come"
            return
        stages = [
            (stage, [name.partition("/")[2] for name in names])
            for stage, names in groupby(self.ahead, lambda name: name.partition("/")[0])
        ]
        (stage, passes), *later = stages
        yield from wrapped(f"still to come: {stage}/{', '.join(passes)}")
        if later:
            yield f"then {', '.join(f'{stage} ({len(names)} passes)' for stage, names in later)}"


def place_of(change: Application) -> str:
    """` at Conv 'c'`; '' for a change of the whole module."""
    return f" at {change.op_type.rpartition('.')[2]} '{change.node}'" if change.node else ""


def _in_short(touching: Sequence[Past]) -> Iterator[str]:
    """The passes that changed it or what it stood beside, in order, neighbours counted."""
    if touching:
        groups = [(by, len(list(group))) for by, group in groupby(past.by for past in touching)]
        listed = ", ".join(by if count == 1 else f"{by} ({count} times)" for by, count in groups)
        yield from wrapped(f"touched by: {listed}")


def _standing(op: Operation) -> Iterator[str]:
    """Facts, flags and provenance of an operation that stands."""
    for result in op.results:
        fact = get_fact(result)
        if fact is not None and constant_tensor(result) is None:
            known = "potential constant" if isinstance(fact, FullyKnown) else "partly known"
            yield f"{known}, found by {fact.source}"
    if is_kept(op):
        yield "kept: the user says not to fold it"
    if (reason := no_need_reason(op)) is not None:
        yield f"not to be folded: {reason}"
    if nodes := folded_nodes(op):
        yield from wrapped(f"folded from: {', '.join(nodes)}")
    if nodes := replaced_nodes(op):
        yield from wrapped(f"in the place of: {', '.join(nodes)}")
    if is_inserted(op):
        yield "inserted by a pass"
