"""Foldline, a staged ONNX graph compiler. `import foldline` loads nothing until it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foldline.checking import check
    from foldline.compiler import CompiledModel, Compiler, compile, optimize, resume
    from foldline.graph import ModelGraph
    from foldline.session import Session
    from foldline.support.errors import (
        FoldlineError,
        InvalidArgumentError,
        InvalidModel,
        InvalidOption,
        KernelFailed,
        PassFailed,
        ResourceLimit,
        RewriteError,
        RuleFailed,
        UnsupportedOperator,
    )
    from foldline.support.options import set_options

__version__ = "0.1.0"

__all__ = [
    "CompiledModel",
    "Compiler",
    "FoldlineError",
    "InvalidArgumentError",
    "InvalidModel",
    "InvalidOption",
    "KernelFailed",
    "ModelGraph",
    "PassFailed",
    "ResourceLimit",
    "RewriteError",
    "RuleFailed",
    "Session",
    "UnsupportedOperator",
    "check",
    "compile",
    "optimize",
    "resume",
    "set_options",
]

_HOMES = {
    "CompiledModel": "foldline.compiler",
    "Compiler": "foldline.compiler",
    "ModelGraph": "foldline.graph",
    "Session": "foldline.session",
    "check": "foldline.checking",
    "compile": "foldline.compiler",
    "optimize": "foldline.compiler",
    "resume": "foldline.compiler",
    "set_options": "foldline.support.options",
}
"""Where a public name lives; exceptions live in `foldline.support.errors`."""


def __getattr__(name: str) -> Any:
    if name == "transforms":
        return import_module("foldline.transforms")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "foldline.support.errors")), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
