"""Observers: who looks on while stages run. They change nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TextIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

from foldline.dialects.onnx.op import describe
from foldline.dialects.onnx.tensor import SideFile, side_file
from foldline.dialects.onnx.verifier import verify_model
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.stage import Stage
from foldline.support.errors import InvalidModel, PassFailed

TENSORS = "tensors.npz"
"""Name of the file with large tensors beside dumps."""

SHOWN_PASSES = 3
"""Of a step of more passes, a title names the first."""

_time_log = logging.getLogger("foldline.time")


@dataclass(frozen=True)
class StepRun:
    """A step that runs or has run."""

    stage: str
    stage_number: int
    """Position of the stage, from 1."""
    position: int
    """Position of the step's first pass in the stage, from 1."""
    passes: tuple[str, ...]
    changed: tuple[str, ...] = ()
    """Passes that changed something; empty before the step has run."""
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """`stage/pass`; passes of one traversal are joined by `+`."""
        return f"{self.stage}/{'+'.join(self.passes)}"

    @property
    def title(self) -> str:
        """As `name`, but of many passes only the first and their number."""
        if len(self.passes) <= SHOWN_PASSES:
            return self.name
        return f"{self.stage}/{self.passes[0]} and {len(self.passes) - 1} more"


class Observer:
    """Called around stages and steps; each method does nothing unless overridden."""

    def before_pipeline(self, context: PassContext) -> None:
        """Nothing has run yet."""

    def before_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        """A stage begins."""

    def before_pass(self, step: StepRun, context: PassContext) -> None:
        """A step begins."""

    def after_pass(self, step: StepRun, context: PassContext) -> None:
        """A step has ended."""

    def after_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        """A stage has ended."""

    def after_failure(self, where: str, context: PassContext) -> None:
        """An exception leaves the step `where` (`stage/pass`); the module is as it was left."""


class Dump(Observer):
    """Writes the IR: `0.import.mlir`, `1.prepare.mlir` …, large tensors in one file beside.

    With `each_pass` also after each step that changed something, named by what changed it:
    `2.stage1.03.constant-folding.mlir`. After a failure, what there is: `2.stage1.failed.mlir`.
    """

    def __init__(self, folder: Path, *, each_pass: bool = False):
        self.folder = folder
        self.each_pass = each_pass
        self._side = SideFile()
        self._saved = -1
        self._stage = "0.import"

    def before_pipeline(self, context: PassContext) -> None:
        """Write the module as imported."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write("0.import", context.module)

    def before_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        """Remember where we are."""
        self._stage = f"{number}.{stage.name}"

    def after_pass(self, step: StepRun, context: PassContext) -> None:
        """Write the module if the step changed it."""
        if self.each_pass and step.changed:
            label = f"{step.position:02}.{'+'.join(step.changed)}"
            self._write(f"{self._stage}.{label}", context.module)

    def after_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        """Write the module."""
        self._write(self._stage, context.module)

    def after_failure(self, where: str, context: PassContext) -> None:
        """Write the module as it was left."""
        self._write(f"{self._stage}.failed", context.module)

    def _write(self, name: str, module: ModuleOp) -> None:
        text = module_text(module, self._side)
        (self.folder / f"{name}.mlir").write_text(text)
        if len(self._side.tensors) != self._saved:
            self._side.save(str(self.folder / TENSORS))
            self._saved = len(self._side.tensors)


def module_text(module: ModuleOp, side: SideFile | None = None) -> str:
    """The module as text; large tensors go to `side`, or are printed in full."""
    stream = StringIO()
    if side is None:
        Printer(stream).print_op(module)
    else:
        with side_file(side):
            Printer(stream).print_op(module)
    return stream.getvalue() + "\n"


def load_dump(path: Path, context: Context) -> ModuleOp:
    """The module that `Dump` wrote to `path`; `context` knows the dialects."""
    tensors = path.parent / TENSORS
    side = SideFile.load(str(tensors)) if tensors.exists() else SideFile()
    with side_file(side):
        return Parser(context, path.read_text(), path.name).parse_module()


class PrintAfter(Observer):
    """Prints the IR after passes, given as `pass` or `stage/pass`, if they are on."""

    def __init__(self, names: Sequence[str], stream: TextIO | None = None):
        self.names = frozenset(names)
        self._stream = stream

    def after_pass(self, step: StepRun, context: PassContext) -> None:
        """Print after a step that holds one of the passes."""
        if self.names.intersection(step.passes) or self.names.intersection(
            f"{step.stage}/{name}" for name in step.passes
        ):
            stream = self._stream or sys.stderr
            stream.write(f"// after {step.name}\n{module_text(context.module)}")


class Time(Observer):
    """Logs to `foldline.time` how long each step took."""

    def after_pass(self, step: StepRun, context: PassContext) -> None:
        """Log one line."""
        _time_log.info("%8.1f ms  %s", step.seconds * 1000, step.name)


class Verify(Observer):
    """Checks the module and the stage's promise after each stage, or after each step too.

    With `inference` also that inference would change nothing, which costs another traversal.
    """

    def __init__(self, *, each_pass: bool = False, inference: bool = False):
        self.each_pass = each_pass
        self.inference = inference

    def after_pass(self, step: StepRun, context: PassContext) -> None:
        """Check the module, where asked for after each step."""
        if self.each_pass:
            self._verify(step.name, context)

    def after_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        """Check the module and the promise. A promise is not made where a bound was reached."""
        self._verify(stage.name, context)
        if self.inference and context.options.enabled(InferShapes.name):
            self._infer(stage.name, context)
        if context.bounds or not all(map(context.options.enabled, stage.rests_on)):
            return
        for op in context.module.walk():
            if not stage.is_legal(op, context):
                raise PassFailed(
                    f"{stage.name}: {describe(op)} breaks the promise of the stage: {stage.promise}"
                )

    def _infer(self, where: str, context: PassContext) -> None:
        changes = context.rewriter.changes
        InferShapes(trusted=True).run(context)
        if context.rewriter.changes != changes:
            raise PassFailed(f"{where} left types that inference would change")

    def _verify(self, where: str, context: PassContext) -> None:
        try:
            verify_model(context.module, names=False)
        except InvalidModel as error:
            raise PassFailed(f"{where} left a module that does not verify: {error}") from error
