"""Convexity: whether operations can be one, with nothing that stands between them."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import Operation

from foldline.stages.rewrite.match import readers_of, reads_of
from foldline.stages.rewrite.order import Order


def dependents(ops: Collection[Operation], order: Order) -> list[Operation]:
    """What stands among `ops`, is none of them, and reads what they make, directly or not.

    All are of one block; in program order. Only the stretch from the first to the last of `ops` is
    looked at.
    """
    inside = set(ops)
    if len(inside) == 1:
        return []
    last_op = max(inside, key=order.position)
    last, block = order.position(last_op), last_op.parent
    found: set[Operation] = set()
    waiting = [op for op in inside if op is not last_op]
    while waiting:
        for result in waiting.pop().results:
            for reader in readers_of(result, block):
                if reader not in inside and reader not in found and order.position(reader) < last:
                    found.add(reader)
                    waiting.append(reader)
    return order.in_order(found)


def is_convex(ops: Collection[Operation], order: Order) -> bool:
    """Whether no path leaves the operations and comes back."""
    inside = set(ops)
    if len({op.parent for op in inside}) != 1:
        return False
    between = set(dependents(inside, order))
    return not between or not any(value.owner in between for op in inside for value in reads_of(op))
