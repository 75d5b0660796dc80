"""Compiles, and compares what the model computes with the original on the way.

    end      once, when all is done
    stages   after each stage; in one that differs, the change is looked for
    passes   after each step of passes
    revert   as passes; what differs or raises is undone, and the compile goes on

To undo a change, the step is run again from before it, with a gate that refuses just that change.
A pass that goes on breaking things is refused as a whole, and at last the step is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from foldline.compiler import CompiledModel, Compiler
from foldline.importer import Source
from foldline.stages.gate import Admits, name_of
from foldline.stages.observers import StepRun
from foldline.stages.rewrite.transform import Transform
from foldline.stages.run import PipelineRun
from foldline.support.debug_options import CheckMode, DebugOptions
from foldline.support.errors import PassFailed
from foldline.support.remarks import Remark
from foldline.workbench.bisect import Finding, change_between, raised_in, runs_alike
from foldline.workbench.caught import Caught
from foldline.workbench.comparison import Comparison
from foldline.workbench.stops import Ahead

MOST_REFUSALS = 16
"""After so many changes of one pass in one step were undone, none is let through."""


class OutputsDiffer(PassFailed):
    """A pass changed what the model computes."""

    def __init__(self, finding: Finding):
        super().__init__(str(finding))
        self.finding = finding
        self.culprit = finding.culprit.partition("/")[2]
        """The pass or rule."""


def compile_checked(
    model: Source,
    *,
    options: Mapping[str, Any] | None = None,
    mode: CheckMode = "stages",
    inputs: Mapping[str, Any] | None = None,
    rtol: float | None = None,
    rules: Sequence[Transform] = (),
    debug: DebugOptions | None = None,
) -> CompiledModel:
    """Compile a model, compared with the original on random, edge and given inputs.

    Without `rtol` what fusions and quantisation explain is allowed (`Comparison`). What `revert`
    undid is a remark each. Raises OutputsDiffer naming the pass and the change in the other modes,
    and what `compile` raises.
    """
    watch = Watch(mode, inputs, rtol)
    return Compiler(rules=rules, drive=watch).compile(model, options=options, debug=debug)


class Watch:
    """Takes a run of the pipeline to its end, as `Compiler(drive=…)` wants it."""

    def __init__(
        self,
        mode: CheckMode,
        inputs: Mapping[str, Any] | None = None,
        rtol: float | None = None,
        original: ModuleOp | None = None,
    ):
        """`original`: what to compare with, where that is not what the run begins with."""
        self.mode = mode
        self._inputs, self._rtol, self._original = inputs, rtol, original
        self.undone: list[Finding] = []
        """What was undone, in order."""

    def __call__(self, run: PipelineRun) -> PipelineRun:
        """Run all steps. Raises OutputsDiffer, and what passes raise."""
        mode = str(run.context.options["mode"])
        original = run.context.module.clone() if self._original is None else self._original
        compare = Comparison(original, mode, self._inputs, self._rtol)
        here, waiting = Ahead(run), list[Ahead]()
        while (due := here.due) is not None:
            if self.mode == "revert":
                here = self._mended(here, compare)
                continue
            waiting.append(here)
            here = here.after()
            if self._is_due(due, here):
                _look(waiting, here, compare)
                waiting = []
        for finding in self.undone:
            here.run.context.remarks.record(_remark(finding))
        return here.run

    def _is_due(self, ran: StepRun, here: Ahead) -> bool:
        """Whether to compare between a step that ran and what is due now."""
        if here.due is None or self.mode == "passes":
            return True
        return self.mode == "stages" and here.due.stage != ran.stage

    def _mended(self, step: Ahead, compare: Comparison) -> Ahead:
        """The state after a step that breaks nothing: with refusals, or without its passes."""
        refusals = _Refusals()
        while (finding := _fault(step, compare)) is not None:
            self.undone.append(finding)
            if not refusals.add(finding):
                return replace(step, run=step.run.without_step())
            step = replace(step, admits=refusals.admits())
        return step.after()


def _look(steps: Sequence[Ahead], end: Ahead, compare: Comparison) -> None:
    """Raise OutputsDiffer if steps changed what the model computes."""
    is_end = end.due is None
    if is_end or any(step.changes for step in steps):
        # A module that cannot run by itself says nothing before the end.
        alike = runs_alike(compare, end.module)
        if alike is False or (alike is None and is_end):
            raise OutputsDiffer(change_between(steps, end, compare))


def _fault(step: Ahead, compare: Comparison) -> Finding | None:
    """What a step breaks, or raises."""
    with Caught() as caught:
        step.after()
    if caught.error is not None:
        return raised_in(step, caught.error)
    after = step.after()
    is_end = after.due is None
    if not step.changes and not is_end:
        return None
    alike = runs_alike(compare, after.module)
    if alike or (alike is None and not is_end):
        return None
    return change_between([step], after, compare)


@dataclass
class _Refusals:
    """What a step may not do, since it broke something: changes, then passes."""

    numbers: set[int] = field(default_factory=set[int])
    nodes: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    passes: set[str] = field(default_factory=set[str])
    counts: Counter[str] = field(default_factory=Counter[str])

    def admits(self) -> Admits:
        """What a gate asks. Refusals of later do not count, as a step is always the same."""
        numbers, nodes, passes = set(self.numbers), set(self.nodes), set(self.passes)

        def may_act(number: int, pass_name: str, op: Operation | None) -> bool:
            if number in numbers or pass_name in passes:
                return False
            return not nodes or op is None or (pass_name, name_of(op)) not in nodes

        return may_act

    def add(self, finding: Finding) -> bool:
        """Refuse what was found; False where nothing is left to be refused."""
        change = finding.change
        if change is None or change.number < 0 or change.pass_name in self.passes:
            return False
        # Who asked before keeps the number; who asks behind is counted anew.
        self.numbers.add(change.number)
        self.counts[change.pass_name] += 1
        if change.node:
            # A pass asks again for what it was refused.
            self.nodes.add((change.pass_name, change.node))
        if self.counts[change.pass_name] > MOST_REFUSALS or not (change.op_type or change.node):
            self.passes.add(change.pass_name)
        return True


def _remark(finding: Finding) -> Remark:
    stage, _, pass_name = finding.culprit.partition("/")
    change = finding.change
    op_type = "" if change is None else change.op_type
    return Remark("note", stage, pass_name, finding.node, op_type, f"undone: {_reason(finding)}")


def _reason(finding: Finding) -> str:
    case = finding.case
    return case.message if finding.error else f"inputs {case.name!r}: {case.message}"
