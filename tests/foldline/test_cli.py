from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

import foldline
from foldline.cli import root
from foldline.support.option_table import OPTIONS, SHAPE_KEY
from foldline.support.passes import PASSES

ROOT = Path(__file__).resolve().parents[2]


def proto(offset: float = 2.0, dims: tuple[Any, ...] = ("N", 2)) -> onnx.ModelProto:
    """y = x + ([0, 0] + [1, offset])."""
    nodes = [
        helper.make_node("Add", ["zero", "c"], ["folded"], name="foldable"),
        helper.make_node("Add", ["x", "folded"], ["y"], name="add"),
    ]
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(dims)) for n in "xy"]
    tensors = [
        helper.make_tensor("zero", TensorProto.FLOAT, [2], [0, 0]),
        helper.make_tensor("c", TensorProto.FLOAT, [2], [1, offset]),
    ]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(autouse=True)
def _folder_with_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(proto(), "m.onnx")


def run(*arguments: str, code: int = 0, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(root, list(arguments), input=stdin)
    assert result.exit_code == code, result.output
    return result


def operators(path: str | bytes) -> list[str]:
    model = onnx.load_from_string(path) if isinstance(path, bytes) else onnx.load(path)
    return [node.op_type for node in model.graph.node if node.op_type != "Constant"]


def test_compile_writes_a_smaller_model() -> None:
    result = run("compile", "m.onnx", "-o", "out.onnx", "--check")
    assert operators("out.onnx") == ["Add"]
    assert "stage1/" in result.stdout
    assert result.stdout.splitlines()[-2:] == ["equal", "wrote out.onnx"]


@pytest.mark.parametrize(
    "flags",
    [
        ["--oo.level", "O0"],
        ["--ge.oo.level=None"],
        ["--oo_level", "O0"],
        ["--set", "oo.level=O0"],
        ["--oo.constantFolding", "false"],
        ["--disable-constant-folding"],
        ["--passes.disable", "constant-folding,prune"],
        ["--fold.skip", "op:Add"],
        ["--fold.skip", "nothing", "--fold.skip", "fold*"],
    ],
)
def test_flags_reach_the_compiler(flags: list[str]) -> None:
    run("compile", "m.onnx", "-o", "out.onnx", *flags)
    assert operators("out.onnx") == ["Add", "Add"]


def test_flags_are_stronger_than_a_configuration() -> None:
    Path("c.yaml").write_text("passes: {disable: [constant-folding]}\noutput: c.onnx\n")
    run("compile", "m.onnx", "--config", "c.yaml")
    assert operators("c.onnx") == ["Add", "Add"]
    run("compile", "m.onnx", "--config", "c.yaml", "--enable-constant-folding", "-o", "d.onnx")
    assert operators("d.onnx") == ["Add"]


def test_configuration_with_models() -> None:
    Path("c.yaml").write_text(
        "models: [{model: m.onnx, output: a.onnx}, "
        "{model: m.onnx, output: b.onnx, options: {oo.level: O0}}]"
    )
    lines = run("compile", "--config", "c.yaml", "--json").stdout.splitlines()
    assert [Path(json.loads(line)["output"]).name for line in lines] == ["a.onnx", "b.onnx"]
    assert (operators("a.onnx"), operators("b.onnx")) == (["Add"], ["Add", "Add"])
    assert "one --output" in run("compile", "--config", "c.yaml", "-o", "x.onnx", code=2).stderr


def test_json_report() -> None:
    document = json.loads(run("compile", "m.onnx", "--json", "--check").stdout)
    assert document["model"] == "m.onnx"
    assert document["output"] is None
    assert document["check"]["equal"] is True
    assert any(row["name"] == "constant-folding" for row in document["report"]["passes"])


def test_remarks_and_times() -> None:
    result = run("compile", "m.onnx", "--remarks", "constant-*", "--time", "--fold.skip", "fold*")
    assert "foldable" in result.stdout
    assert "time" in result.stdout.splitlines()[0]
    shown = run("compile", "m.onnx", "--remarks", "no-such-pass").stdout
    assert "foldable" not in shown


def test_stop_and_dump() -> None:
    run("compile", "m.onnx", "--stop-after", "prepare", "--dump-to", "d")
    files = sorted(file.name for file in Path("d").glob("*.mlir"))
    assert files == ["0.import.mlir", "1.prepare.mlir"]


def test_pipes() -> None:
    data = proto().SerializeToString()
    result = run("compile", "-", "-o", "-", stdin=data)
    assert operators(result.stdout_bytes) == ["Add"]
    assert "stage1/" in result.stderr
    assert operators(run("optimize", "-", "-", stdin=data).stdout_bytes) == ["Add"]
    assert "both go" in run("compile", "-", "-o", "-", "--json", code=2, stdin=data).stderr


def test_input_shape() -> None:
    run("compile", "m.onnx", "-o", "out.onnx", "--input-shape", "x:3,2", "--check")
    dims = onnx.load("out.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [3, 2]
    assert "not NAME:DIMS" in run("compile", "m.onnx", "--input-shape", "3,2", code=2).stderr
    message = run("compile", "m.onnx", "--input-shape", "x:3,-1", code=1).stderr
    assert "inputs.x.shape (command line): '-1' is not a dimension" in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["m.onnx", "o.onnx"],
        ["-m", "m.onnx", "-o", "o.onnx"],
        ["--model=m.onnx", "--output=o.onnx"],
        ["-m", "m.onnx", "o.onnx"],
        ["m.onnx", "-o", "o.onnx", "--ge.oo.level=O1"],
    ],
)
def test_optimize(arguments: list[str]) -> None:
    run("optimize", *arguments)
    assert operators("o.onnx") == ["Add"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["m.onnx"],
        ["-o", "o.onnx"],
        ["m.onnx", "o.onnx", "-o", "p.onnx"],
        ["m.onnx", "o.onnx", "-m", "m.onnx"],
    ],
)
def test_optimize_usage(arguments: list[str]) -> None:
    run("optimize", *arguments, code=2)
    assert not Path("o.onnx").exists()


