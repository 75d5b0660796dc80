"""`foldline diff` compares models and dumps."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result

from foldline.cli import root
from tests.foldline.workbench.test_bisect import TEXT


@pytest.fixture(autouse=True)
def _folder_with_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(TEXT), "a.onnx")
    onnx.save(onnx.parser.parse_model(TEXT.replace("Abs(g)", "Neg(g)")), "b.onnx")


def run(*arguments: str, code: int = 0, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(root, list(arguments), input=stdin)
    assert result.exit_code == code, result.output
    return result


def test_equal_models() -> None:
    said = run("diff", "a.onnx", "a.onnx").stdout
    assert said == "9 the same, 0 changed, 0 removed, 0 added\n"


def test_another_operator() -> None:
    lines = run("diff", "a.onnx", "b.onnx", code=1).stdout.splitlines()
    assert lines[0].startswith("- abs: h = Abs(g)")
    assert lines[1].startswith("+ abs: h = Neg(g)")
    assert lines[-1] == "8 the same, 0 changed, 1 removed, 1 added"


def test_json_and_standard_input() -> None:
    data = Path("b.onnx").read_bytes()
    document = json.loads(run("diff", "a.onnx", "-", "--json", code=1, stdin=data).stdout)
    assert document["same"] == 8
    assert document["removed"][0]["node"]["op_type"] == "Abs"
    assert document["removed"][0]["fate"] == "part of Neg 'abs'"
    assert document["added"][0]["inputs"] == ["g"]
    assert "only one" in run("diff", "-", "-", code=2).stderr


def test_dumps_and_all() -> None:
    run("compile", "a.onnx", "--dump-to", "d")
    assert run("diff", "a.onnx", "d/0.import.mlir").exit_code == 0
    said = run("diff", "a.onnx", "d/2.stage1.mlir", code=1).stdout
    assert "- negate: c = Neg(b)    [folded into 'c']" in said
    assert "- same: s = Identity(x)    [bypassed: Add 'add' reads 'x']" in said
    assert "+ c = " not in said
    shown = run("diff", "a.onnx", "d/2.stage1.mlir", "--all", code=1).stdout
    assert "+ c = float32[4] [-1.0, -2.0, -3.0, -4.0]" in shown
    assert "type 0: unknown -> float[2,4]" in shown


def test_what_is_no_model() -> None:
    Path("x.mlir").write_text("not a dump")
    assert "'x.mlir' is no dump" in run("diff", "a.onnx", "x.mlir", code=1).stderr
    assert "no-such.onnx" in run("diff", "a.onnx", "no-such.onnx", code=1).stderr
