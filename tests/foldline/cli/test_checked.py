"""`--check` of compile and optimize: when to compare, on what, and how closely."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

import foldline
from foldline.cli import root
from foldline.cli.arrays import save_npz
from tests.foldline.workbench import broken_passes
from tests.foldline.workbench.test_bisect import TEXT


@pytest.fixture(autouse=True)
def _folder_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    onnx.save(onnx.parser.parse_model(TEXT), "m.onnx")


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(root, list(arguments))
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize("mode", ["--check", "--check=end"])
def test_alone_it_means_at_the_end_whatever_follows(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    result = run("optimize", mode, "m.onnx", "o.onnx", "--oo.level", "O2")
    assert result.stdout.splitlines()[-2:] == ["equal", "wrote o.onnx"]
    broken_passes.identity_drops(monkeypatch, "Abs")
    assert "nothing is written" in run("compile", mode, "m.onnx", "-o", "x.onnx", code=1).stderr
    assert not Path("x.onnx").exists()


@pytest.mark.parametrize("mode", ["stages", "passes"])
def test_the_pass_is_named(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    assert run("compile", "m.onnx", f"--check={mode}").stdout.splitlines()[-1] == "equal"
    broken_passes.identity_drops(monkeypatch, "Abs")
    result = run("compile", "m.onnx", f"--check={mode}", "-o", "x.onnx", code=1)
    assert "Error: stage1/eliminate-identity at onnx.Abs 'abs'" in result.stderr
    assert not Path("x.onnx").exists()


def test_revert(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    result = run("compile", "m.onnx", "--check=revert", "-o", "x.onnx")
    assert "undone: stage1/eliminate-identity at onnx.Abs 'abs'" in result.stdout
    assert foldline.check("m.onnx", "x.onnx", rtol=1e-5).equal
    document = json.loads(run("compile", "m.onnx", "--check=revert", "--json").stdout)
    assert document["check"]["mode"] == "revert"
    assert document["check"]["undone"][0].startswith("stage1/eliminate-identity")
    remarks = [r for r in document["report"]["remarks"] if r["message"].startswith("undone: ")]
    assert {remark["node"] for remark in remarks} == {"abs"}


def test_inputs_and_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    save_npz("x.npz", {"x": np.ones((2, 4), np.float32)})
    result = run("compile", "m.onnx", "--check=passes", "--inputs", "x.npz", code=1)
    assert "inputs 'given'" in result.stderr
    result = run("compile", "m.onnx", "--check", "--inputs", "x.npz", code=1)
    assert "inputs 'given'" in result.stderr
    for flags in (["--rtol", "1"], ["--inputs", "x.npz"]):
        assert "belong to --check" in run("compile", "m.onnx", *flags, code=2).stderr


def test_from_a_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    run("compile", "m.onnx", "--dump-to", "d", "--stop-after", "prepare")
    start = ["--start-at", "stage1", "d/1.prepare.mlir"]
    assert "needs the MODEL" in run("compile", *start, "--check=stages", code=2).stderr
    run("compile", "m.onnx", *start, "--check=stages")
    broken_passes.identity_drops(monkeypatch, "Abs")
    result = run("compile", "m.onnx", *start, "--check=stages", code=1)
    assert "stage1/eliminate-identity" in result.stderr


def test_a_configuration_asks_for_it_and_flags_are_stronger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("c.yaml").write_text("model: m.onnx\ndebug: {check: stages}\n")
    command = ["compile", "--config", "c.yaml"]
    assert run(*command, "--rtol", "1e-3").stdout.splitlines()[-1] == "equal"
    assert json.loads(run(*command, "--json").stdout)["check"]["mode"] == "stages"
    broken_passes.identity_drops(monkeypatch, "Abs")
    result = run(*command, "-o", "x.onnx", code=1)
    assert "Error: stage1/eliminate-identity at onnx.Abs 'abs'" in result.stderr
    assert "undone: " in run(*command, "--check=revert", "-o", "x.onnx").stdout


def test_a_configuration_asks_for_it_from_a_dump() -> None:
    Path("c.yaml").write_text("debug: {check: stages}\n")
    run("compile", "m.onnx", "--dump-to", "d", "--stop-after", "prepare")
    start = ["--config", "c.yaml", "--start-at", "stage1", "d/1.prepare.mlir"]
    assert "needs the MODEL" in run("compile", *start, code=2).stderr
    assert run("compile", "m.onnx", *start).stdout.splitlines()[-1] == "equal"


def test_an_unknown_mode() -> None:
    assert "is not one of" in run("compile", "m.onnx", "--check=often", code=2).stderr
