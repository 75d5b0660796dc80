import json
from pathlib import Path

from click.testing import CliRunner
from onnx import parser, save_model

from foldline.cli.run import run_command

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 8] x) => (float[4, 8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
    a = Mul(x, w)
    y = Softmax(a)
}"""


def _run(tmp_path: Path, *flags: str) -> str:
    path = tmp_path / "model.onnx"
    save_model(parser.parse_model(MODEL), path)
    result = CliRunner().invoke(run_command, [str(path), "--random", *flags])
    assert result.exit_code == 0, result.output
    return result.output


def test_profile_shows_steps_kernels_and_memory(tmp_path: Path) -> None:
    lines = _run(tmp_path, "--profile").splitlines()
    assert lines[0].split() == ["step", "kernel", "calls", "time", "%", "MB", "GFLOP/s"]
    steps = [line for line in lines if line.startswith("onnx.")]
    assert {line.split()[0] for line in steps} == {"onnx.Mul", "onnx.Softmax"}
    assert any(line.startswith("10 runs: ") for line in lines)
    assert "weights: 0.000 MB, mapped 0.000 MB" in lines


def test_profile_as_json(tmp_path: Path) -> None:
    document = json.loads(_run(tmp_path, "--profile", "--json", "--repeat", "12"))
    assert document["runs"] == 12
    assert {step["operator"] for step in document["steps"]} == {"Mul", "Softmax"}
    assert document["memory"]["weights"] == 32
    assert document["memory"]["plans"][0]["arena"] > 0


def test_a_trace_is_written(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    _run(tmp_path, "--trace", str(trace))
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["name"].split()[0] for event in events if event["ph"] == "X"} >= {"onnx.Softmax"}
