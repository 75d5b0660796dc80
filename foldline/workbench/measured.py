"""A run for the report: the memory plan for the shapes of its inputs, the time of each step."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from foldline.lowering.specialise import Plan
from foldline.session import Session

PROFILED_RUNS = 10


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
    """Seconds of a run that is not timed step by step, and of each step of the plan.

    Steps stand in the order in which those of their name first began.
    """
    found = session.profile(feed, PROFILED_RUNS)
    started = {each.name: each.start for each in reversed(found.slices)}
    steps = sorted(found.steps, key=lambda step: started.get(step.node, inf))
    return {
        "planned": found.plain_seconds,
        "steps": [[step.node, step.seconds] for step in steps],
    }
