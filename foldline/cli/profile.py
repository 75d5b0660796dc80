"""What `foldline run --profile` shows: times of steps and kernels, and memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.output import print_json, print_table, progress, seconds_text

if TYPE_CHECKING:
    from foldline.lowering.memory import Memory
    from foldline.lowering.profile import Profile
    from foldline.session import Session

LEAST_RUNS = 10
"""Runs that are timed, unless more are asked for."""

STEPS = ("step", "kernel", "calls", "time", "%", "MB", "GFLOP/s")
KERNELS = ("kernel", "calls", "time", "%")
PLANS = ("plan", "arena MB", "without reuse MB", "scratch MB")


def show_profile(
    session: Session, feed: Mapping[str, Any], repeat: int, trace: str | None, as_json: bool
) -> None:
    """Profile a session; write the trace, and print tables or JSON."""
    with progress("running"):
        profile = session.profile(feed, max(repeat, LEAST_RUNS))
    if trace is not None:
        Path(trace).write_text(json.dumps(profile.trace()))
    memory = session.memory()
    if as_json:
        print_json({**_profile_json(profile), "memory": asdict(memory)})
        return
    _print_times(profile)
    _print_memory(memory)


def _profile_json(profile: Profile) -> dict[str, Any]:
    steps = [{**asdict(step), "gflops": step.gflops} for step in profile.steps]
    kernels = [
        dict(zip(("kernel", "calls", "seconds"), row, strict=True)) for row in profile.by_kernel()
    ]
    return {
        "runs": profile.runs,
        "seconds": profile.seconds,
        "plain_seconds": profile.plain_seconds,
        "steps": steps,
        "kernels": kernels,
    }


def _print_times(profile: Profile) -> None:
    total = sum(step.seconds for step in profile.steps) or 1.0
    rows = [
        (
            step.node,
            _short(step.kernel),
            f"{step.calls:g}",
            seconds_text(step.seconds),
            f"{100 * step.seconds / total:.1f}",
            f"{step.bytes / 1e6:.3f}",
            "-" if step.gflops is None else f"{step.gflops:.1f}",
        )
        for step in profile.steps
    ]
    print_table("Steps", STEPS, rows, err=False)
    click.echo()
    by_kernel = [
        (_short(kernel), f"{calls:g}", seconds_text(seconds), f"{100 * seconds / total:.1f}")
        for kernel, calls, seconds in profile.by_kernel()
    ]
    print_table("Kernels", KERNELS, by_kernel, err=False)
    click.echo(
        f"\n{profile.runs} runs: {seconds_text(profile.plain_seconds)}, "
        f"profiled {seconds_text(profile.seconds)} ({100 * profile.overhead:+.0f} %)"
    )


def _print_memory(memory: Memory) -> None:
    plans = [(f"graph {i}", each) for i, each in enumerate(memory.plans)]
    plans += [(f"body {i}", each) for i, each in enumerate(memory.bodies)]
    rows = [
        (name, *(f"{size / 1e6:.3f}" for size in (each.arena, each.without_reuse, each.scratch)))
        for name, each in plans
    ]
    click.echo(f"weights: {memory.weights / 1e6:.3f} MB, mapped {memory.mapped / 1e6:.3f} MB")
    print_table("Plans", PLANS, rows, err=False)


def _short(kernel: str) -> str:
    return kernel.removeprefix("foldline.kernels.").replace(".<locals>", "")
