"""Runs the pipeline: which passes are on, in which order, watched by observers."""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp

from foldline.stages.context import PassContext, PassOptions
from foldline.stages.driver.traversal import PassCost, Traversal
from foldline.stages.gate import Gate
from foldline.stages.observers import Observer, StepRun, Verify
from foldline.stages.pass_base import NodePass, Pass
from foldline.stages.pipeline import PIPELINE
from foldline.stages.rewrite.stage_step import run_rewriting
from foldline.stages.rewrite.transform import Transform
from foldline.stages.stage import Stage, Step
from foldline.support.errors import InvalidArgumentError
from foldline.support.progress import tell
from foldline.support.report import NO_PASSES, PassRow, Report
from foldline.support.suggest import did_you_mean


def run_pipeline(
    module: ModuleOp,
    options: PassOptions,
    *,
    observers: Sequence[Observer] = (),
    stop_after: str | None = None,
    start_at: str | None = None,
    verify: bool = True,
    stages: Sequence[Stage] = PIPELINE,
    rules: Sequence[Transform] = (),
) -> Report:
    """Run the stages from `start_at` to `stop_after` on a module, in place.

    `rules` are transforms of the user that run among those of the fusion stage.

    Raises InvalidArgumentError for a stage that does not exist, InvalidModel for a node that
    cannot be typed, KernelFailed for a kernel that raised, PassFailed for IR that a pass broke
    (found after each stage, unless `verify` is off).
    """
    run = prepared(
        PassContext(module, options, rules=tuple(rules)),
        observers=observers,
        stop_after=stop_after,
        start_at=start_at,
        verify=verify,
        stages=stages,
    )
    return to_the_end(run).report


def to_the_end(run: PipelineRun) -> PipelineRun:
    """Run all steps that are left."""
    while run.due is not None:
        run.advance()
    return run


def prepared(
    context: PassContext,
    *,
    observers: Sequence[Observer] = (),
    stop_after: str | None = None,
    start_at: str | None = None,
    verify: bool = True,
    stages: Sequence[Stage] = PIPELINE,
) -> PipelineRun:
    """A run that stands before its first step; `run_pipeline` says what it takes and raises."""
    first, last = _position(stages, start_at, 0), _position(stages, stop_after, len(stages) - 1)
    watching = (Verify(), *observers) if verify else tuple(observers)
    return PipelineRun(context, observers=watching, stages=stages[: last + 1], start=Place(first))


def _position(stages: Sequence[Stage], name: str | None, otherwise: int) -> int:
    names = [stage.name for stage in stages]
    if name is None:
        return otherwise
    if name not in names:
        raise InvalidArgumentError(f"{name!r} is not a stage{did_you_mean(name, names)}")
    return names.index(name)


