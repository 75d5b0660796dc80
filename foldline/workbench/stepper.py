"""The engine of `foldline step`: a compile that goes on when told, and back.

    step    what the pipeline runs at once: a pass, or passes that share a traversal
    change  one application of a pass or rule inside a step

A step is never left half done in place. To stand after its k-th change, a copy from before the step
is run with a gate that lets k changes through; so every state can be shown again, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from foldline.checking import CheckResult, check
from foldline.compiler import imported
from foldline.importer import Source, blamed_on, import_function
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.gate import Application
from foldline.stages.observers import StepRun, Verify
from foldline.stages.rewrite.transform import Transform
from foldline.stages.run import PipelineRun, Place
from foldline.support.errors import InvalidArgumentError
from foldline.support.options import resolve
from foldline.support.passes import PASSES
from foldline.support.suggest import did_you_mean
from foldline.workbench.breakpoints import Breakpoint, first_hit
from foldline.workbench.difference import Difference, difference
from foldline.workbench.stops import Ahead, Stop
from foldline.workbench.why import Past

STOPPED = "stopped before"
MOST_STOPS = 100
"""So many stops can be undone; each holds a module, though not its tensors."""


@dataclass
class Stepper:
    """Stops in order, the last of which is where one stands."""

    original: ModuleOp
    """The model as imported; only read."""
    stops: list[Stop]
    breakpoints: list[Breakpoint] = field(default_factory=list[Breakpoint])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As the user gave them."""
    forgotten: int = 0
    """So many stops were dropped, to which undo cannot reach."""

    @classmethod
    def of(
        cls, model: Source, options: Mapping[str, Any], rules: Sequence[Transform] = ()
    ) -> Stepper:
        """A stepper that stands before the first step. Raises what a compile raises."""
        resolved = resolve(options)
        with blamed_on(model):
            module = imported(model, resolved)
        original = module.clone()
        context = PassContext(module, resolved, rules=tuple(rules))
        run = PipelineRun(context, observers=(Verify(),))
        return cls(original, [Stop(Ahead(run), 0, "the model as imported")], options=dict(options))

    @property
    def here(self) -> Stop:
        """Where one stands."""
        return self.stops[-1]

    @property
    def number(self) -> int:
        """The number of the stop where one stands, from 1."""
        return self.forgotten + len(self.stops)

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left to do."""
        return self.here.due is None

    def change(self) -> None:
        """Make one change: the next that any pass or rule would make."""
        ahead, done = self.here.ahead, self.here.done
        while ahead.due is not None and done >= len(ahead.changes):
            ahead, done = ahead.after(), 0
        if ahead.due is None:
            self._go(ahead)
            return
        made = ahead.changes[done]
        self._go(ahead, done + 1, f"after {ahead.due.stage}/{made.pass_name}")

    def step(self) -> None:
        """Run the step that is due to its end."""
        if not self.is_at_end:
            self._go(self.here.ahead.after())

    def stage(self) -> None:
        """Run to the next stage."""
        here = self.here.due
        self.until(lambda due: here is None or due.stage != here.stage)

    def until(self, holds: Callable[[StepRun], bool]) -> bool:
        """Run whole steps until `holds(due)`; False where the end came first."""
        ahead = self.here.ahead
        while ahead.due is not None:
            ahead = ahead.after()
            if ahead.due is not None and holds(ahead.due):
                break
        self._go(ahead)
        return ahead.due is not None

    def until_named(self, name: str) -> None:
        """Run until a stage, a pass or rule, or `stage/pass`, is due.

        Of passes that share a step, to its first change in it. Raises InvalidArgumentError where
        it is not ahead: it has run, or is off.
        """
        stage, _, last = name.rpartition("/")
        ahead = [line.partition("/")[::2] for line in self.ahead()]
        run = self.here.ahead.run
        if not stage and last in (known.name for known in run.stages):
            here = self.here.due
            if here is None or not any(s == last != here.stage for s, _ in ahead):
                raise InvalidArgumentError(f"the stage {last} is not ahead")
            self.until(lambda due: due.stage == last)
            return
        known = [*PASSES, *(rule.name for rule in run.context.rules)]
        if last not in known:
            stages = [stage.name for stage in run.stages]
            hint = did_you_mean(last, [*known, *stages])
            raise InvalidArgumentError(f"{name!r} is no pass and no stage{hint}")
        if not any(p == last and stage in ("", s) for s, p in ahead):
            raise InvalidArgumentError(f"{name} is not ahead: it has run, or is off")
        self._until_pass(stage, last)

    def _until_pass(self, stage: str, name: str) -> None:
        """Go to the pass; in the step that is due, if a change of it is ahead there."""
        ahead, start = self.here.ahead, self.here.done
        # Who was brought before a change of the pass goes on to the next.
        start += int(self.here.due is not None and self.here.why == _before(self.here.due, name))
        while (due := ahead.due) is not None:
            if name in due.passes and stage in ("", due.stage):
                mine = [i for i, made in enumerate(ahead.changes) if made.pass_name == name]
                later = [index for index in mine if index >= start]
                if later or ahead is not self.here.ahead:
                    why = _before(due, name) + ("" if mine else ", which changes nothing")
                    self._go(ahead, later[0] if later else 0, why)
                    return
            ahead, start = ahead.after(), 0
        raise InvalidArgumentError(f"{name} is not ahead: it makes no more changes")

    def resume(self, points: Sequence[Breakpoint] | None = None) -> Breakpoint | None:
        """Run until a change that a breakpoint is about is next; None where the end came first.

        `points` are asked in place of those that are set.
        """
        points = self.breakpoints if points is None else points
        ahead, start = self.here.ahead, self.here.done
        # Who stands before a change that was stopped at goes on behind it.
        start += int(self.here.why.startswith(STOPPED))
        while ahead.due is not None:
            hit = first_hit(points, ahead.changes, start) if points else None
            if hit is not None:
                index, point = hit
                made = ahead.changes[index]
                self._go(ahead, index, f"{STOPPED} {ahead.due.stage}/{made.pass_name} ({point})")
                return point
            ahead, start = ahead.after(), 0
        self._go(ahead)
        return None

    def undo(self) -> bool:
        """Go back to the stop before, which is as it was shown; False at the first."""
        if len(self.stops) < 2:
            return False
        self.stops.pop()
        return True

    def since(self, steps_back: int = 1) -> Difference:
        """What is different since an earlier stop, by default the one before."""
        index = max(len(self.stops) - 1 - steps_back, 0)
        return difference(self.stops[index].module, self.here.module, inferred=True)

    def since_start(self) -> Difference:
        """What is different from the model as imported."""
        return difference(self.original, self.here.module)

    def next_change(self) -> Application | None:
        """The change that would be made next in the step that is due; None if it makes none."""
        stop = self.here
        return stop.changes[stop.done] if stop.done < len(stop.changes) else None

    def past(self) -> tuple[Past, ...]:
        """All changes up to here."""
        here = self.here
        return here.ahead.past + here.ahead.made(here.done)

    def ahead(self) -> list[str]:
        """The passes that have not run yet, as `stage/pass`."""
        run = self.here.ahead.run
        if run.due is None:
            return []
        return [
            f"{stage.name}/{placed.run.name}"
            for number, stage in enumerate(run.stages)
            for index, step in enumerate(stage.steps)
            if Place(number, index) >= run.place
            for placed in step.placed
            if run.context.options.enabled(placed.run.name)
        ]

    def session(self) -> Session:
        """A session that runs the module as it is here."""
        return _session(self.here.module, self.here.ahead.run)

    def compare(self, inputs: Mapping[str, Any] | None, rtol: float | None) -> CheckResult:
        """Run the model here and as imported, and compare."""
        return check(
            _session(self.original, self.here.ahead.run), self.session(), inputs=inputs, rtol=rtol
        )

    def _go(self, ahead: Ahead, done: int = 0, why: str = "") -> None:
        if self.is_at_end:
            return
        where = "the end" if ahead.due is None else f"before {ahead.due.title}"
        self.stops.append(Stop(ahead, done, why or where))
        if len(self.stops) > MOST_STOPS:
            self.forgotten += 1
            del self.stops[0]


def _before(due: StepRun, name: str) -> str:
    return f"before {due.stage}/{name}"


def _session(module: ModuleOp, run: PipelineRun) -> Session:
    mode = str(run.context.options["mode"])
    return Session(lower(module, grades=GRADES[mode], read_function=import_function))
