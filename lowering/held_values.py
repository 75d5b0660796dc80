"""Which values of float16 are held in float32, see `foldline.kernels.held`.

One that a step computes in float32 and rounds, if all that read it would widen it again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foldline.kernels.half import HALF
from foldline.lowering.facts import Fact, Facts, Known, Shaped
from foldline.lowering.steps import BoundCall
from foldline.lowering.trace import Trace


def held_values(trace: Trace) -> set[int]:
    """The slots of values that may be held in float32."""
    taking = {call: takes_held(call, trace.facts) for call in trace.calls}
    made = {call.results[0] for call, takes in taking.items() if takes}
    read = {
        slot
        for call, takes in taking.items()
        if not takes
        for slot in (*call.inputs, *call.captures)
    }
    return made - read - set(trace.outputs)


def takes_held(call: BoundCall, facts: Facts) -> bool:
    """Whether a call may be given, and may give, what is held."""
    kernel = call.kernel
    if kernel.in_single is None or kernel.grade == "exact" or "out" not in kernel.reserved:
        return False
    if call.keywords.get("stash_type", 1) != 1 or not isinstance(facts[call.results[0]], Shaped):
        return False
    of_type = [_dtype(facts[slot]) for slot in (*call.results, *call.inputs[:1])]
    used: list[Fact] = [facts[slot] for slot in call.inputs]
    return of_type == [HALF, HALF] and all(_is_absent(f) or _dtype(f) is not None for f in used)


def _is_absent(fact: Fact) -> bool:
    return isinstance(fact, Known) and fact.value is None


def _dtype(fact: Fact) -> np.dtype[Any] | None:
    match fact:
        case Known(value=np.ndarray() as value):
            return value.dtype
        case Shaped(dtype=dtype):
            return dtype
        case _:
            return None