def test_outputs_are_not_replaced_unasked() -> None:
    Path("o.onnx").write_text("precious")
    assert "--force" in run("compile", "m.onnx", "-o", "o.onnx", code=1).stderr
    assert Path("o.onnx").read_text() == "precious"
    run("compile", "m.onnx", "-o", "o.onnx", "--force")
    assert operators("o.onnx") == ["Add"]
    before = Path("m.onnx").read_bytes()
    message = run("compile", "m.onnx", "-o", "./m.onnx", "--force", code=1).stderr
    assert "is the model itself" in message
    assert Path("m.onnx").read_bytes() == before


def test_check() -> None:
    onnx.save(proto(2.5), "other.onnx")
    assert run("check", "m.onnx", "m.onnx").stdout.splitlines()[-1] == "equal"
    different = run("check", "m.onnx", "other.onnx", code=1).stdout
    assert different.splitlines()[-1] == "different"
    assert "values differ" in different
    run("check", "m.onnx", "other.onnx", "--rtol", "0.5")
    np.savez("x.npz", x=np.zeros((1, 2), np.float32))
    result = run("check", "m.onnx", "other.onnx", "--inputs", "x.npz", "--json", code=1)
    document = json.loads(result.stdout)
    given = next(case for case in document["cases"] if case["name"] == "given")
    assert (document["equal"], given["output"], given["max_error"]) == (False, "y", 0.25)


def test_run() -> None:
    np.save("x.npy", np.array([[1.0, 1.0]], np.float32))
    result = run("run", "m.onnx", "--input", "x=x.npy", "-o", "out.npz", "--repeat", "2")
    assert "2 runs" in result.stdout
    with np.load("out.npz") as outputs:
        assert outputs["y"].tolist() == [[2.0, 3.0]]
    document = json.loads(run("run", "m.onnx", "--random", "--threads", "1", "--json").stdout)
    assert document["outputs"] == [{"name": "y", "type": "float32", "shape": [2, 2]}]
    assert len(document["seconds"]) == 1
    message = run("run", "m.onnx", code=1).stderr
    assert "missing inputs: 'x' (tensor(float) ['N', 2]); give each with --input" in message
    assert "not NAME=FILE" in run("run", "m.onnx", "--input", "x.npy", code=2).stderr


def test_passes() -> None:
    lines = run("passes").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(PASSES)
    rows = json.loads(run("passes", "--json").stdout)
    assert rows[1]["switch"] == "oo.constantFolding"


def test_options() -> None:
    lines = run("options").stdout.splitlines()
    assert [line.split()[0] for line in lines[1 : len(OPTIONS) + 1]] == list(OPTIONS)
    assert json.loads(run("options", "--schema").stdout)["title"] == "ConfigurationFile"
    assert json.loads(run("options", "--json").stdout)[0]["key"] == "oo.level"
    run("options", "m.onnx", code=2)


def test_explain() -> None:
    Path("c.yaml").write_text(
        "models: [{model: m.onnx, options: {threads: 1}}]\noptions: {oo.level: O1, threads: 2}"
    )
    flags = ["--explain", "m.onnx", "--config", "c.yaml", "--disable-prune", "--json"]
    rows = {row["key"]: row for row in json.loads(run("options", *flags).stdout)}
    assert (rows["threads"]["value"], rows["threads"]["origin"]) == (1, "c.yaml: m.onnx")
    assert (rows["oo.level"]["value"], rows["oo.level"]["origin"]) == ("O1", "c.yaml")
    assert (rows["mode"]["value"], rows["mode"]["origin"]) == ("fast", "default")
    assert (rows["prune"]["value"], rows["prune"]["origin"]) == (False, "disabled by command line")
    assert "false" in run("options", "--explain").stdout


