"""`foldline-opt`: xDSL's optimizer driver with the dialects, passes and files of Foldline.

    foldline-opt model.onnx -p 'infer-shapes,constant-folding{max-bytes=4096},prune'

Reads ONNX files, and text and dumps of the dialects; everything else is as `xdsl-opt` has it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import (
    ArgSpecParseError,
    DiagnosticException,
    ParseError,
    VerifyException,
)
from xdsl.xdsl_opt_main import xDSLOptMain

from foldline.dialects.onnx.structure import GraphOp
from foldline.dialects.onnx.tensor import SideFile, side_file
from foldline.dialects.onnx.verifier import verify_model
from foldline.stages.observers import TENSORS
from foldline.support.errors import FoldlineError, InvalidArgumentError, InvalidModel
from foldline.universe import UNIVERSE


class FoldlineOpt(xDSLOptMain):
    """The driver; that the entry point of the installed package is seen is not needed."""

    def register_all_dialects(self) -> None:
        """xDSL's dialects and ours."""
        super().register_all_dialects()
        for name, factory in UNIVERSE.all_dialects.items():
            if name not in self.ctx.registered_dialect_names:
                self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        """xDSL's passes and ours."""
        super().register_all_passes()
        self.available_passes.update(UNIVERSE.all_passes)

    def register_all_frontends(self) -> None:
        """xDSL's kinds of files and ours."""
        super().register_all_frontends()
        self.available_frontends.update(UNIVERSE.all_frontends)

    def setup_pipeline(self) -> None:
        """The passes of the command line. Raises InvalidArgumentError for a wrong pipeline."""
        try:
            super().setup_pipeline()
        except (ValueError, ArgSpecParseError) as error:
            raise InvalidArgumentError(f"--passes {self.args.passes!r}: {error}") from error

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        """Parse, with the tensors beside a dump; models are verified as the importer's are."""
        tensors = Path(self.args.input_file or ".").parent / TENSORS
        with side_file(SideFile.load(str(tensors))) if tensors.exists() else nullcontext():
            module = super().parse_chunk(chunk, file_extension, start_offset)
        if module is not None and not self.args.disable_verify:
            _verify(module)
        return module


def _verify(module: ModuleOp) -> None:
    if any(isinstance(op, GraphOp) for op in module.body.ops):
        try:
            verify_model(module)
        except InvalidModel as error:
            raise VerifyException(str(error)) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the script `foldline-opt`; exits with 1 where the request is wrong."""
    try:
        FoldlineOpt("Foldline's passes, one by one", arguments).run()
    except (FoldlineError, DiagnosticException, ParseError, OSError) as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
