"""Which memory a value may share, and which outputs a caller may be given without a copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from foldline.lowering.steps import BoundCall

Roots: TypeAlias = dict[int, frozenset[int]]
"""For each slot, the slots whose memory its value may share; constants count for nothing."""

NO_ROOTS: frozenset[int] = frozenset()


def alias_roots(calls: Iterable[BoundCall], inputs: Iterable[int]) -> Roots:
    """The roots of every slot, whatever the shapes are."""
    roots: Roots = {slot: frozenset((slot,)) for slot in inputs}
    for call in calls:
        note_roots(call, roots)
    return roots


def note_roots(call: BoundCall, roots: Roots) -> None:
    """Note the roots of a call's results.

    What a body returns may be anything it reads, also a constant of its own, or be fresh.
    """
    shared = NO_ROOTS
    if call.bodies:
        read = (*call.inputs, *call.captures)
        shared = NO_ROOTS.union(*(roots.get(slot, NO_ROOTS) for slot in read))
    elif call.kernel.view and call.inputs:
        shared = roots.get(call.inputs[0], NO_ROOTS)
    is_view_only = call.kernel.view and not call.bodies
    for slot in call.results:
        roots[slot] = shared if is_view_only else shared | {slot}


def owners(
    calls: Sequence[BoundCall], inputs: Iterable[int], outputs: Sequence[int]
) -> tuple[int | None, ...]:
    """For each output, the slot whose fresh memory it alone holds; None where it needs a copy.

    A value leaves without a copy when a kernel allocated it, or what it is a view of, and no
    other output shares that.
    """
    roots = alias_roots(calls, inputs)
    fresh = {s for call in calls if not call.kernel.view for s in call.results}
    held = [roots.get(slot, NO_ROOTS) for slot in outputs]
    return tuple(_owner(root_set, held, fresh) for root_set in held)


def _owner(roots: frozenset[int], held: Sequence[frozenset[int]], fresh: set[int]) -> int | None:
    if len(roots) != 1 or not roots <= fresh:
        return None
    return next(iter(roots)) if sum(1 for other in held if other & roots) == 1 else None
