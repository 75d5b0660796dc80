"""Runs the pipeline: which passes are on, in which order, watched by observers."""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp

from foldline.stages.context import PassContext, PassOptions
from foldline.stages.driver.traversal import PassCost, Traversal
from foldline.stages.observers import Observer, StepRun, Verify
from foldline.stages.pass_base import NodePass, Pass
from foldline.stages.pipeline import PIPELINE
from foldline.stages.rewrite.stage_step import run_rewriting
from foldline.stages.rewrite.transform import Transform
from foldline.stages.stage import Stage, Step
from foldline.support.errors import InvalidArgumentError
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
    first, last = _position(stages, start_at, 0), _position(stages, stop_after, len(stages) - 1)
    watching = (Verify(), *observers) if verify else tuple(observers)
    run = _Run(PassContext(module, options, rules=tuple(rules)), watching)
    start = perf_counter()
    with _gc_paused():
        for observer in watching:
            observer.before_pipeline(run.context)
        for number, stage in enumerate(stages[first : last + 1], first + 1):
            run.stage(stage, number)
    run.report.seconds = perf_counter() - start
    run.report.remarks = list(run.context.remarks)
    run.report.bounds = run.context.bounds
    run.report.rewrites = run.context.rewrites
    run.report.engines = run.context.engines.rows
    marks = run.context.rewriter.marks
    run.report.marks = [marks[source] for source in sorted(marks)]
    return run.report


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


@dataclass
class _Run:
    context: PassContext
    observers: tuple[Observer, ...]
    report: Report = field(default_factory=Report)

    def stage(self, stage: Stage, number: int) -> None:
        """Run a stage and add its rows."""
        context = self.context
        context.stage = stage.name
        context.declined.clear()
        for observer in self.observers:
            observer.before_stage(stage, number, context)
        position = 1
        for step in stage.steps:
            passes = [p.run for p in step.placed if context.options.enabled(p.run.name)]
            if passes or (step.kind == "rewriting" and context.rules):
                configured = [p.configured(context.options) for p in passes]
                names = tuple(p.name for p in passes)
                self._step(step, configured, StepRun(stage.name, number, position, names))
            position += len(step.placed)
        if not any(row.stage == stage.name for row in self.report.rows):
            nodes = context.rewriter.nodes
            self.report.rows.append(PassRow(stage.name, NO_PASSES, nodes, nodes, 0.0))
        with _Failure(stage.name, self):
            for observer in self.observers:
                observer.after_stage(stage, number, context)

    def _step(self, step: Step, passes: Sequence[Pass], running: StepRun) -> None:
        context = self.context
        for observer in self.observers:
            observer.before_pass(running, context)
        before, start = context.rewriter.nodes, perf_counter()
        with _Failure(running.name, self):
            costs = _run_step(step, passes, context)
        seconds = perf_counter() - start
        for cost in costs:
            after = before + cost.nodes
            row = PassRow(running.stage, cost.name, before, after, cost.seconds, cost.changes)
            self.report.rows.append(row)
            before += cost.nodes
        changed = tuple(cost.name for cost in costs if cost.changes)
        finished = replace(running, changed=changed, seconds=seconds)
        with _Failure(running.name, self):
            for observer in self.observers:
                observer.after_pass(finished, context)


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
        graph_pass.run(context)
        seconds = perf_counter() - start
        costs.append(
            PassCost(graph_pass.name, seconds, rewriter.nodes - nodes, rewriter.changes - changes)
        )
    return costs


class _Failure:
    """Tells observers where an exception comes from, and notes it on the exception."""

    def __init__(self, where: str, run: _Run):
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
