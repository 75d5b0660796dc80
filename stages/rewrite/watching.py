"""Watching over a graph while functions of a rule run: they may look, not touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeAlias, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from foldline.stages.rewrite.match import Match
from foldline.support.errors import RewriteError

T = TypeVar("T")
Look: TypeAlias = tuple[object, ...]

LOOKED_AT = 8
"""Readers of each value, operands of each operation: all of them can be many."""


def unchanged(call: Callable[[], T], match: Match, culprit: str, module: ModuleOp | None) -> T:
    """What `call` gives. Raises RewriteError if it changed what stands around a match.

    That is its operations, those that it reads from and some of those that read it; with `module`
    every operation there is.
    """
    watched = list(_around(match) if module is None else module.walk())
    before = [_look(op) for op in watched]
    result = call()
    if [_look(op) for op in watched] != before:
        raise RewriteError(f"{culprit} changed the graph other than through the builder")
    return result


def _around(match: Match) -> Iterable[Operation]:
    found: dict[Operation, None] = dict.fromkeys(match.ordered)
    for op in match.ordered:
        read = (value.owner for value in islice(op.operands, LOOKED_AT))
        found.update((owner, None) for owner in read if isinstance(owner, Operation))
        for result in op.results:
            found.update(dict.fromkeys(_readers(result)))
    return found


def _look(op: Operation) -> Look:
    """What would be different if somebody had changed an operation."""
    results = tuple((result.type, *_readers(result)) for result in op.results)
    given = (dict(op.properties), dict(op.attributes))
    operands = tuple(islice(op.operands, LOOKED_AT))
    return (op.parent, op.prev_op, op.next_op, operands, given, results)


def _readers(value: SSAValue) -> Iterable[Operation]:
    """Some operations that read a value; those that a builder has just made do not count."""
    readers = (use.operation for use in value.uses if use.operation.parent is not None)
    return islice(readers, LOOKED_AT)
