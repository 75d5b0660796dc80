"""The text contracts in `*.mlir`: each RUN line, in this process. `lit tests/filecheck` agrees."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from foldline.cli.opt import main

pytest.importorskip("filecheck")
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser

FOLDER = Path(__file__).parent


def run_lines(path: Path) -> list[list[list[str]]]:
    """The pipes of a file's RUN lines: commands, each its words."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("// RUN: ")]
    pipes = [line.removeprefix("// RUN: ").replace("%s", str(path)).split(" | ") for line in lines]
    return [[shlex.split(command) for command in pipe] for pipe in pipes]


def optimised(arguments: list[str], given: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `foldline-opt` prints."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    with redirect_stdout(io.StringIO()) as printed:
        main(arguments)
    return printed.getvalue()


def checked(arguments: list[str], given: str) -> int:
    """What `filecheck` exits with."""
    path, *flags = arguments
    prefix = flags[1] if flags else "CHECK"
    options = Options(match_filename=path, check_prefixes=[prefix])
    return Matcher(options, FInput("-", given), Parser.from_opts(options)).run()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mlir")), ids=lambda path: path.stem)
def test_contract(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipes = run_lines(path)
    assert pipes
    for *commands, (last, *arguments) in pipes:
        text = ""
        for tool, *words in commands:
            assert tool == "foldline-opt"
            text = optimised(words, text, monkeypatch)
        assert last == "filecheck"
        assert checked(arguments, text) == 0, text


def test_a_broken_contract_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text("// CHECK: onnx.Abs\n")
    assert checked([str(path)], "onnx.Neg\n") == 1
    assert checked([str(path)], "onnx.Abs\n") == 0


@pytest.mark.slow
def test_lit_agrees() -> None:
    pytest.importorskip("lit")
    code = "from lit.main import main; main()"
    command = [sys.executable, "-c", code, "-q", "--no-progress-bar", str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
