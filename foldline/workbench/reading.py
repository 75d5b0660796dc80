"""Modules from files: models, and dumps as `--dump-to` and `step` write them."""

from __future__ import annotations

from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from foldline.dialects import load_dialects
from foldline.dialects.onnx.verifier import verify_model
from foldline.importer import blamed_on, import_model
from foldline.stages.observers import load_dump
from foldline.support.errors import InvalidModel

DUMP = ".mlir"


def read_module(source: str | bytes) -> ModuleOp:
    """The module of a model, or of a dump where that is a path to one. Raises InvalidModel."""
    if isinstance(source, str) and Path(source).suffix == DUMP:
        return _read_dump(Path(source))
    with blamed_on(source):
        return import_model(source)


def _read_dump(path: Path) -> ModuleOp:
    context = Context()
    load_dialects(context)
    try:
        module = load_dump(path, context)
    except (ParseError, UnicodeDecodeError) as error:
        raise InvalidModel(f"'{path}' is no dump: {error}") from error
    verify_model(module)
    return module
