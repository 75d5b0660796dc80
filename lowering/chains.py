"""Chains of element-wise calls that run on one part of the data after another.

Called one by one, each reads from memory what the one before wrote there. Part by part, what they
hand to each other stays in the cache. It pays when the data is larger than that; element-wise
kernels give the same bits on parts as on the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.windows import even_spans
from foldline.lowering.planned_call import Place, PlannedCall, Span
from foldline.lowering.steps import Frame

LEAST_BYTES = 8 << 20
"""A result that is smaller stays in the last cache anyway, where nothing is gained."""
PART_BYTES = 1 << 20
"""Some of it for each call: of the size of the cache of one core."""


def note_spans(planned: Sequence[PlannedCall], fixed: Mapping[int, Any]) -> None:
    """Mark the calls that will run part by part: neighbours of one chain on large data."""
    for _, group in groupby(enumerate(planned), lambda pair: _kind(pair[1], fixed)):
        calls = list(group)
        if len(calls) > 1 and _kind(calls[0][1], fixed) is not None:
            span = Span(calls[0][0], calls[-1][0])
            for _, call in calls:
                call.span = span


def _kind(
    planned: PlannedCall, fixed: Mapping[int, Any]
) -> tuple[int, tuple[int, ...], bool] | None:
    """The chain, the shape and the memory order of a call that can run part by part, else None."""
    call = planned.call
    is_plain = planned.kind == "out" and not call.kernel.is_maker
    if not call.chain or not is_plain or any(slot not in fixed for slot in call.inputs if slot):
        return None
    result: Array = fixed[call.results[0]]
    if result.nbytes < LEAST_BYTES or len(call.results) > 1:
        return None
    return call.chain, result.shape, planned.sees_memory


def tiled(
    calls: Sequence[PlannedCall], frame: Frame, view: Callable[[Place], Array]
) -> Callable[[], None]:
    """The step of calls whose results have places in the frame already; `view` finds scratch."""
    result: Array = calls[-1].seen(frame[calls[-1].call.results[0]])
    axis = next(place for place, size in enumerate(result.shape) if size > 1)
    parts = min(result.shape[axis], -(-result.nbytes // PART_BYTES))
    steps = [
        [_on_part(planned, frame, view, axis, start, stop) for planned in calls]
        for start, stop in even_spans(result.shape[axis], parts)
    ]

    def part(index: int) -> None:
        for step in steps[index]:
            step()

    return lambda: parallel_for(len(steps), part)


def _on_part(
    planned: PlannedCall,
    frame: Frame,
    view: Callable[[Place], Array],
    axis: int,
    start: int,
    stop: int,
) -> Callable[[], Any]:
    call = planned.call
    result: Array = planned.seen(frame[call.results[0]])
    arrays = [planned.seen(frame[slot]) for slot in call.inputs]
    inputs = [_part(array, result.ndim, axis, start, stop) for array in arrays]
    memory = {"out": result}
    if planned.scratch is not None:
        memory["scratch"] = planned.seen(view(planned.scratch))
    parts = {name: _part(x, result.ndim, axis, start, stop) for name, x in memory.items()}
    return partial(planned.run, *inputs, **parts)


def _part(array: Array | None, rank: int, axis: int, start: int, stop: int) -> Array | None:
    """The part of an array that broadcasts to `rank` axes; all of it where it has size 1 there."""
    if array is None:
        return None
    place = axis - (rank - array.ndim)
    if place < 0 or array.shape[place] == 1:
        return array
    return array[(slice(None),) * place + (slice(start, stop),)]
