"""What fails by Foldline's own fault leaves a folder to see it again with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result

from foldline.cli import root
from foldline.workbench import crash
from tests.foldline.workbench import broken_passes
from tests.foldline.workbench.test_bisect import TEXT

ALWAYS = {"command.txt", "traceback.txt", "versions.txt"}
RESUMABLE = {"state.json", "state.mlir", "original.mlir", "tensors.npz"}
RULE = """
from foldline import transforms

def fails(match):
    raise RuntimeError("no")

pattern = transforms.traced(lambda op, x: op.Abs(x))
RULES = [transforms.rewrite("failing", pattern, lambda build, match: match.value("x"), fails)]
"""


@pytest.fixture(autouse=True)
def _folder_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    onnx.save(onnx.parser.parse_model(TEXT), "m.onnx")


def run(*arguments: str, code: int, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(root, list(arguments), input=stdin)
    assert result.exit_code == code, result.output
    return result


def folder_of(result: Result) -> Path:
    line = result.stderr.splitlines()[-1]
    assert line.startswith("What is needed to reproduce it is in ")
    return Path(line.split()[-1])


def files(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@pytest.mark.parametrize("command", ["compile", "run"])
def test_a_pass_that_raises(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    broken_passes.identity_raises(monkeypatch, "Sin", "second")
    flags = ["--random"] if command == "run" else []
    result = run(command, "m.onnx", "--fold.skip", "a b", *flags, code=3)
    assert "Internal error: ValueError: boom" in result.stderr
    folder = folder_of(result)
    assert files(folder) == {*ALWAYS, *RESUMABLE, "where.txt"}
    where = (folder / "where.txt").read_text()
    assert where.startswith("stage1/eliminate-identity at onnx.Sin 'second': raises ValueError")
    assert "--fold.skip 'a b'" in (folder / "command.txt").read_text()
    assert "ValueError: boom" in (folder / "traceback.txt").read_text()
    assert "Traceback" not in result.output


def test_the_state_before_the_step_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_raises(monkeypatch, "Sin", "second")
    folder = folder_of(run("compile", "-", code=3, stdin=Path("m.onnx").read_bytes()))
    Path("script").write_text("show second\nstep\n")
    shown = run("step", "--resume", str(folder), "--script", "script", code=0).stdout
    assert shown.startswith("[1] before stage1/eliminate-identity")
    assert "second: g: float[2,4] = Sin(f)" in shown
    assert "Error: ValueError: boom" in shown


def test_a_module_that_a_pass_leaves_unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    from foldline.dialects.onnx.verifier import verify_model
    from foldline.stages import observers
    from foldline.support.errors import InvalidModel

    def verify(module: Any, **how: Any) -> None:
        verify_model(module, **how)
        if "Identity" not in str(module):
            raise InvalidModel("no Identity is left")

    monkeypatch.setattr(observers, "verify_model", verify)
    result = run("compile", "m.onnx", code=1)
    assert "no Identity is left" in result.stderr
    assert files(folder_of(result)) >= RESUMABLE


def test_a_check_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    folder = folder_of(run("compile", "m.onnx", "--check=stages", code=1))
    assert files(folder) >= RESUMABLE
    assert "at onnx.Abs 'abs': inputs 'random'" in (folder / "where.txt").read_text()


def test_large_weights_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash, "MOST_BYTES", 1000)
    broken_passes.identity_raises(monkeypatch, "Exp")
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[N,32] x, float[32,32] w) => (float[N,32] y) { a = MatMul(x, w) y = Exp(a) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(
        onnx.helper.make_tensor("w", 1, [32, 32], [i / 1024 for i in range(1024)])
    )
    del model.graph.input[1]
    onnx.save(model, "w.onnx")
    result = run("compile", "w.onnx", code=3)
    assert "MB of weights are not copied; the model is needed" in result.stderr
    assert files(folder_of(result)) == {*ALWAYS, "where.txt", "state.mlir", "original.mlir"}


def test_a_rule_of_the_user_is_no_fault_of_ours() -> None:
    Path("rules.py").write_text(RULE)
    result = run("compile", "m.onnx", "--rules", "rules.py", code=1)
    assert "transform 'failing' failed at 'abs'" in result.stderr
    assert "reproduce" not in result.stderr


def test_a_wrong_model_is_none_either() -> None:
    Path("bad.onnx").write_bytes(b"no model")
    assert "reproduce" not in run("compile", "bad.onnx", code=1).stderr


def test_nor_is_a_rule_of_the_user_that_a_check_finds() -> None:
    wrong = RULE.replace(
        'lambda build, match: match.value("x"), fails',
        'lambda build, match: build.Neg(match.value("x"))',
    )
    Path("rules.py").write_text(wrong)
    result = run("compile", "m.onnx", "--rules", "rules.py", "--check=passes", code=1)
    assert "fusion/failing at onnx.Abs 'abs'" in result.stderr
    assert "reproduce" not in result.stderr
