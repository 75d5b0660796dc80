"""What no source file may hold: oracles, broad handlers, silent ignores, machine paths, excess."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, imported_modules, is_within, product_files

MAX_LINES = 400
"""The goal is 300."""
ORACLES = ("onnx.reference", "onnxruntime")
TOP_LEVEL = ("configs", "dialects", "kernels", "lowering", "stages")
BROAD = {"Exception", "BaseException"}
TEXTS = {
    "an ignore without a rule": r"#\s*(type|pyright):\s*ignore(?!\[)|#\s*noqa(?!:)",
    "an unfinished note": r"#.*\b(TODO|FIXME|XXX|HACK)\b",
    "a machine path": r"[\"'\s(=](/work|/tmp|/home|/root|/opt)/",
}


def violations(module: str, file: Path) -> Iterator[str]:
    """What is wrong with one file of the product."""
    text = file.read_text()
    for line, name in imported_modules(module, file):
        if any(is_within(name, oracle) for oracle in ORACLES):
            yield f"{line}: imports the oracle {name}"
        if any(is_within(name, folder) for folder in TOP_LEVEL):
            yield f"{line}: imports {name} without foldline"
    if module != "foldline.cli.root":  # the edge turns what was not foreseen into a report
        for line in _broad_handlers(ast.parse(text)):
            yield f"{line}: broad except"
    yield from _text_violations(text)


def _broad_handlers(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            names = (
                {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
                if (node.type)
                else BROAD
            )
            if names & BROAD:
                yield node.lineno


def _text_violations(text: str) -> Iterator[str]:
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        yield f"{len(lines)} lines, more than {MAX_LINES}"
    for number, line in enumerate(lines, 1):
        for what, pattern in TEXTS.items():
            if re.search(pattern, line):
                yield f"{number}: {what}"


@pytest.mark.parametrize(
    ("module", "file"),
    [pytest.param(module, file, id=module) for module, file in product_files()],
)
def test_product(module: str, file: Path) -> None:
    assert not list(violations(module, file))


@pytest.mark.parametrize("folder", ["benchmarks", "docs", "README.md", "Makefile", ".ci"])
def test_no_machine_path_elsewhere(folder: str) -> None:
    files = [ROOT / folder] if (ROOT / folder).is_file() else (ROOT / folder).rglob("*")
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            assert not re.search(TEXTS["a machine path"], file.read_text()), file


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import onnxruntime", "imports the oracle onnxruntime"),
        ("from onnx import reference", "imports the oracle onnx.reference"),
        ("from onnx.reference import ReferenceEvaluator", "imports the oracle onnx.reference"),
        ("import kernels.registry", "imports kernels.registry without foldline"),
        ("try:\n    pass\nexcept Exception:\n    pass", "broad except"),
        ("try:\n    pass\nexcept:\n    pass", "broad except"),
        ("try:\n    pass\nexcept (KeyError, BaseException):\n    pass", "broad except"),
        ("x = 1  # type: " + "ignore", "an ignore without a rule"),
        ("x = 1  # no" + "qa", "an ignore without a rule"),
        ("x = 1  # TO" + "DO later", "an unfinished note"),
        ("x = '/tm" + "p/a'", "a machine path"),
        ("x = 1\n" * 401, "401 lines, more than 400"),
    ],
)
def test_the_check_sees(tmp_path: Path, source: str, message: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(source)
    assert message in next(violations("foldline.a", file))


@pytest.mark.parametrize(
    "source",
    [
        "import onnx.helper\nfrom onnx import numpy_helper",
        "from foldline.kernels import registry",
        "try:\n    pass\nexcept (KeyError, ValueError):\n    pass",
        "x = 1  # type: " + "ignore[assignment]",
        "x = 1\n" * 400,
    ],
)
def test_the_check_lets_pass(tmp_path: Path, source: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(source)
    assert not list(violations("foldline.a", file))
