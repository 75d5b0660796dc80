"""`foldline-opt`: models, text and dumps in, text out; what is wrong is one message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import foldline
from foldline.cli.opt import main
from foldline.support.debug_options import DebugOptions
from tests.foldline.test_compiler import foldable

PIPELINE = "infer-shapes,constant-folding{max-bytes=4096},prune"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(foldable(), path)
    return path


def test_a_model_goes_through_passes(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(model)])
    before = capsys.readouterr().out
    main([str(model), "-p", PIPELINE])
    after = capsys.readouterr().out
    assert (before.count("onnx.Add"), after.count("onnx.Add")) == (2, 1)


def test_text_that_was_written_is_read(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(model), "-o", str(model.with_suffix(".mlir"))])
    main([str(model.with_suffix(".mlir")), "-p", PIPELINE])
    assert capsys.readouterr().out.count("onnx.Add") == 1


def test_a_dump_has_its_tensors_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = foldable()
    weights = numpy_helper.from_array(np.full((2000, 4), 7, np.float32), "large")
    large.graph.initializer.append(weights)
    large.graph.node.append(onnx.helper.make_node("Sin", ["large"], ["sine"]))
    large.graph.output.append(
        onnx.helper.make_tensor_value_info("sine", onnx.TensorProto.FLOAT, None)
    )
    foldline.compile(large, debug=DebugOptions(dump_to=str(tmp_path), stop_after="prepare"))
    main([str(tmp_path / "0.import.mlir"), "-p", "infer-shapes"])
    assert "tensor<2000x4xf32>" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "no-such-pass"], "no-such-pass"),
        (["-p", "prune{nothing=1}"], "nothing"),
        (["-p", "prune{"], "prune{"),
    ],
)
def test_wrong_pipelines_are_named(model: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message) as stopped:
        main([str(model), *arguments])
    assert str(stopped.value).startswith("Error: ")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.write_bytes(b"")
    with pytest.raises(SystemExit, match="is no ONNX model: it is empty"):
        main([str(path)])
    with pytest.raises(SystemExit, match="No such file"):
        main([str(tmp_path / "absent.onnx")])


def test_the_script_runs(model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "foldline.cli.opt", str(model), "-p", PIPELINE],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("onnx.Add") == 1
