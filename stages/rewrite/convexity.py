"""Convexity: whether operations can be one, with nothing that stands between them."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation

from foldline.stages.rewrite.match import readers_of, reads_of
from foldline.stages.rewrite.order import Order


def dependents(ops: Iterable[Operation], order: Order) -> list[Operation]:
    """What stands among `ops`, is none of them, and reads what they make, directly or not.

    All are of one block; in program order. Only the stretch from the first to the last of `ops` is
    looked at.
    """
    inside = set(ops)
    block = _block_of(inside)
    last = max(map(order.position, inside))
    found: set[Operation] = set()
    waiting = list(inside)
    while waiting:
        for result in waiting.pop().results:
            for reader in readers_of(result, block):
                if reader not in inside and reader not in found and order.position(reader) < last:
                    found.add(reader)
                    waiting.append(reader)
    return order.in_order(found)


def is_convex(ops: Iterable[Operation], order: Order) -> bool:
    """Whether no path leaves the operations and comes back."""
    inside = set(ops)
    if len({op.parent for op in inside}) != 1:
        return False
    between = set(dependents(inside, order))
    return not between or not any(value.owner in between for op in inside for value in reads_of(op))


def _block_of(ops: set[Operation]) -> Block | None:
    return next(iter(ops)).parent
