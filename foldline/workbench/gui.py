"""xDSL's terminal interface for building pipelines, on our dialects, passes and files.

Needs the extra `gui`; importing this module without it raises ImportError.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from xdsl.interactive.app import InputApp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ArgSpecParseError

from foldline.dialects import DIALECTS
from foldline.importer import import_model
from foldline.stages.observers import module_text
from foldline.support.errors import InvalidArgumentError
from foldline.universe import UNIVERSE

EXAMPLE = """\
builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<4xf32>):
    %1 = onnx.initializer() {value = #onnx.tensor<"float", [1], typed, "0000803f">} : tensor<1xf32>
    %2 = onnx.Neg(%1) {onnx.names = #onnx.names<"negate" : "c">} : !onnx.unknown
    %3 = onnx.Add(%0, %2) {onnx.names = #onnx.names<"add" : "y">} : tensor<4xf32>
    onnx.return(%3) {interface = #onnx.interface<"g", ["x" : tensor<4xf32>],
      ["y" : tensor<4xf32>], []>}
  })
}
"""
"""What is shown where no file is given: `infer-shapes,constant-folding` has something to do."""


class Gui(InputApp):
    """xDSL's application; the command that it offers to copy is ours."""

    TITLE = "foldline gui"
    CSS_PATH = str(Path(inspect.getfile(InputApp)).with_name("app.tcss"))

    def get_query_string(self) -> str:
        """The command that does what is shown."""
        return super().get_query_string().replace("xdsl-opt", "foldline-opt", 1)


def gui(file: str | None = None, passes: str = "") -> Gui:
    """The application on a file (.onnx or text) and a pipeline, before it runs."""
    offered = {name: make() for name, make in sorted(UNIVERSE.all_passes.items())}
    return Gui(
        tuple((dialect.name, lambda dialect=dialect: dialect) for dialect in DIALECTS),
        tuple(offered.items()),
        file,
        EXAMPLE if file is None else _text(Path(file)),
        _pipeline(passes),
    )


def _pipeline(passes: str) -> tuple[ModulePass, ...]:
    try:
        return PassPipeline.parse_spec(UNIVERSE.all_passes, passes).passes
    except (ValueError, ArgSpecParseError) as error:
        raise InvalidArgumentError(f"--passes {passes!r}: {error}") from error


def _text(path: Path) -> str:
    return module_text(import_model(path)) if path.suffix == ".onnx" else path.read_text()
