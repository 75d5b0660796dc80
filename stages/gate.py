"""Lets what changes a module act up to a count, so that a run can be cut between two changes.

Whoever shows a node to a pass, runs a whole pass, or replaces a match asks first. Asking is
counted, and the count is the same in every run on equal modules: what is let through up to a
number can be repeated, halved and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import Operation, OpResult, SSAValue

from foldline.dialects.onnx.op import node_name, result_names

if TYPE_CHECKING:
    from foldline.stages.facts import FactKeeper, Listener

Admits = Callable[[int, str, Operation | None], bool]
"""Whether to let through what asks: its number, from 0, the pass or rule, and the node, if any."""


@dataclass(frozen=True)
class Application:
    """What was let through and changed the module."""

    number: int
    """Its place among all that asked, from 0."""
    pass_name: str
    """The pass or rule."""
    op_type: str
    """Operator of the node it was shown, as it was before; '' for a pass over the whole module."""
    node: str
    """Name of that node, else of its first output that has one, else ''."""
    changes: int
    touched: frozenset[str] = frozenset()
    """Names of the nodes, and of the values they make, that it made, rewired or removed."""
    op_types: frozenset[str] = frozenset()
    """Their operators, as `onnx.Conv`."""


def everything(number: int, pass_name: str, op: Operation | None) -> bool:
    """Lets all through, and so only notes it."""
    return True


class Gate:
    """Counts what asks, lets through what `admits` says, notes what changed something."""

    def __init__(self, admits: Admits = everything):
        self._admits = admits
        self.asked = 0
        self.refused = 0
        self.applications: list[Application] = []

    def __call__(
        self, keeper: FactKeeper, pass_name: str, op: Operation | None, act: Callable[[], None]
    ) -> bool:
        """Call `act`, if it is let through; whether it was."""
        number, self.asked = self.asked, self.asked + 1
        if not self._admits(number, pass_name, op):
            self.refused += 1
            return False
        op_type, node = ("", "") if op is None else (op.name, name_of(op))
        changes, heard = keeper.changes, _Journal(keeper.listener)
        keeper.listener = heard
        try:
            act()
        finally:
            keeper.listener = heard.listener
        if keeper.changes > changes:
            self.applications.append(
                Application(
                    number,
                    pass_name,
                    op_type,
                    node,
                    keeper.changes - changes,
                    frozenset(heard.names),
                    frozenset(heard.op_types),
                )
            )
        return True


class _Journal:
    """Hands on what a driver hears, and notes which operations it was about."""

    def __init__(self, listener: Listener):
        self.listener = listener
        self.names: set[str] = set()
        self.op_types: set[str] = set()

    def created(self, op: Operation) -> None:
        self._note(op)
        self.listener.created(op)

    def changed(self, op: Operation) -> None:
        self._note(op)
        self.listener.changed(op)

    def retyped(self, value: SSAValue) -> None:
        if isinstance(value, OpResult):
            self._note(value.op)
        self.listener.retyped(value)

    def erasing(self, op: Operation) -> None:
        self._note(op)
        self.listener.erasing(op)

    def _note(self, op: Operation) -> None:
        self.op_types.add(op.name)
        self.names.update(name for name in (node_name(op), *result_names(op)) if name)


def up_to(limit: int) -> Gate:
    """A gate that lets the first `limit` through."""
    return Gate(lambda number, _, __: number < limit)


def name_of(op: Operation) -> str:
    """Name of a node, else of its first output that has one, else ''."""
    return node_name(op) or next((name for name in result_names(op) if name), "")
