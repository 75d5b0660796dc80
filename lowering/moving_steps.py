"""Steps on arrays that are elsewhere in every run: a caller's inputs, and results made afresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from foldline.kernels.half import HALF
from foldline.kernels.registry import Array
from foldline.kernels.ufuncs import UFUNCS, following_recipe
from foldline.lowering.planned_call import PlannedCall
from foldline.lowering.steps import Frame, Run, reader
from foldline.support.errors import FoldlineError

BoundStep = Callable[[], Any]
MOST_COPIED = 1 << 20
"""Bytes of an input that are copied so that its step can be bound: 25 µs where the views of a first
convolution take 130."""


class PlanBroken(FoldlineError):
    """Never seen outside: a shape is not what the plan relies on, so the run must start again."""


def bound_to_a_copy(
    frame: Frame,
    slots: Sequence[int],
    bind: Callable[..., BoundStep],
    plain: Callable[..., Any],
    made: list[tuple[Array, BoundStep]],
) -> None:
    """Compute on a copy of what moves, the first input, if copying takes less time than views do.

    `made` is that copy and the step that is bound to it, from the first run on.
    """
    x, *others = [frame[slot] for slot in slots]
    if x.nbytes > MOST_COPIED:
        plain(x, *others)
        return
    if not made:
        copy = np.empty(x.shape, x.dtype)
        made.append((copy, bind(copy, *others)))
    ((copy, compute),) = made
    np.copyto(copy, x)
    compute()


def allocating(planned: PlannedCall, run: Callable[..., Any]) -> Run:
    """Run, store the results, and see that they have the shapes the plan was made for."""
    call, shapes = planned.call, planned.shapes
    compute = reading(run, call.inputs)
    expected = tuple(zip(call.results, shapes, strict=True))
    first, shape = expected[0]
    second, second_shape = expected[-1]

    def run_and_check_one(frame: Frame) -> None:
        value = compute(frame)
        if type(value) is np.ndarray and value.flags.c_contiguous:
            frame[first] = value
        else:
            call.store(frame, value)
        if frame[first].shape != shape:
            raise PlanBroken

    def run_and_check_two(frame: Frame) -> None:
        # A kernel may give more than the node has names for.
        one, two, *_ = compute(frame)
        are_arrays = type(one) is np.ndarray and type(two) is np.ndarray
        if are_arrays and one.flags.c_contiguous and two.flags.c_contiguous:
            frame[first], frame[second] = one, two
        else:
            call.store(frame, (one, two))
        if frame[first].shape != shape or frame[second].shape != second_shape:
            raise PlanBroken

    def run_and_check(frame: Frame) -> None:
        for (slot, shape), result in zip(expected, compute(frame), strict=False):
            if type(result) is not np.ndarray or not result.flags.c_contiguous:
                result = call.settled(result, frame)
            frame[slot] = result
            if result.shape != shape:
                raise PlanBroken

    # To go over two results takes twice the time of naming them.
    return {1: run_and_check_one, 2: run_and_check_two}.get(len(expected), run_and_check)


def ufunc_of(run: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any] | None:
    """What a kernel comes down to, as `bound_ufuncs` has it, where arrays move."""
    return None if dtype == HALF else UFUNCS.get(run) or following_recipe(run, dtype)


def reading(run: Callable[..., Any], slots: Sequence[int]) -> Run:
    """`run` on what is in slots of a frame."""
    if len(slots) == 1:
        (only,) = slots
        return lambda frame: run(frame[only])
    read = reader(slots)
    return lambda frame: run(*read(frame))
