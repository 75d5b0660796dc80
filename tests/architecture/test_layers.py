"""Packages import one way: support < dialects < kernels < {stages, lowering} < the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, imported_modules, is_within, product_files

EARLIER = {
    "foldline.support": ("foldline.support",),
    "foldline.dialects": ("foldline.support", "foldline.dialects"),
    "foldline.kernels": ("foldline.support", "foldline.dialects", "foldline.kernels"),
    "foldline.stages": (
        "foldline.support",
        "foldline.dialects",
        "foldline.kernels",
        "foldline.stages",
    ),
    "foldline.lowering": (
        "foldline.support",
        "foldline.dialects",
        "foldline.kernels",
        "foldline.lowering",
    ),
}
"""What each layer may import of Foldline; modules of no layer may import everything."""


def violations(root: Path) -> Iterator[str]:
    """The imports that go the wrong way, as `file:line: message`."""
    for module, file in product_files(root):
        layer = next((layer for layer in EARLIER if is_within(module, layer)), None)
        for line, name in imported_modules(module, file):
            where = f"{file.relative_to(root)}:{line}"
            if layer and _is_later(name, EARLIER[layer]):
                yield f"{where}: {layer} may not import {name}"
            if layer == "foldline.support" and name.partition(".")[0] in ("onnx", "xdsl"):
                yield f"{where}: {layer} may not import {name}"


def _is_later(name: str, allowed: tuple[str, ...]) -> bool:
    """`from foldline import kernels` gives `foldline` too, which says nothing by itself."""
    return (
        is_within(name, "foldline")
        and name != "foldline"
        and not any(is_within(name, package) for package in allowed)
    )


def test_imports_go_one_way() -> None:
    assert not list(violations(ROOT))


@pytest.mark.parametrize(
    ("path", "source", "culprit"),
    [
        ("foldline/support/a.py", "import onnx.helper", "onnx.helper"),
        ("foldline/support/a.py", "from xdsl import ir", "xdsl"),
        ("dialects/a.py", "from foldline.kernels import registry", "foldline.kernels"),
        ("dialects/a.py", "from foldline import kernels", "foldline.kernels"),
        ("kernels/math/a.py", "from ...stages import pipeline", "foldline.stages"),
        ("stages/a.py", "def f():\n    import foldline.lowering", "foldline.lowering"),
        ("lowering/a.py", "from foldline.stages.driver import x", "foldline.stages.driver"),
        ("lowering/a.py", "from foldline import compile", "foldline.compile"),
        ("kernels/a.py", "import foldline.compiler", "foldline.compiler"),
    ],
)
def test_a_wrong_import_is_seen(tmp_path: Path, path: str, source: str, culprit: str) -> None:
    _write(tmp_path, path, source)
    found = list(violations(tmp_path))
    assert found
    assert found[0].endswith(f"may not import {culprit}")


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kernels/a.py", "import numpy\nfrom foldline.support import errors"),
        ("kernels/a.py", "from .registry import kernel\nfrom . import parallel"),
        ("stages/passes/a.py", "from foldline.kernels.registry import find"),
        ("foldline/compiler.py", "import foldline.stages, foldline.lowering"),
        ("foldline/supportive.py", "import onnx, foldline.stages"),
    ],
)
def test_a_right_import_is_not(tmp_path: Path, path: str, source: str) -> None:
    _write(tmp_path, path, source)
    assert not list(violations(tmp_path))


def _write(root: Path, path: str, source: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(source)
