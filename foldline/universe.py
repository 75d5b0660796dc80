"""What xDSL tools see of Foldline: dialects, passes, ONNX files (entry point `xdsl.universe`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.universe import Universe
from xdsl.utils.frontend import Frontend

from foldline.dialects import DIALECTS
from foldline.importer import import_model
from foldline.stages.passes import ALL_PASSES

# xDSL refuses a name that two universes define; builtin is its own.
_OWN = [dialect for dialect in DIALECTS if dialect is not Builtin]


@dataclass(frozen=True)
class OnnxFrontend(Frontend):
    """Reads ONNX files."""

    name = "onnx"

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:
        """The module of a model. Raises InvalidModel."""
        return import_model(input if input_name == "stdin" else input_name)


UNIVERSE = Universe(
    all_dialects={dialect.name: lambda dialect=dialect: dialect for dialect in _OWN},
    all_passes={cls.name: lambda cls=cls: cls for cls in ALL_PASSES},
    all_frontends={OnnxFrontend.name: lambda: OnnxFrontend},
)
