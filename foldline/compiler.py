"""One compile, top to bottom: import, verify, stages, and what comes of it.

`compile`, `optimize` and `resume` are the API; `Compiler` carries the session scope of options.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import ModelProto
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from foldline.dialects import load_dialects
from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model, write_model
from foldline.exporter.files import serialised
from foldline.graph import ModelGraph
from foldline.importer import Source, blamed_on, import_function, import_model
from foldline.kernels.registry import GRADES
from foldline.lowering import Program, lower
from foldline.overrides import freeze_initializers, pin_shapes
from foldline.session import Session
from foldline.stages.observers import Dump, Observer, PrintAfter, load_dump
from foldline.stages.rewrite.transform import Transform
from foldline.stages.run import run_pipeline
from foldline.support.debug_options import DebugOptions, resolve_debug
from foldline.support.errors import InvalidArgumentError, InvalidModel
from foldline.support.options import Options, resolve
from foldline.support.remarks import Remark
from foldline.support.report import Report


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
        return ModelGraph(self.module, {"mode": self.options["mode"]})


class Compiler:
    """Compiles models under the options of a session."""

    def __init__(self, options: Mapping[str, Any] | None = None, rules: Sequence[Transform] = ()):
        """`rules` are transforms of the user; they run in the fusion stage of every compile."""
        self.options = dict(options or {})
        self.rules = tuple(rules)

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
            module = import_model(model, notes)
            verify_model(module)
            pin_shapes(module, resolved.input_shapes)
            if resolved["freezeInitializers"]:
                freeze_initializers(module)
            rules = (*self.rules, *rules)
            compiled = _through_stages(module, resolved, debug, observers, rules)
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
        return _through_stages(module, resolved, debug, observers, rules, start_at)


def _through_stages(
    module: ModuleOp,
    options: Options,
    debug: DebugOptions | None,
    observers: Sequence[Observer],
    rules: Sequence[Transform],
    start_at: str | None = None,
) -> CompiledModel:
    shown = resolve_debug() if debug is None else debug
    report = run_pipeline(
        module,
        options,
        observers=(*_debug_observers(shown), *observers),
        start_at=start_at,
        stop_after=shown.stop_after,
        rules=rules,
    )
    return CompiledModel(module, report, options)


def compile(
    model: Source,
    *,
    options: Mapping[str, Any] | None = None,
    debug: DebugOptions | None = None,
    observers: Sequence[Observer] = (),
    rules: Sequence[Transform] = (),
) -> CompiledModel:
    """Compile a model: `Compiler().compile`."""
    return Compiler(rules=rules).compile(model, options=options, debug=debug, observers=observers)


def optimize(
    model: Source, *, options: Mapping[str, Any] | None = None, rules: Sequence[Transform] = ()
) -> ModelProto:
    """A smaller, equal model: the message of the compiled one."""
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
    """Go on from a dump: `Compiler().resume`."""
    compiler = Compiler(rules=rules)
    return compiler.resume(dump, start_at, options=options, debug=debug, observers=observers)


def _debug_observers(debug: DebugOptions) -> tuple[Observer, ...]:
    observers: list[Observer] = []
    if debug.dump_to is not None:
        observers.append(Dump(Path(debug.dump_to), each_pass=debug.dump_each_pass))
    if debug.print_after:
        observers.append(PrintAfter(debug.print_after))
    return tuple(observers)
