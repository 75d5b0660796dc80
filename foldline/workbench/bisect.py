"""Finds the first pass, and in it the first change, after which a model computes something else.

Outputs are compared with those of the model as imported. What broke stays broken: of two states
the later one is taken to differ wherever the earlier one does, so halving finds the first. States
inside a step that cannot run by themselves are passed over.

A pass that raises, or leaves a module that does not verify, is found as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from foldline.checking import Case
from foldline.stages.gate import Application, Gate, name_of
from foldline.support.errors import PassFailed, RuleFailed
from foldline.workbench.caught import Caught
from foldline.workbench.comparison import Comparison, DoesNotRun
from foldline.workbench.stops import Ahead

RAISES = "compile"
"""Name of the case of a pass that raises."""


@dataclass(frozen=True)
class Finding:
    """The change that did it."""

    step: Ahead
    """The state before the step it is in."""
    change: Application | None
    """None where no single change does it."""
    case: Case
    """How outputs differ after it."""
    before: ModuleOp
    """The module before the change."""
    after: ModuleOp | None
    """And with it; None where it raises."""
    done: int = 0
    """So many changes of the step are made before it."""
    together: int = 1
    """So many changes, of which it is the last, can only run together."""
    error: Exception | None = None
    """What it raises."""

    @property
    def culprit(self) -> str:
        """The pass or rule, as `stage/pass`."""
        due = self.step.due
        assert due is not None, "a step that breaks something is a step"
        return due.name if self.change is None else f"{due.stage}/{self.change.pass_name}"

    @property
    def node(self) -> str:
        """The node that the change is made at; '' where there is none."""
        return "" if self.change is None else self.change.node

    def __str__(self) -> str:
        change = self.change
        at = f" at {change.op_type} '{change.node}'" if change and change.op_type else ""
        if self.together > 1:
            at += f" (or one of the {self.together - 1} changes before it)"
        where = f"{self.culprit}{at}"
        if self.error is not None:
            return f"{where}: {self.case.message}"
        output = f", output {self.case.output!r}" if self.case.output else ""
        return f"{where}: inputs {self.case.name!r}{output}: {self.case.message}"


def find_change(start: Ahead, compare: Comparison) -> Finding | None:
    """The change that makes a model differ, from a state that does not; None where none does."""
    states = [start]
    with Caught() as caught:
        while states[-1].due is not None:
            states.append(states[-1].after())
    end, error = states[-1], caught.error
    alike = runs_alike(compare, end.module)
    if error is not None and alike is not False:
        return raised_in(end, error)
    if alike:
        return None
    judge = _judge(compare, end)
    good, bad = _halved(len(states) - 1, lambda index: judge(states[index].module))
    return change_between(states[good:bad], states[bad], compare)


def change_between(steps: Sequence[Ahead], end: Ahead, compare: Comparison) -> Finding:
    """The first change of these steps after which a model differs, as it does at the end."""
    points = [(step, done) for step in steps for done in range(len(step.changes) + 1)]
    points.append((end, 0))

    def module(index: int) -> ModuleOp:
        step, done = points[index]
        return step.cut(done).context.module

    judge = _judge(compare, end)
    good, bad = _halved(len(points) - 1, lambda index: judge(module(index)))
    step, done = points[bad]
    is_change = done > 0
    if not is_change:
        # The beginning of a step differs from the end of the one before: it is nobody's change.
        step, done = points[bad - 1]
    after = module(bad)
    return Finding(
        step,
        step.changes[done - 1] if is_change else None,
        differing(compare, after),
        module(good),
        after,
        done=done - is_change,
        together=bad - good,
    )


def raised_in(step: Ahead, error: Exception) -> Finding:
    """The finding of a step that raises: which pass, shown which node."""
    case = Case(RAISES, False, None, float("inf"), f"raises {type(error).__name__}: {error}")
    change = _last_asked(step, error)
    return Finding(step, change, case, step.module, None, error=error)


def differing(compare: Comparison, module: ModuleOp) -> Case:
    """How a module differs; one that does not run is such a case too."""
    try:
        case = compare(module)
    except DoesNotRun as error:
        case = Case("any", False, None, float("inf"), f"it does not run: {error}")
    assert case is not None, "halving ends behind the last state that does not differ"
    return case


def _last_asked(step: Ahead, error: Exception) -> Application | None:
    """Who acted when a step raised; None where it was nobody, or the check behind a stage."""
    if isinstance(error, RuleFailed):
        return Application(-1, error.transform, "", error.node, 0)
    if isinstance(error, PassFailed):
        return None
    asked: list[Application] = []

    def note(number: int, name: str, op: Operation | None) -> bool:
        if not step.admits(number, name, op):
            return False
        kind, node = ("", "") if op is None else (op.name, name_of(op))
        asked[:] = [Application(number, name, kind, node, 0)]
        return True

    with Caught() as again:
        step.run.copied().advance(Gate(note))
    return asked[0] if again.error is not None and asked else None


def runs_alike(compare: Comparison, module: ModuleOp) -> bool | None:
    """Whether a module does not differ; None for one that cannot run by itself."""
    try:
        return compare(module) is None
    except DoesNotRun:
        return None


def _judge(compare: Comparison, end: Ahead) -> Callable[[ModuleOp], bool | None]:
    """As `runs_alike`; but where the end cannot run, what cannot run is what is looked for."""
    if runs_alike(compare, end.module) is None:
        return lambda module: bool(runs_alike(compare, module))
    return lambda module: runs_alike(compare, module)


def _halved(last: int, is_good: Callable[[int], bool | None]) -> tuple[int, int]:
    """The last position that is good and the first that is bad; 0 is good and `last` is bad.

    Positions of which nobody can say are passed over, and may stand between the two.
    """
    good, bad, unknown = 0, last, set[int]()
    while between := [index for index in range(good + 1, bad) if index not in unknown]:
        middle = between[len(between) // 2]
        verdict = is_good(middle)
        if verdict is None:
            unknown.add(middle)
        elif verdict:
            good = middle
        else:
            bad = middle
    return good, bad
