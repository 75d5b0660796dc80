"""Which memory a value may share, and which outputs a caller may be given without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from foldline.lowering.routine import Routine
from foldline.lowering.steps import BoundCall

Roots: TypeAlias = dict[int, frozenset[int]]
"""For each slot, the slots whose memory its value may share; constants count for nothing."""

NO_ROOTS: frozenset[int] = frozenset()


def may_alias(call: BoundCall, roots: Roots) -> frozenset[int]:
    """The roots of a call's results that are not the results themselves."""
    if call.bodies:
        return NO_ROOTS.union(
            *(roots.get(slot, NO_ROOTS) for slot in (*call.inputs, *call.captures))
        )
    if call.kernel.view and call.inputs:
        return roots.get(call.inputs[0], NO_ROOTS)
    return NO_ROOTS


def alias_roots(routine: Routine) -> Roots:
    """The roots of every slot, whatever the shapes are."""
    inputs = range(routine.layout.inputs.start, routine.layout.inputs.stop)
    roots: Roots = {slot: frozenset((slot,)) for slot in inputs}
    for call in routine.calls:
        shared = may_alias(call, roots)
        for slot in call.results:
            roots[slot] = shared if call.kernel.view else frozenset((slot,))
    return roots


def owners(routine: Routine) -> tuple[int | None, ...]:
    """For each output, the slot whose fresh memory it alone holds; None where it needs a copy.

    A value leaves without a copy when a kernel allocated it, or what it is a view of, and no
    other output shares that.
    """
    roots = alias_roots(routine)
    fresh = {
        slot
        for call in routine.calls
        if not call.kernel.view and not call.bodies
        for slot in call.results
    }
    held = [roots.get(slot, NO_ROOTS) for slot in routine.layout.outputs]
    return tuple(_owner(root_set, held, fresh) for root_set in held)


def _owner(roots: frozenset[int], held: Sequence[frozenset[int]], fresh: set[int]) -> int | None:
    if len(roots) != 1 or not roots <= fresh:
        return None
    return next(iter(roots)) if sum(1 for other in held if other & roots) == 1 else None
