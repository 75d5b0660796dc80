"""`foldline bisect` finds broken passes and rules in models of the zoo, and shows them small."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

from foldline.cli import root
from foldline.cli.arrays import save_npz
from tests.foldline.workbench import broken_passes
from tests.foldline.workbench.test_bisect import TEXT
from tests.zoo import light_models

MOST_NODES = 10
SLOW = pytest.mark.slow

RULE = """
from foldline import transforms


@transforms.traced
def softmax(op, x):
    return op.Softmax(x)


RULES = [
    transforms.rewrite(
        "softmax-to-sigmoid", softmax, lambda build, match: build.Sigmoid(match.value("x"))
    )
]
"""


@pytest.fixture(autouse=True)
def _folder_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(TEXT), "m.onnx")


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(root, list(arguments))
    assert result.exit_code == code, result.output
    return result


def run_reproducer(folder: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    """What the command in a reproducer says, typed in its folder."""
    monkeypatch.chdir(folder)
    program, *arguments = shlex.split(Path("command.txt").read_text())
    assert program == "foldline"
    return run(*arguments, code=1)


def test_nothing_is_broken() -> None:
    assert run("bisect", "m.onnx").stdout == "no pass changes what the model computes\n"
    assert json.loads(run("bisect", "m.onnx", "--json").stdout) == {"found": False}
    assert run("bisect", "m.onnx", "-o", "folder").exit_code == 0
    assert not Path("folder").exists()


def test_json(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    document = json.loads(run("bisect", "m.onnx", "--json", "-o", "small", code=1).stdout)
    assert document["found"]
    assert (document["pass"], document["node"]) == ("stage1/eliminate-identity", "abs")
    assert document["change"]["op_type"] == "onnx.Abs"
    assert document["inputs"] == "random"
    assert document["output"] == "y"
    assert document["raises"] is None
    assert document["nodes"] == 2


def test_flags_reach_the_search_and_the_reproducer(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    assert run("bisect", "m.onnx", "--oo.level", "O0").exit_code == 0
    assert run("bisect", "m.onnx", "--rtol", "10").exit_code == 0
    flags = ["--disable-constant-folding", "--fold.skip", "a*,op:Add", "--oo.level=O2"]
    run("bisect", "m.onnx", "-o", "small", *flags, code=1)
    command = Path("small/command.txt").read_text()
    for flag in ("passes.disable=constant-folding", "fold.skip=a*,op:Add", "oo.level=O2"):
        assert f"--set={flag}" in command
    assert "stage1/eliminate-identity" in run_reproducer("small", monkeypatch).stdout


def test_given_inputs_and_a_full_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    save_npz("x.npz", {"x": np.zeros((2, 4), np.float32)})
    assert "inputs 'given'" in run("bisect", "m.onnx", "--inputs", "x.npz", code=1).stdout
    Path("full").mkdir()
    Path("full/file").touch()
    assert "not empty" in run("bisect", "m.onnx", "-o", "full", code=1).stderr


def test_a_pass_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_raises(monkeypatch, "Abs")
    said = run("bisect", "m.onnx", "-o", "small", code=1).stdout
    assert "raises ValueError: boom" in said
    assert said.endswith("wrote small: 1 node left\n")
    assert "raises ValueError: boom" in run_reproducer("small", monkeypatch).stdout


def drops_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Relu")


BROKEN = {
    "eliminate-identity": drops_relu,
    "common-subexpressions": broken_passes.merging_looks_at_first_inputs,
    "constant-folding": broken_passes.folding_adds_one,
}


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("squeezenet", "eliminate-identity"),
        pytest.param("squeezenet", "common-subexpressions", marks=SLOW),
        pytest.param("inception_v1", "eliminate-identity", marks=SLOW),
        pytest.param("inception_v1", "common-subexpressions", marks=SLOW),
        pytest.param("shufflenet", "eliminate-identity", marks=SLOW),
        pytest.param("shufflenet", "constant-folding", marks=SLOW),
    ],
)
def test_a_broken_pass_in_the_zoo(monkeypatch: pytest.MonkeyPatch, name: str, broken: str) -> None:
    folds = broken == "constant-folding"  # as they ship, there is something to fold
    model = light_models.load(name) if folds else light_models.with_random_weights(name)
    _is_found_and_reproduced(model, broken, monkeypatch, breaks=BROKEN[broken])


@pytest.mark.parametrize(
    "name",
    ["squeezenet", *(pytest.param(n, marks=SLOW) for n in ("inception_v1", "shufflenet"))],
)
def test_a_broken_rule_in_the_zoo(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    Path("rules").mkdir()
    Path("rules/softmax.py").write_text(RULE)
    model = light_models.with_random_weights(name)
    _is_found_and_reproduced(
        model, "softmax-to-sigmoid", monkeypatch, "--rules", "rules/softmax.py"
    )
    assert Path("softmax.py").read_text() == RULE


def _is_found_and_reproduced(
    model: onnx.ModelProto,
    culprit: str,
    monkeypatch: pytest.MonkeyPatch,
    *flags: str,
    breaks: Callable[[pytest.MonkeyPatch], None] | None = None,
) -> None:
    onnx.save(model, "zoo.onnx")
    if breaks is not None:
        breaks(monkeypatch)
    document = json.loads(run("bisect", "zoo.onnx", "-o", "small", "--json", *flags, code=1).stdout)
    assert document["pass"].partition("/")[2] == culprit
    assert document["nodes"] <= MOST_NODES
    small = onnx.load("small/model.onnx").graph.node
    assert sum(node.op_type != "Constant" for node in small) == document["nodes"]
    again = run_reproducer("small", monkeypatch)
    assert f"/{culprit}" in again.stdout.partition(":")[0]
