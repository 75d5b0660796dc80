from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

import foldline
from foldline.cli import root
from foldline.config import PACKAGED, Entry, configuration_schema, load_config
from foldline.support.debug_options import DebugOptions, resolve_debug
from foldline.support.errors import InvalidOption
from foldline.support.options import resolve


def write(folder: Path, text: str) -> Path:
    file = folder / "c.yaml"
    file.write_text(text)
    return file


def refusal(folder: Path, text: str) -> list[str]:
    """What is said to be wrong, without the name of the file."""
    file = write(folder, text)
    with pytest.raises(InvalidOption) as caught:
        load_config(file)
    lines = [line.strip() for line in str(caught.value).splitlines() if str(file) in line]
    return [line.removeprefix(f"{file}: ") for line in lines]


def test_one_model(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
model: model.onnx
output: out/model.opt.onnx
options: {oo.level: None, ge.fold.maxBytes: 1KiB}
passes: {enable: [prune], disable: [merge-equal-constants]}
inputs: {image: {shape: [1, null, 224, "?"]}}
debug: {stop-after: stage1, dump-to: dumps, remarks: [constant-folding], check: stages}
""",
    )
    configuration = load_config(file)
    assert configuration.entries == (
        Entry(tmp_path / "model.onnx", tmp_path / "out/model.opt.onnx", {}),
    )
    options = resolve({}, configuration.options)
    assert (options.level, options["fold.maxBytes"]) == ("O0", 1024)
    assert options.enabled("prune")
    assert options["passes.disable"] == ("merge-equal-constants",)
    assert options.input_shapes == {"image": (1, None, 224, None)}
    assert resolve_debug({}, configuration.debug) == DebugOptions(
        stop_after="stage1", dump_to=tmp_path / "dumps", remarks=("constant-folding",)
    )
    assert configuration.check == "stages"


def test_several_models(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
models:
  - a.onnx
  - {model: /abs/b.onnx, output: b.opt.onnx, options: {threads: 1}, inputs: {x: {shape: []}}}
options: {threads: 2}
""",
    )
    configuration = load_config(file)
    assert configuration.entries == (
        Entry(tmp_path / "a.onnx", None, {}),
        Entry(Path("/abs/b.onnx"), tmp_path / "b.opt.onnx", {"threads": 1, "inputs.x.shape": ()}),
    )
    assert configuration.options == {"threads": 2}
    assert configuration.entry_for(Path("/abs/b.onnx")).options["threads"] == 1
    assert configuration.entry_for(Path("other.onnx")) == Entry(Path("other.onnx"), None, {})


def test_empty_file_says_nothing(tmp_path: Path) -> None:
    configuration = load_config(write(tmp_path, ""))
    assert (configuration.entries, configuration.options, configuration.debug) == ((), {}, {})
    assert configuration.check is None


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    found = refusal(
        tmp_path,
        """
modles: 3
options: {oo.levle: O1, mode: slow, passes.enable: prune}
passes: {enable: [prun], enabel: 2}
inputs: {image: {shape: [1, x]}, b: {shpae: 3}}
models: [{model: c, optoins: {}, options: {threads: 0}}]
output: o.onnx
debug: {stop-afte: 3, stop-after: stage9, time: maybe}
""",
    )
    for start in (
        "modles: unknown key; did you mean 'models'?",
        "oo.levle (options): unknown option; did you mean 'oo.level'?",
        "mode (options): 'slow' is not valid; valid: exact, fast",
        "options.passes.enable: already said as passes.enable",
        "passes.enabel: unknown key; did you mean 'enable'?",
        "passes.enable (options): 'prun' is not a pass; did you mean 'prune'?",
        "inputs.image.shape (options): 'x' is not a dimension",
        "inputs.b.shpae: unknown key; did you mean 'shape'?",
        "inputs.b.shape: Field required",
        "models.0.optoins: unknown key; did you mean 'options'?",
        "threads (models.0.options): 0 is not valid",
        "output: cannot stand beside models",
        "debug.stop-afte: unknown key; did you mean 'stop-after'?",
        "stop-after (debug): 'stage9' is not a stage",
        "time (debug): 'maybe' is neither true nor false",
    ):
        assert any(line.startswith(start) for line in found), start
    assert len(found) == 15


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: a\nmodels: [b]", "models: cannot stand beside model"),
        ("model: 3", "model: Input should be a valid string"),
        ("models: a.onnx", "models: Input should be a valid list"),
        ("models: [{output: a}]", "models.0.model: Field required"),
        ("options: [a]", "options: Input should be a valid dictionary"),
        ("inputs: {x: [1]}", "inputs.x: Input should be a valid dictionary"),
        ("debug: {dump-to: 3}", "dump-to (debug): 3 is not a folder"),
        ("debug: {check: often}", "debug.check: Input should be 'end', 'stages', 'passes' or"),
        ("passes: {enable: }", "passes.enable (options): None is not valid"),
    ],
)
def test_one_thing_wrong(tmp_path: Path, text: str, message: str) -> None:
    (found,) = refusal(tmp_path, text)
    assert found.startswith(message)


