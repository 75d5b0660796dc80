"""A run for the report: the memory plan for the shapes of its inputs, the time of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from foldline.feed import Feed
from foldline.kernels.blas import one_blas_thread
from foldline.kernels.parallel import use_threads
from foldline.lowering.specialise import Plan
from foldline.lowering.steps import BoundCall, Frame
from foldline.session import Session

PROFILED_RUNS = 3
"""Of each step the shortest time counts: what disturbs the machine only ever adds."""


def measured(session: Session, feed: Mapping[str, Any], *, profile: bool) -> dict[str, Any]:
    """Run a model, and say what its plan is; with `profile` also how long each step takes.

    Raises InvalidArgumentError, KernelFailed.
    """
    shapes = {name: [str(v.dtype), *v.shape] for name, v in feed.items() if hasattr(v, "shape")}
    plan = _plan(session, feed)
    return {
        "inputs": shapes,
        "plan": None if plan is None else _plan_json(plan),
        "profile": _profile(session, feed) if profile else None,
    }


def _plan(session: Session, feed: Mapping[str, Any]) -> Plan | None:
    """The plan that the second run of these shapes makes; None where no plan can be."""
    for _ in range(2):
        session.run([], feed)
    pools = session.program.plans()
    return pools[-1].plan if pools else None


def _plan_json(plan: Plan) -> dict[str, Any]:
    """Steps, and the buffers of the arena: first and last step, offset, size, steps that write."""
    buffers: dict[int, dict[str, Any]] = {}
    for index, planned in enumerate(plan.calls):
        for place, is_scratch in ((planned.place, False), (planned.scratch, True)):
            if place is None:
                continue
            held = place.buffer
            row = buffers.setdefault(
                id(held),
                {
                    "start": held.start,
                    "end": min(held.end, len(plan.calls) - 1),
                    "offset": held.offset,
                    "size": held.size,
                    "scratch": is_scratch,
                    "writers": [],
                },
            )
            row["writers"].append(index)
    return {
        "arena_bytes": plan.arena_bytes,
        "buffer_bytes": plan.buffer_bytes,
        "steps": [[planned.call.where, planned.kind] for planned in plan.calls],
        "buffers": list(buffers.values()),
    }


def _profile(session: Session, feed: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds of each call of the main graph, run one by one without the plan."""
    inputs = Feed(session.program.inputs).checked(feed)
    runs = [_timed_run(session, inputs) for _ in range(PROFILED_RUNS)]
    best = [min(taken, key=lambda pair: pair[1]) for taken in zip(*runs, strict=True)]
    planned = min(_seconds(session, feed) for _ in range(PROFILED_RUNS))
    return {"planned": planned, "steps": [list(pair) for pair in best]}


def _seconds(session: Session, feed: Mapping[str, Any]) -> float:
    start = perf_counter()
    session.run([], feed)
    return perf_counter() - start


def _timed_run(session: Session, inputs: Sequence[Any]) -> list[tuple[str, float]]:
    taken: list[tuple[str, float]] = []
    last = perf_counter()

    def observe(call: BoundCall, frame: Frame) -> None:
        nonlocal last
        now = perf_counter()
        taken.append((call.where, now - last))
        last = perf_counter()

    with one_blas_thread(), use_threads(session.threads):
        last = perf_counter()
        session.program.watch(inputs, observe)
    return taken
