"""A state of a compile that can be shown again: before a step, or after some of its changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from foldline.stages.gate import Admits, Application, Gate, everything
from foldline.stages.observers import StepRun
from foldline.stages.run import PipelineRun
from foldline.workbench.why import Past


@dataclass(frozen=True, eq=False)
class Ahead:
    """The state before a step, and what the step will do."""

    run: PipelineRun
    """Never advanced, only copied; its observers look on when the whole step runs."""
    admits: Admits = everything
    """What the step may do."""
    past: tuple[Past, ...] = ()
    """All changes before the step."""

    @property
    def module(self) -> ModuleOp:
        """The module before the step."""
        return self.run.context.module

    @property
    def due(self) -> StepRun | None:
        """The step; None at the end."""
        return self.run.due

    @cached_property
    def _whole(self) -> tuple[PipelineRun, list[Application]]:
        run, gate = self.run.copied(self.run.observers), Gate(self.admits)
        run.advance(gate)
        return run, gate.applications

    @property
    def changes(self) -> list[Application]:
        """What the step changes, in order."""
        return [] if self.due is None else self._whole[1]

    def after(self) -> Ahead:
        """The state before the next step."""
        return Ahead(self._whole[0], past=self.past + self.made(len(self.changes)))

    def made(self, done: int) -> tuple[Past, ...]:
        """The first changes of the step."""
        if self.due is None:
            return ()
        return tuple(Past(self.due.stage, change) for change in self.changes[:done])

    def cut(self, done: int) -> PipelineRun:
        """The state after so many changes of the step."""
        if not done:
            return self.run
        run, last = self.run.copied(), self.changes[done - 1].number
        run.advance(Gate(lambda number, name, op: number <= last and self.admits(number, name, op)))
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
