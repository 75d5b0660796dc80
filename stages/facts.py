"""Facts about values while IR changes: none outlives what it was concluded from.

When the type of a value, a fact about it or the value itself changes, the facts of its readers go,
of their readers too, and all of them are visited again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from foldline.dialects.fold.known import KNOWN, Fact, KnownAttr, drop_facts
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import ReturnOp
from foldline.stages.folding.known import Mark, mark_of
from foldline.support.report import MarkRow


class Listener(Protocol):
    """What a driver hears of changes."""

    def created(self, op: Operation) -> None:
        """An operation was inserted."""
        ...

    def changed(self, op: Operation) -> None:
        """An operation has another operand."""
        ...

    def retyped(self, value: SSAValue) -> None:
        """A value has another type."""
        ...

    def erasing(self, op: Operation) -> None:
        """An operation without uses is about to go."""
        ...


class _Nobody:
    def created(self, op: Operation) -> None: ...
    def changed(self, op: Operation) -> None: ...
    def retyped(self, value: SSAValue) -> None: ...
    def erasing(self, op: Operation) -> None: ...


NOBODY: Listener = _Nobody()


class _Both:
    def __init__(self, first: Listener, second: Listener):
        self._listeners = first, second

    def created(self, op: Operation) -> None:
        for listener in self._listeners:
            listener.created(op)

    def changed(self, op: Operation) -> None:
        for listener in self._listeners:
            listener.changed(op)

    def retyped(self, value: SSAValue) -> None:
        for listener in self._listeners:
            listener.retyped(value)

    def erasing(self, op: Operation) -> None:
        for listener in self._listeners:
            listener.erasing(op)


def both(first: Listener, second: Listener) -> Listener:
    """A listener that hands what it hears to two, if there is somebody in the first place."""
    return second if first is NOBODY else _Both(first, second)


class FactKeeper:
    """Notes and drops facts, counts marks, tells the driver."""

    def __init__(self) -> None:
        self.changes: int = 0
        """Grows with every change."""
        self.listener: Listener = NOBODY
        self.marks: dict[str, MarkRow] = {}
        """What became of the potential constants, by the pass that found them."""

    def withdraw(self, value: SSAValue) -> None:
        """Something else is known of a value than before: what was concluded from that goes."""
        for reader in _readers(value):
            self.drop_facts(reader)
        self.listener.retyped(value)

    def set_facts(self, op: Operation, facts: Sequence[Fact | None]) -> None:
        """Note what is known of the results of `op`, one fact or None a result.

        What was noted before goes, and all that was concluded from it, unless it is the same.
        """
        new, old = KnownAttr(tuple(facts)), op.attributes.get(KNOWN)
        if old == new:
            return
        self.drop_facts(op)
        op.attributes[KNOWN] = new
        if (mark := mark_of(op)) is not None:
            self._marks(mark.source).made += 1
        self.changes += 1
        for result in op.results:
            self.listener.retyped(result)

    def drop_facts(self, op: Operation) -> None:
        """Forget what is known of the results of `op`, and all that was concluded from it."""
        pending = [op]
        while pending:
            here = pending.pop()
            mark = mark_of(here)
            if not drop_facts(here):
                continue
            if mark is not None:
                self._marks(mark.source).dropped += 1
            self.changes += 1
            for result in here.results:
                pending += _readers(result)
                self.listener.retyped(result)

    def count_taken(self, op: Operation, mark: Mark, stage: str) -> None:
        """A mark is about to become real: it is no fact any more."""
        taken = self._marks(mark.source).taken
        taken[stage] = taken.get(stage, 0) + 1
        del op.attributes[KNOWN]

    def count_erased(self, op: Operation) -> None:
        """An operation goes, with its mark and those of what it holds."""
        for inner in op.walk() if op.regions else (op,):
            if (mark := mark_of(inner)) is not None:
                self._marks(mark.source).dropped += 1

    def _marks(self, source: str) -> MarkRow:
        return self.marks.setdefault(source, MarkRow(source))


def _readers(value: SSAValue) -> list[Operation]:
    """The operations whose facts may hang on a value."""
    return [noted_on(use.operation) for use in value.uses]


def noted_on(op: Operation) -> Operation:
    """Where what an operation concludes is noted: a return speaks for the node of its body."""
    holder = op.parent_op() if isinstance(op, ReturnOp) else None
    return holder if isinstance(holder, NodeOp) else op
