"""One compile, top to bottom: import, verify, stages, and what comes of it.

`compile`, `optimize` and `resume` are the API; `Compiler` carries the session scope of options.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from onnx import ModelProto
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from foldline.dialects import load_dialects
from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model, write_model
from foldline.exporter.files import serialised
from foldline.exporter.functions import functions_refusal
from foldline.graph import ModelGraph
from foldline.importer import Source, blamed_on, import_function, import_model
from foldline.kernels.registry import GRADES
from foldline.lowering import Program, lower
from foldline.overrides import freeze_initializers, pin_shapes
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.observers import Dump, Observer, PrintAfter, load_dump
from foldline.stages.rewrite.transform import Transform
from foldline.stages.run import PipelineRun, prepared, to_the_end
from foldline.support.debug_options import DebugOptions, resolve_debug
from foldline.support.errors import InvalidArgumentError, InvalidModel
from foldline.support.options import Options, resolve
from foldline.support.remarks import Remark
from foldline.support.report import Report

Drive: TypeAlias = Callable[[PipelineRun], PipelineRun]


class CompiledModel:
    """A model after its stages: report, files, sessions."""

    def __init__(self, module: ModuleOp, report: Report, options: Options):
        self.module = module
        """The optimised module of the onnx dialect."""
        self.report = report
        """Stages, passes, counts, seconds, remarks."""
        self.options = options
        """The options it was compiled with, resolved."""
        self._program: Program | None = None
        self._lock = threading.Lock()

    def to_proto(self) -> ModelProto:
        """The model as a message, of its own opset and IR version."""
        return export_model(self.module, **self._policy())

    def to_bytes(self) -> bytes:
        """The model as the bytes of a file. Raises ResourceLimit above 2 GiB."""
        return serialised(self.to_proto())

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        external_data: bool = False,
    ) -> None:
        """Write the model; an existing file needs `force`, the file appears complete or not."""
        write_model(
            self.module,
            path,
            force=force,
            external_data=external_data,
            **self._policy(),
        )

    def _policy(self) -> dict[str, Any]:
        return {
            "value_info": self.options["export.valueInfo"],
            "fused": self.options["export.fused"],
            "unique_nodes": self.options.level != "O0",
            "training": self.options.level == "O0",
        }

    def session(self, threads: int | None = None) -> Session:
        """A session that runs the model; sessions of one model share its program.

        Raises UnsupportedOperator naming every operator that has no kernel.
        """
        with self._lock:
            if self._program is None:
                grades = GRADES[self.options["mode"]]
                self._program = lower(
                    self.module,
                    grades=grades,
                    read_function=import_function,
                    weight_storage=self.options["weightStorage"],
                )
        applied = [row for row in self.report.rows if row.changes]
        return Session(self._program, self.options.threads if threads is None else threads, applied)

    def graph(self) -> ModelGraph:
        """A copy of the model to search for patterns in and to run transforms on."""
        kept = ("mode", "export.fused")
        return ModelGraph(self.module, {key: self.options[key] for key in kept})


class Compiler:
    """Compiles models under the options of a session."""

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        rules: Sequence[Transform] = (),
        *,
        drive: Drive = to_the_end,
    ):
        """`rules` are transforms of the user; they run in the fusion stage of every compile.

        `drive` takes a run of the stages to its end: the one that it is given, or a copy.
        """
        self.options = dict(options or {})
        self.rules = tuple(rules)
        self._drive = drive

    def compile(
        self,
        model: Source,
        *,
        options: Mapping[str, Any] | None = None,
        debug: DebugOptions | None = None,
        observers: Sequence[Observer] = (),
        rules: Sequence[Transform] = (),
    ) -> CompiledModel:
        """Compile a path, bytes, file object or ModelProto, which is not modified.

        `options` are the graph scope, stronger than the session's; `rules` come after the
        session's. Raises InvalidModel, InvalidOption, InvalidArgumentError, PassFailed,
        KernelFailed, RuleFailed.
        """
        resolved = resolve(options or {}, self.options)
        notes: list[str] = []
        with blamed_on(model):
            module = imported(model, resolved, notes)
            rules = (*self.rules, *rules)
            compiled = _through_stages(module, resolved, debug, observers, rules, self._drive)
        compiled.report.remarks[:0] = [Remark("note", "import", "", "", "", n) for n in notes]
        return compiled

    def resume(
        self,
        dump: str | os.PathLike[str],
        start_at: str,
        *,
        options: Mapping[str, Any] | None = None,
        debug: DebugOptions | None = None,
        observers: Sequence[Observer] = (),
        rules: Sequence[Transform] = (),
    ) -> CompiledModel:
        """Go on from a dump with the stage `start_at`, as if the stages before had just run.

        Options that change a model's inputs belong to the compile that wrote the dump. Raises
        what `compile` raises, InvalidModel too for a file that is no dump.
        """
        resolved = resolve(options or {}, self.options)
        path = Path(dump)
        if resolved.input_shapes:
            raise InvalidArgumentError(f"{path.name}: inputs cannot be pinned in a dump")
        if debug is not None and debug.dump_to is not None and path.parent.samefile(debug.dump_to):
            raise InvalidArgumentError(f"'{debug.dump_to}' holds {path.name}; dump elsewhere")
        context = Context()
        load_dialects(context)
        try:
            module = load_dump(path, context)
        except (ParseError, UnicodeDecodeError) as error:
            raise InvalidModel(f"'{path}' is no dump: {error}") from error
        verify_model(module)
        rules = (*self.rules, *rules)
        return _through_stages(module, resolved, debug, observers, rules, self._drive, start_at)


def imported(model: Source, options: Options, notes: list[str] | None = None) -> ModuleOp:
    """A model as the first stage sees it: verified, its inputs as the options have them.

    `notes` receives what was put right on the way. Raises InvalidModel, InvalidOption.
    """
    module = import_model(model, notes)
    verify_model(module)
    pin_shapes(module, options.input_shapes)
    if options["freezeInitializers"]:
        freeze_initializers(module)
    return module


def _through_stages(
    module: ModuleOp,
    options: Options,
    debug: DebugOptions | None,
    observers: Sequence[Observer],
    rules: Sequence[Transform],
    drive: Drive,
    start_at: str | None = None,
) -> CompiledModel:
    shown = resolve_debug() if debug is None else debug
    run = drive(
        prepared(
            PassContext(module, options, rules=tuple(rules)),
            observers=(*_debug_observers(shown), *observers),
            start_at=start_at,
            stop_after=shown.stop_after,
        )
    )
    module, report = run.context.module, run.report
    if options["export.fused"] == "functions" and (why := functions_refusal(module)) is not None:
        report.remarks.append(Remark("declined", "", "export", "", "", why))
    return CompiledModel(module, report, options)


def compile(
    model: Source,
    *,
    options: Mapping[str, Any] | None = None,
    debug: DebugOptions | None = None,
    observers: Sequence[Observer] = (),
    rules: Sequence[Transform] = (),
) -> CompiledModel:
    """Compile a path, bytes, file object or ModelProto, which is not modified.

    `options` by key, see docs/options.md; `debug`: dumps, remarks, where to stop, by default what
    the environment asks for; `observers` look on; `rules` are transforms that run in the fusion
    stage. What comes back has the report, files, and sessions. Raises InvalidModel for what breaks
    the ONNX specification, InvalidOption, InvalidArgumentError, PassFailed, KernelFailed,
    RuleFailed.
    """
    return Compiler(rules=rules).compile(model, options=options, debug=debug, observers=observers)


def optimize(
    model: Source, *, options: Mapping[str, Any] | None = None, rules: Sequence[Transform] = ()
) -> ModelProto:
    """A smaller, equal model of the same opset and IR version, as a message.

    Equal: bit for bit up to `oo.level` O2, but for last bits at O3, the default; see
    docs/numerics.md. Takes and raises what `compile` does, and ResourceLimit above 2 GiB.
    """
    return compile(model, options=options, rules=rules).to_proto()


def resume(
    dump: str | os.PathLike[str],
    start_at: str,
    *,
    options: Mapping[str, Any] | None = None,
    debug: DebugOptions | None = None,
    observers: Sequence[Observer] = (),
    rules: Sequence[Transform] = (),
) -> CompiledModel:
    """Go on from a dump with the stage `start_at`, as if the stages before had just run.

    Raises what `compile` raises, InvalidModel too for a file that is no dump.
    """
    compiler = Compiler(rules=rules)
    return compiler.resume(dump, start_at, options=options, debug=debug, observers=observers)


def _debug_observers(debug: DebugOptions) -> tuple[Observer, ...]:
    observers: list[Observer] = []
    if debug.dump_to is not None:
        observers.append(Dump(Path(debug.dump_to), each_pass=debug.dump_each_pass))
    if debug.print_after:
        observers.append(PrintAfter(debug.print_after))
    return tuple(observers)