@contextmanager
def _gc_paused() -> Generator[None]:
    """No cyclic collections: they cost a quarter of the time, and IR is reachable anyway."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True, order=True)
class Place:
    """Where a step stands: the position of its stage, and its own in the stage, from 0."""

    stage: int
    step: int = 0


class PipelineRun:
    """A run of the pipeline that stands still before each step.

    What raises leaves it as it was left, and no step is due any more.
    """

    def __init__(
        self,
        context: PassContext,
        *,
        observers: Sequence[Observer] = (),
        stages: Sequence[Stage] = PIPELINE,
        start: Place = Place(0),
        report: Report | None = None,
    ):
        """Go to the first step at `start` or behind it; with `report`, to go on with that."""
        self.context = context
        self.observers = tuple(observers)
        self.stages = tuple(stages)
        self.due: StepRun | None = None
        """The step that `advance` runs; None at the end."""
        self.place = start
        """Where the step that is due stands."""
        self._report = report or Report()
        self._steps = self._walk(start, is_new=report is None)
        with self._timed():
            self.due = next(self._steps, None)

    @property
    def report(self) -> Report:
        """What was done so far."""
        context, report = self.context, self._report
        report.remarks = list(context.remarks)
        report.bounds = context.bounds
        report.rewrites = context.rewrites
        report.engines = context.engines.rows
        report.marks = [row for _, row in sorted(context.rewriter.marks.items())]
        return report

    def advance(self, gate: Gate | None = None) -> None:
        """Run the step that is due, and go to the next.

        `gate` is asked by all that the step does; what it refuses is a bound that was reached.
        """
        self.context.gate = gate
        self.due = None
        with self._timed():
            self.due = next(self._steps, None)
        self.context.gate = None

    def copied(self, observers: Sequence[Observer] = ()) -> PipelineRun:
        """A run that stands where this one does, with a module of its own."""
        return PipelineRun(
            self.context.copied(),
            observers=observers,
            stages=self.stages,
            start=self.place,
            report=replace(self.report, rows=list(self._report.rows)),
        )

    def without_step(self) -> PipelineRun:
        """A copy that stands behind the step that is due, which has not run; it is a bound."""
        assert self.due is not None, "a step is due"
        context, place = self.context.copied(), self.place
        context.bounds.append(f"{self.due.name}: left out")
        return PipelineRun(
            context,
            observers=self.observers,
            stages=self.stages,
            start=Place(place.stage, place.step + 1),
            report=replace(self.report, rows=list(self._report.rows)),
        )

    def _walk(self, start: Place, is_new: bool) -> Generator[StepRun]:
        """The steps, each before it runs; `is_new`: the stage that they begin in begins."""
        if is_new:
            for observer in self.observers:
                observer.before_pipeline(self.context)
        for number, stage in enumerate(self.stages[start.stage :], start.stage):
            first = start.step if number == start.stage else 0
            if is_new or number > start.stage:
                self._begin(stage, number + 1)
            for index, step in enumerate(stage.steps[first:], first):
                passes = self._enabled(step)
                if passes or (step.kind == "rewriting" and self.context.rules):
                    before = sum(len(earlier.placed) for earlier in stage.steps[:index])
                    names = tuple(p.name for p in passes)
                    due = StepRun(stage.name, number + 1, before + 1, names)
                    self.place = Place(number, index)
                    yield due
                    self._step(step, passes, due)
            self.place = Place(number, len(stage.steps))
            self._end(stage, number + 1)

    def _enabled(self, step: Step) -> list[Pass]:
        return [p.run for p in step.placed if self.context.options.enabled(p.run.name)]

    def _begin(self, stage: Stage, number: int) -> None:
        self.context.stage = stage.name
        self.context.declined.clear()
        for observer in self.observers:
            observer.before_stage(stage, number, self.context)

    def _end(self, stage: Stage, number: int) -> None:
        rows = self._report.rows
        if not any(row.stage == stage.name for row in rows):
            nodes = self.context.rewriter.nodes
            rows.append(PassRow(stage.name, NO_PASSES, nodes, nodes, 0.0))
        with _Failure(stage.name, self):
            for observer in self.observers:
                observer.after_stage(stage, number, self.context)

    def _step(self, step: Step, passes: Sequence[Pass], running: StepRun) -> None:
        context = self.context
        earlier = sum(len(stage.steps) for stage in self.stages[: self.place.stage])
        total = sum(len(stage.steps) for stage in self.stages)
        tell(running.title, earlier + self.place.step, total)
        for observer in self.observers:
            observer.before_pass(running, context)
        before, start = context.rewriter.nodes, perf_counter()
        with _Failure(running.name, self):
            costs = _run_step(step, [p.configured(context.options) for p in passes], context)
        # Before the stage may end: what is left out may be what it promises.
        if context.gate is not None and context.gate.refused:
            context.bounds.append(f"{running.name}: {context.gate.refused} were not let through")
        seconds = perf_counter() - start
        for cost in costs:
            after = before + cost.nodes
            row = PassRow(running.stage, cost.name, before, after, cost.seconds, cost.changes)
            self._report.rows.append(row)
            before += cost.nodes
        changed = tuple(cost.name for cost in costs if cost.changes)
        finished = replace(running, changed=changed, seconds=seconds)
        with _Failure(running.name, self):
            for observer in self.observers:
                observer.after_pass(finished, context)

    @contextmanager
    def _timed(self) -> Generator[None]:
        start = perf_counter()
        try:
            with _gc_paused():
                yield
        finally:
            self._report.seconds += perf_counter() - start


def _run_step(step: Step, passes: Sequence[Pass], context: PassContext) -> list[PassCost]:
    """Run the passes of a step; what each of them cost and did."""
    if step.kind == "rewriting":
        return run_rewriting(context, passes)
    if step.kind == "traversal":
        nodes = [p for p in passes if isinstance(p, NodePass)]
        traversal = Traversal(context, [p.visitor(context) for p in nodes])
        traversal.run()
        return traversal.costs
    rewriter = context.rewriter
    costs: list[PassCost] = []
    for graph_pass in passes:
        nodes, changes, start = rewriter.nodes, rewriter.changes, perf_counter()
        context.act(graph_pass.name, None, partial(graph_pass.run, context))
        seconds = perf_counter() - start
        costs.append(
            PassCost(graph_pass.name, seconds, rewriter.nodes - nodes, rewriter.changes - changes)
        )
    return costs


class _Failure:
    """Tells observers where an exception comes from, and notes it on the exception."""

    def __init__(self, where: str, run: PipelineRun):
        self.where, self.run = where, run

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        ran = [f"{row.stage}/{row.name}" for row in self.run.report.rows]
        error.add_note(f"while {self.where} ran; before it: {', '.join(ran) or 'nothing'}")
        for observer in self.run.observers:
            observer.after_failure(self.where, self.run.context)
