"""Where rules of users come from: files, modules, entry points, and the command line."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result

from foldline import rules
from foldline.cli import root
from foldline.config import load_config
from foldline.rules import chosen, rules_of
from foldline.support.errors import InvalidArgumentError, InvalidOption
from tests.stages.check import onnx_model

PYTHON = """
from foldline import transforms

def to(op_type):
    return lambda build, match: build.op(op_type, match.value("x"))

def rule(name, before, after):
    pattern = transforms.traced(lambda op, x: op.any_of(before)(x))
    return transforms.rewrite(name, pattern, to(after))

neg = rule("neg", "Neg", "Sigmoid")
tanh = rule("tanh", "Sigmoid", "Tanh")
"""
YAML = "rules:\n- {name: data, pattern: Neg(x), replace: Sigmoid(x)}\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine.py").write_text(PYTHON)
    (tmp_path / "listed_rules.py").write_text(f"{PYTHON}\nRULES = [tanh]\n")
    (tmp_path / "mine.yaml").write_text(YAML)
    text = "g (float[2,3] x) => (float[2,3] y) { a = MatMul(x, x) b = Neg(a) y = MatMul(b, b) }"
    onnx.save(onnx_model(text.replace("2,3", "3,3")), tmp_path / "m.onnx")
    sys.modules.pop("listed_rules", None)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("offered", "listed_rules:tanh", rules.GROUP)
    monkeypatch.setattr(rules, "entry_points", lambda group: [entry] * (group == rules.GROUP))


def names(source: str) -> list[str]:
    return [rule.name for rule in rules_of(source)]


def test_files_and_modules() -> None:
    assert names("mine.py") == ["neg", "tanh"]
    assert names("mine.yaml") == ["data"]
    assert names("listed_rules") == ["tanh"]


@pytest.mark.usefixtures("installed")
def test_entry_points_go_by_name() -> None:
    assert names("offered") == ["tanh"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.py", "no such file"),
        ("missing_module", "no such module"),
        ("empty.py", "holds no transform"),
        ("wrong.py", "holds no transform"),
        ("raises.py", "ValueError: no"),
        ("syntax.py", "SyntaxError"),
        ("imports.py", "No module named 'nowhere'"),
    ],
)
def test_what_is_refused(source: str, message: str) -> None:
    Path("empty.py").write_text("")
    Path("wrong.py").write_text("RULES = [3]")
    Path("raises.py").write_text("raise ValueError('no')")
    Path("syntax.py").write_text("def")
    Path("imports.py").write_text("import nowhere")
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        rules_of(source)
    assert source in str(caught.value)


@pytest.mark.usefixtures("installed")
def test_a_configuration_enables_by_name_what_is_loaded_or_installed() -> None:
    assert [r.name for r in chosen(["mine.py"], ["neg"])] == ["neg", "tanh"]
    assert [r.name for r in chosen([], ["offered"])] == ["tanh"]
    with pytest.raises(InvalidArgumentError, match=r"'offred' is neither .* mean 'offered'"):
        chosen([], ["offred"])
    with pytest.raises(InvalidArgumentError, match="neither"):
        chosen([], [str(Path("mine.py").resolve())])


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(root, list(arguments))
    assert result.exit_code == code, result.output
    return result


def operators() -> list[str]:
    return [node.op_type for node in onnx.load("out.onnx").graph.node]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["mine.py"], "Tanh"),
        (["mine.yaml"], "Sigmoid"),
        (["mine.yaml", "listed_rules"], "Tanh"),
        (["listed_rules"], "Neg"),
    ],
)
@pytest.mark.parametrize("command", ["compile", "optimize"])
def test_the_command_line_runs_rules(command: str, sources: list[str], expected: str) -> None:
    flags = [flag for source in sources for flag in ("--rules", source)]
    output = ["-o", "out.onnx"] if command == "compile" else ["out.onnx"]
    run(command, "m.onnx", *output, *flags)
    assert operators() == ["MatMul", expected, "MatMul"]


def test_the_table_and_remarks_show_rules() -> None:
    result = run("compile", "m.onnx", "--rules", "mine.yaml", "--remarks", "data")
    assert "fusion/data" in result.output
    assert "Neg replaced" in result.output


@pytest.mark.usefixtures("installed")
def test_a_configuration_on_the_command_line() -> None:
    Path("c.yaml").write_text("model: m.onnx\noutput: out.onnx\nrules: [offered, data]\n")
    assert load_config("c.yaml").rules == ("offered", "data")
    result = run("compile", "--config", "c.yaml", code=1)
    assert "'data' is neither installed nor loaded" in result.output
    run("compile", "--config", "c.yaml", "--rules", "mine.yaml")
    assert operators() == ["MatMul", "Tanh", "MatMul"]


def test_a_configuration_cannot_name_a_file_to_run() -> None:
    Path("c.yaml").write_text("model: m.onnx\nrules: [./mine.py]\n")
    result = run("compile", "--config", "c.yaml", code=1)
    assert "neither installed nor loaded" in result.output
    Path("c.yaml").write_text("model: m.onnx\nrules: mine.py\n")
    with pytest.raises(InvalidOption, match="rules: Input should be a valid list"):
        load_config("c.yaml")


def test_a_wrong_source_is_a_wrong_request() -> None:
    assert "no such file" in run("compile", "m.onnx", "--rules", "x.py", code=1).output
