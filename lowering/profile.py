"""How long each step of a plan takes: the very steps that run, timed one by one.

A step is timed by two readings of the clock, about 0.1 µs; what else the recording costs falls
between the steps. `Profile.overhead` says how much longer the runs were than those without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from foldline.kernels.parallel import watch_tiles
from foldline.lowering.bodies import PLAN_AFTER
from foldline.lowering.flops import flops_of
from foldline.lowering.instances import watch_steps
from foldline.lowering.steps import BoundCall, Frame, is_array

RUNS_TO_PLAN = PLAN_AFTER + 2
"""After so many runs on the same inputs everything has its plan that will have one."""


@dataclass(frozen=True)
class StepTime:
    """What one call of the program, or of a body, took in a run."""

    operator: str
    node: str
    """Operator and node, as in messages."""
    kernel: str
    calls: float
    """How often it ran in a run."""
    seconds: float
    """Of all its calls in a run, on average; without what its bodies took."""
    bytes: int
    """Of the tensors it reads and writes, in one call."""
    flops: int | None
    """In one call; None where its operator has no count."""

    @property
    def gflops(self) -> float | None:
        """10^9 operations a second."""
        if not self.flops or not self.seconds:
            return None
        return self.flops * self.calls / self.seconds / 1e9


@dataclass(frozen=True)
class Slice:
    """A stretch of time in which a thread was busy with something."""

    name: str
    kind: str
    thread: int
    start: float
    seconds: float


@dataclass(frozen=True)
class Profile:
    """Times of the steps of a model on some inputs."""

    steps: tuple[StepTime, ...]
    """The slowest first."""
    runs: int
    seconds: float
    """Of a run that was profiled: the median."""
    plain_seconds: float
    """Of a run that was not."""
    slices: tuple[Slice, ...] = field(repr=False)
    """All steps, and tiles of the thread pool, of the last run."""

    @property
    def overhead(self) -> float:
        """How much longer a profiled run was, as a part of one that was not."""
        return self.seconds / self.plain_seconds - 1 if self.plain_seconds else 0.0

    def by_kernel(self) -> list[tuple[str, float, float]]:
        """Kernel, calls and seconds in a run; the slowest first."""
        totals: dict[str, tuple[float, float]] = {}
        for step in self.steps:
            calls, seconds = totals.get(step.kernel, (0.0, 0.0))
            totals[step.kernel] = calls + step.calls, seconds + step.seconds
        rows = [(kernel, *total) for kernel, total in totals.items()]
        return sorted(rows, key=lambda row: -row[2])

    def trace(self) -> dict[str, Any]:
        """The last run in the trace event format, which Perfetto and chrome://tracing read."""
        first = min((each.start for each in self.slices), default=0.0)
        threads = {
            thread: i for i, thread in enumerate(dict.fromkeys(s.thread for s in self.slices))
        }
        names: list[dict[str, Any]] = [
            {
                "name": "thread_name",
                "ph": "M",
                "pid": 0,
                "tid": number,
                "args": {"name": f"tiles {number}" if number else "run"},
            }
            for number in threads.values()
        ]
        events = [
            {
                "name": each.name,
                "cat": each.kind,
                "ph": "X",
                "ts": (each.start - first) * 1e6,
                "dur": each.seconds * 1e6,
                "pid": 0,
                "tid": threads[each.thread],
            }
            for each in self.slices
        ]
        return {"traceEvents": [*names, *events], "displayTimeUnit": "ms"}


@dataclass
class _Row:
    call: BoundCall
    bytes: int
    flops: int | None
    calls: int = 0
    seconds: float = 0.0


class Recorder:
    """Times what runs on the thread that enters it; one run after another."""

    def __init__(self) -> None:
        self.runs: list[float] = []
        self._rows: dict[int, _Row] = {}
        self._slices: list[tuple[str, str, int, float, float]] = []
        self._nested = 0.0
        """What bodies took within the step that runs, their recording included."""

    def run(self, body: Callable[[], Any]) -> None:
        """Run and record; only the last run is kept in full."""
        self._slices.clear()
        with watch_steps(self._steps), watch_tiles(self._tile):
            start = perf_counter()
            body()
            self.runs.append(perf_counter() - start)

    def profile(self, plain_seconds: float) -> Profile:
        """What was recorded, beside the seconds of a run that was not."""
        runs = len(self.runs)
        steps = [_step_time(row, runs) for row in self._rows.values()]
        return Profile(
            tuple(sorted(steps, key=lambda step: -step.seconds)),
            runs,
            sorted(self.runs)[runs // 2],
            plain_seconds,
            tuple(Slice(*each) for each in self._slices),
        )

    def _steps(
        self, calls: Sequence[BoundCall], steps: Iterator[Callable[[], Any]], frame: Frame
    ) -> None:
        thread = threading.get_ident()
        around, entered = self._nested, perf_counter()
        last: BoundCall | None = None
        # The calls are asked for first, so that `steps` is never ahead of them.
        for call, step in zip(calls, steps, strict=True):
            self._nested = 0.0
            start = perf_counter()
            step()
            seconds = perf_counter() - start
            row = self._rows.get(id(call)) or self._row(call, frame)
            row.seconds += seconds - self._nested
            # A call may be several steps: some ufuncs, and the dropping of what dies.
            row.calls += call is not last
            self._slices.append((call.where, "step", thread, start, seconds))
            last = call
        self._nested = around + perf_counter() - entered

    def _row(self, call: BoundCall, frame: Frame) -> _Row:
        inputs = [frame[slot] for slot in call.inputs]
        results = [frame[slot] for slot in call.results]
        moved = sum(x.nbytes for x in (*inputs, *results) if is_array(x))
        operator = call.kernel.domain, call.kernel.op_type
        flops = flops_of(operator, _shapes(inputs), _shapes(results), call.keywords)
        row = self._rows[id(call)] = _Row(call, moved, flops)
        return row

    def _tile(self, start: float, end: float) -> None:
        self._slices.append(("tile", "tile", threading.get_ident(), start, end - start))


def _shapes(values: Sequence[Any]) -> list[tuple[int, ...] | None]:
    return [value.shape if is_array(value) else None for value in values]


def _step_time(row: _Row, runs: int) -> StepTime:
    kernel = row.call.kernel
    operator = f"{kernel.domain}.{kernel.op_type}" if kernel.domain else kernel.op_type
    return StepTime(
        operator,
        row.call.where,
        kernel.where,
        row.calls / runs,
        row.seconds / runs,
        row.bytes,
        row.flops,
    )
