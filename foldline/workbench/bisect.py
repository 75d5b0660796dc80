"""Finds the first pass, and in it the first change, after which a model computes something else.

Outputs are compared with those of the model as imported. What broke stays broken: of two states
the later one is taken to differ wherever the earlier one does, so halving finds the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from foldline.checking import Baseline, Case
from foldline.importer import import_function
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.gate import Application
from foldline.workbench.stepper import Ahead

Compare = Callable[[ModuleOp], Case | None]
"""The first case in which a module differs from the original; None where none does."""
DEFAULT_RTOL = 1e-3
"""Fusions may move last bits, and errors grow along a deep model; what is broken is far above."""


@dataclass(frozen=True)
class Finding:
    """The change that did it."""

    step: str
    """The step it is in, `stage/pass`."""
    change: Application | None
    """None where no single change does it, or the pass raised."""
    case: Case
    """How outputs differ after it."""
    before: ModuleOp
    """The module before the change."""
    after: ModuleOp
    """And with it."""

    @property
    def culprit(self) -> str:
        """The pass or rule."""
        if self.change is None:
            return self.step
        return f"{self.step.partition('/')[0]}/{self.change.pass_name}"

    def __str__(self) -> str:
        change = self.change
        at = f" at {change.op_type} '{change.node}'" if change and change.node else ""
        return f"{self.culprit}{at}: inputs {self.case.name!r}: {self.case.message}"


def comparing(
    original: ModuleOp, mode: str, inputs: Mapping[str, Any] | None, rtol: float | None
) -> Compare:
    """Compares modules with `original`, which is run once on random, edge and given inputs."""
    baseline = Baseline(session_of(original, mode), inputs=inputs)

    def compare(module: ModuleOp) -> Case | None:
        result = baseline.compare(session_of(module, mode), rtol)
        return next((case for case in result.cases if not case.equal), None)

    return compare


def session_of(module: ModuleOp, mode: str) -> Session:
    """A session that runs a module as it is, at whatever stage."""
    return Session(lower(module, grades=GRADES[mode], read_function=import_function))


def find_change(start: Ahead, compare: Compare) -> Finding | None:
    """The change that makes a model differ, from a state that does not; None where none does.

    What a pass raises is raised, as in a compile.
    """
    states = [start]
    while states[-1].due is not None:
        states.append(states[-1].after())
    if compare(_module(states[-1])) is None:
        return None
    last_good = _last(len(states) - 1, lambda index: compare(_module(states[index])) is None)
    return change_in(states[last_good], compare)


def change_in(step: Ahead, compare: Compare) -> Finding:
    """The change of one step, whose beginning does not differ and whose end does."""
    assert step.due is not None, "a step that breaks something is a step"
    name, whole = step.due.name, step.after().run
    changes = step.changes
    done = _last(len(changes) + 1, lambda count: compare(step.cut(count).context.module) is None)
    if done == len(changes):
        case = compare(whole.context.module)
        assert case is not None, "the whole step differs"
        return Finding(name, None, case, step.run.context.module, whole.context.module)
    before, after = (step.cut(count).context.module for count in (done, done + 1))
    case = compare(after)
    assert case is not None, "halving ended behind the last state that does not differ"
    return Finding(name, changes[done], case, before, after)


def _last(count: int, is_good: Callable[[int], bool]) -> int:
    """The last of `count` positions that is good, 0 being good and what follows a bad one bad."""
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good


def _module(state: Ahead) -> ModuleOp:
    return state.run.context.module
