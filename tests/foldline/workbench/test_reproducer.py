"""A reproducer is small, and shows the same fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest

from foldline.cli.arrays import load_npz
from foldline.support.errors import InvalidArgumentError
from foldline.workbench.bisect import Finding, find_change
from foldline.workbench.comparison import Comparison
from foldline.workbench.reduce import Reduced
from foldline.workbench.reproducer import Trial, is_same, smallest, write_folder
from foldline.workbench.stepper import Stepper
from tests.foldline.workbench import broken_passes
from tests.foldline.workbench.test_bisect import TEXT


def reproduced(
    model: onnx.ModelProto, trial: Trial, inputs: Mapping[str, Any] | None = None
) -> tuple[Finding, Reduced]:
    stepper = Stepper.of(model, trial.options, trial.rules)
    compare = Comparison(stepper.original, "fast", inputs, trial.rtol)
    finding = find_change(stepper.here.ahead, compare)
    assert finding is not None
    reduced = smallest(finding, stepper.original, compare.feed(finding.case), trial)
    assert reduced is not None
    return finding, reduced


def test_a_changed_output(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    finding, reduced = reproduced(onnx.parser.parse_model(TEXT), Trial())
    assert [node.op_type for node in reduced.model.graph.node if node.name == "abs"] == ["Abs"]
    assert reduced.nodes <= 2
    again = Trial().finding(reduced.model, reduced.inputs)
    assert again is not None
    assert is_same(again, finding)


def test_a_pass_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_raises(monkeypatch, "Sin", "second")
    finding, reduced = reproduced(onnx.parser.parse_model(TEXT), Trial())
    assert [node.name for node in reduced.model.graph.node] == ["second"]
    again = Trial().finding(reduced.model, reduced.inputs)
    assert again is not None
    assert isinstance(again.error, ValueError)
    assert is_same(again, finding)


def test_another_fault_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes around the place break in another way, which is no reason to keep them."""
    broken_passes.identity_drops(monkeypatch, "Abs")
    finding, _ = reproduced(onnx.parser.parse_model(TEXT), Trial())
    with monkeypatch.context() as patch:
        broken_passes.identity_raises(patch, "Abs")
        other, _ = reproduced(onnx.parser.parse_model(TEXT), Trial())
    assert not is_same(other, finding)


def test_pinned_inputs_are_of_the_model_only(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    model = onnx.parser.parse_model(TEXT.replace("[2,4]", "[N,4]"))
    trial = Trial({"inputs.x.shape": (3, 4), "fold.maxBytes": 1024})
    _, reduced = reproduced(model, trial)
    assert {array.shape for array in reduced.inputs.values()} == {(3, 4)}
    assert trial.of_parts().options == {"fold.maxBytes": 1024}


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    trial = Trial({"fold.skip": ("a b", "op:Add"), "oo.level": "O2"}, rtol=1e-4)
    finding, reduced = reproduced(onnx.parser.parse_model(TEXT), trial)
    (tmp_path / "rules.yaml").write_text("rules: []")
    folder = tmp_path / "new" / "folder"
    write_folder(folder, reduced, finding, trial, [str(tmp_path / "rules.yaml"), "a.module"])
    assert {file.name for file in folder.iterdir()} == {
        "model.onnx",
        "inputs.npz",
        "command.txt",
        "finding.txt",
        "versions.txt",
        "rules.yaml",
    }
    command = (folder / "command.txt").read_text()
    assert command.startswith("foldline bisect model.onnx --inputs inputs.npz --rules=rules.yaml ")
    assert "--rules=a.module" in command
    assert "'--set=fold.skip=a b,op:Add'" in command
    assert "--set=oo.level=O2" in command
    assert command.endswith("--rtol=0.0001\n")
    assert str(tmp_path) not in command
    assert load_npz(str(folder / "inputs.npz")).keys() == reduced.inputs.keys()
    onnx.checker.check_model(onnx.load(folder / "model.onnx"))
    assert "foldline " in (folder / "versions.txt").read_text()
    with pytest.raises(InvalidArgumentError, match="not empty"):
        write_folder(folder, reduced, finding, trial, [])