def test_ops() -> None:
    rows = json.loads(run("ops", "Add", "--json").stdout)
    assert [(row["domain"], row["versions"]) for row in rows] == [("", [1, 6, 7, 13, 14])]
    assert rows[0]["kernels"]
    assert "MatMul" in run("ops").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["compil", "m.onnx"], 2, "there is no command 'compil'; did you mean 'compile'?"),
        (["compile", "m.onnx", "--oo.levle", "O1"], 2, "--oo.level"),
        (["compile"], 2, "missing MODEL"),
        (["compile", "--config", "default"], 2, "missing MODEL"),
        (["compile", "absent.onnx"], 1, "absent.onnx"),
        (["compile", "m.onnx", "--export.fused", "fnctions"], 1, "did you mean 'functions'?"),
        (["compile", "m.onnx", "--set", "oo.levle=O1"], 1, "did you mean 'oo.level'?"),
        (["compile", "m.onnx", "--set", "oo.level"], 2, "is not KEY=VALUE"),
        (["compile", "m.onnx", "--oo.level=O1", "--set", "oo.level=O1"], 2, "is set twice"),
        (["compile", "m.onnx", "--set", "mode=fast", "--set", "ge.mode=fast"], 1, "already said"),
        (["compile", "m.onnx", "--stop-after", "stage3"], 1, "'stage3' is not a stage"),
        (["compile", "m.onnx", "--disable-infer-shapes"], 1, "cannot be disabled"),
        (["compile", "m.onnx", "--config", "defalut"], 1, "did you mean 'default'?"),
        (["check", "-", "-"], 2, "only one"),
    ],
)
def test_wrong_requests(arguments: list[str], code: int, message: str) -> None:
    result = run(*arguments, code=code)
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not result.stdout


def test_all_wrong_options_are_said_at_once() -> None:
    message = run("compile", "m.onnx", "--mode=slow", "--threads=0", "--fold.maxBytes=x", code=1)
    assert message.stderr.startswith("Error: 3 things are wrong with the options:\n")


def test_a_broken_model_is_the_users_error() -> None:
    Path("bad.onnx").write_bytes(b"\x00not a model")
    result = run("compile", "bad.onnx", "-o", "out.onnx", code=1)
    assert result.stderr.startswith("Error: 'bad.onnx' is no ONNX model: 12 bytes")
    assert not Path("out.onnx").exists()
    model = proto()
    model.graph.node[1].input[0] = "X"
    onnx.save(model, "bad.onnx")
    assert run("compile", "bad.onnx", code=1).stderr == (
        "Error: 'bad.onnx': graph: node 'add' (Add) reads 'X', which nothing defines; "
        "did you mean 'x'?\n"
    )


def test_what_import_changes_or_ignores_is_said_unasked() -> None:
    model = proto()
    model.graph.node.reverse()
    onnx.save(model, "unsorted.onnx")
    note = "note: graph: nodes were not in topological order and have been sorted\n"
    assert note in run("compile", "unsorted.onnx").stdout
    assert "note:" not in run("compile", "m.onnx").stdout


def test_internal_error_leaves_a_reproducer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **keywords: Any) -> None:
        raise KeyError("boom")

    monkeypatch.setattr("foldline.compiler.Compiler.compile", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = run("compile", "m.onnx", "--oo.level=O1", code=3)
    folder = Path(result.stderr.split()[-1])
    assert folder.parent == tmp_path
    assert "foldline compile m.onnx --oo.level=O1" in (folder / "command.txt").read_text()
    assert "KeyError: 'boom'" in (folder / "traceback.txt").read_text()
    assert f"numpy {np.__version__}" in (folder / "versions.txt").read_text()
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["compile", "optimize", "run", "options"])
def test_every_option_and_pass_has_a_flag(command: str) -> None:
    context = click.Context(root.commands[command])
    spellings = {s for p in root.commands[command].params for s in (*p.opts, *p.secondary_opts)}
    for row in OPTIONS.values():
        if row.key != SHAPE_KEY:
            assert {f"--{row.key}", f"--ge.{row.key}", f"--{row.underscored}"} <= spellings
    for name in PASSES:
        assert {f"--enable-{name}", f"--disable-{name}"} <= spellings
    assert "--ge.oo.level" not in root.commands[command].get_help(context)


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert foldline.__version__ == project["version"]
    assert foldline.__version__ in run("--version").stdout


def test_public_names() -> None:
    for name in foldline.__all__:
        assert getattr(foldline, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = foldline.no_such_name


LIGHT = """
import sys
sys.argv = ["foldline", "{argument}"]
from foldline.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
print([name for name in ("onnx", "xdsl", "numpy", "pydantic") if name in sys.modules])
"""


@pytest.mark.parametrize("argument", ["--help", "--version", "passes", "options"])
def test_light_commands_load_no_heavy_library(argument: str) -> None:
    command = [sys.executable, "-c", LIGHT.format(argument=argument)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_support_loads_no_heavy_library() -> None:
    code = "import sys, foldline.support.options; print({'onnx', 'xdsl'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


def test_module_is_the_command() -> None:
    command = [sys.executable, "-m", "foldline", "check", "--help"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.startswith("Usage: foldline check")
