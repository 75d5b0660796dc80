"""xDSL's terminal interface on our files, driven without a terminal. Skips without the extra."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner

from foldline.cli import gui as command
from foldline.cli.root import root
from tests.foldline.test_compiler import foldable

PIPELINE = "infer-shapes,constant-folding,prune"


def shown(*arguments: str) -> tuple[str, str, str]:
    """Input, output and the command that are shown."""
    pytest.importorskip("pyclip")
    pytest.importorskip("textual")
    from foldline.workbench.gui import gui

    async def drive() -> tuple[str, str, str]:
        app: Any = gui(*arguments)
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.pause()
            return app.input_text_area.text, app.output_text_area.text, app.get_query_string()

    return asyncio.run(drive())


def test_a_model_goes_through_a_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(foldable(), path)
    before, after, query = shown(str(path), PIPELINE)
    assert before.count("onnx.Add") == 2
    assert after.count("onnx.Add") == 1
    assert query == f"foldline-opt {path} -p '{PIPELINE}'"


def test_text_that_does_not_parse_is_told(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text("onnx.nothing")
    before, after, _ = shown(str(path))
    assert before == "onnx.nothing"
    assert "onnx.nothing" in after


def test_the_example_has_something_to_do() -> None:
    before, after, _ = shown()
    assert before.strip().count("onnx.Neg") == after.count("onnx.Neg") == 1
    from foldline.workbench.gui import EXAMPLE
    from tests.dialects.ir import parse

    assert parse(EXAMPLE)


def test_without_the_extra_its_name_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "NEEDED", ("textual", "not_there_at_all"))
    result = CliRunner().invoke(root, ["gui"])
    assert result.exit_code == 1
    assert "needs not_there_at_all: pip install 'foldline[gui]'" in result.output
