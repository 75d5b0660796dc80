"""The engine of `foldline step`: a compile that goes on when told, and back.

    step    what the pipeline runs at once: a pass, or passes that share a traversal
    change  one application of a pass or rule inside a step

A step is never left half done in place. To stand after its k-th change, a copy from before the step
is run with a gate that lets k changes through; so every state can be shown again, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from foldline.checking import CheckResult, check
from foldline.compiler import imported
from foldline.importer import Source, blamed_on, import_function
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.gate import Application, Gate, up_to
from foldline.stages.observers import StepRun
from foldline.stages.rewrite.transform import Transform
from foldline.stages.run import PipelineRun, Place
from foldline.support.errors import InvalidArgumentError
from foldline.support.options import resolve
from foldline.support.passes import PASSES
from foldline.support.suggest import did_you_mean
from foldline.workbench.breakpoints import Breakpoint, first_hit
from foldline.workbench.difference import Difference, difference

STOPPED = "stopped before"
MOST_STOPS = 100
"""So many stops can be undone; each holds a module, though not its tensors."""


@dataclass(frozen=True, eq=False)
class Ahead:
    """The state before a step, and what the step will do."""

    run: PipelineRun
    """Never advanced, only copied."""

    @property
    def due(self) -> StepRun | None:
        """The step; None at the end."""
        return self.run.due

    @cached_property
    def _whole(self) -> tuple[PipelineRun, list[Application]]:
        run, gate = self.run.copied(), Gate()
        run.advance(gate)
        return run, gate.applications

    @property
    def changes(self) -> list[Application]:
        """What the step changes, in order."""
        return [] if self.due is None else self._whole[1]

    def after(self) -> Ahead:
        """The state before the next step."""
        return Ahead(self._whole[0])

    def cut(self, done: int) -> PipelineRun:
        """The state after so many changes of the step."""
        if not done:
            return self.run
        run = self.run.copied()
        run.advance(up_to(self.changes[done - 1].number + 1))
        return run


@dataclass(frozen=True, eq=False)
class Stop:
    """A state that was shown: before a step, or after some of its changes."""

    ahead: Ahead
    done: int = 0
    """Changes of the step that are made."""
    why: str = ""
    """What it stopped for."""

    @cached_property
    def shown(self) -> PipelineRun:
        """The state itself."""
        return self.ahead.cut(self.done)

    @property
    def due(self) -> StepRun | None:
        """The step that is to be run, or to be gone on with; None at the end."""
        return self.ahead.due

    @property
    def changes(self) -> list[Application]:
        """What the step that is due changes, from its beginning."""
        return self.ahead.changes

    @property
    def module(self) -> ModuleOp:
        """The module as it is here."""
        return self.shown.context.module


@dataclass
class Stepper:
    """Stops in order, the last of which is where one stands."""

    original: ModuleOp
    """The model as imported; only read."""
    stops: list[Stop]
    breakpoints: list[Breakpoint] = field(default_factory=list[Breakpoint])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As the user gave them."""
    forgotten: bool = False
    """Whether stops were dropped, so that undo cannot reach the beginning."""

    @classmethod
    def of(
        cls, model: Source, options: Mapping[str, Any], rules: Sequence[Transform] = ()
    ) -> Stepper:
        """A stepper that stands before the first step. Raises what a compile raises."""
        resolved = resolve(options)
        with blamed_on(model):
            module = imported(model, resolved)
        original = module.clone()
        run = PipelineRun(PassContext(module, resolved, rules=tuple(rules)))
        return cls(original, [Stop(Ahead(run), 0, "the model as imported")], options=dict(options))

    @property
    def here(self) -> Stop:
        """Where one stands."""
        return self.stops[-1]

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

    def until_pass(self, name: str) -> bool:
        """Run until the pass `name`, or `stage/name`, is due. Raises InvalidArgumentError."""
        stage, _, pass_name = name.rpartition("/")
        if pass_name not in PASSES:
            raise InvalidArgumentError(
                f"{pass_name!r} is not a pass{did_you_mean(pass_name, PASSES)}"
            )
        return self.until(lambda due: pass_name in due.passes and stage in ("", due.stage))

    def resume(self) -> Breakpoint | None:
        """Run until a change that a breakpoint is about is next; None where the end came first."""
        ahead, start = self.here.ahead, self.here.done
        # Who stands before a change that was stopped at goes on behind it.
        start += int(self.here.why.startswith(STOPPED))
        while ahead.due is not None:
            hit = first_hit(self.breakpoints, ahead.changes, start) if self.breakpoints else None
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
        where = "the end" if ahead.due is None else f"before {ahead.due.title}"
        self.stops.append(Stop(ahead, done, why or where))
        if len(self.stops) > MOST_STOPS:
            self.forgotten = True
            del self.stops[0]


def _session(module: ModuleOp, run: PipelineRun) -> Session:
    mode = str(run.context.options["mode"])
    return Session(lower(module, grades=GRADES[mode], read_function=import_function))