def test_unknown_file() -> None:
    with pytest.raises(InvalidOption, match="no packaged configuration; did you mean 'stepping'"):
        load_config("steping")


def test_schema_names_every_key() -> None:
    schema = json.loads(json.dumps(configuration_schema()))
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {
        *("model", "models", "output", "options", "passes", "inputs", "rules", "debug")
    }
    options = schema["properties"]["options"]
    assert options["additionalProperties"] is False
    assert options["properties"]["mode"]["enum"] == ["fast", "exact"]
    assert options["properties"]["weightClip"]["enum"] == [True, False]
    assert {"ge.oo.level", "oo_level", "oo.level"} <= set(options["properties"])
    debug = schema["$defs"]["DebugSettings"]["properties"]
    assert "stop-after" in debug
    assert debug["check"]["anyOf"][0]["enum"] == ["end", "stages", "passes", "revert"]
    passes = schema["$defs"]["PassLists"]["properties"]["enable"]["anyOf"][0]["items"]["enum"]
    assert "constant-folding" in passes


def example(path: Path) -> None:
    """Write y = Identity(x + (c + c)) with an unused Neg: foldable, removable and dead work."""
    nodes = [
        helper.make_node("Add", ["c", "c"], ["twice"], name="double"),
        helper.make_node("Add", ["x", "twice"], ["sum"], name="sum"),
        helper.make_node("Neg", ["x"], ["unused"], name="dead"),
        helper.make_node("Identity", ["sum"], ["same"], name="same"),
        helper.make_node("Relu", ["same"], ["y"], name="relu"),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2]) for name in "xy"]
    constant = helper.make_tensor("c", TensorProto.FLOAT, [2], [1.0, -2.0])
    graph = helper.make_graph(nodes, "g", value[:1], value[1:], [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


LEFT = {
    "default": ["Add", "Relu"],
    "no-folding": ["Add", "Add", "Relu"],
    "folding-only": ["Add", "Identity", "Relu"],
    "exact": ["Add", "Relu"],
    "stepping": ["Add", "Relu"],
}
"""Operators left of the example, Constants aside."""


def test_every_packaged_configuration_is_run_here() -> None:
    assert {file.stem for file in PACKAGED.glob("*.yaml")} == set(LEFT)


@pytest.mark.parametrize("name", LEFT)
def test_packaged_configuration(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example(Path("m.onnx"))
    arguments: list[Any] = ["compile", "m.onnx", "-o", "out.onnx", "--config", name, "--check"]
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == 0, result.output
    ops = [node.op_type for node in onnx.load("out.onnx").graph.node]
    assert [op for op in ops if op != "Constant"] == LEFT[name]
    x = np.array([[1.0, 1.0]], np.float32)
    (y,) = foldline.compile("out.onnx").session().run(None, {"x": x})
    assert y.tolist() == [[3.0, 0.0]]
    dumps = sorted(file.name for file in Path("foldline-dump").glob("*"))
    assert bool(dumps) == (name == "stepping")
    if name == "stepping":
        assert any("constant-folding" in dump for dump in dumps)
        assert "time" in result.output
