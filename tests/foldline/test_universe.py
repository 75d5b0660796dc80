"""Stock xDSL tools see the dialects and passes of the installed package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from xdsl.universe import Universe

from foldline.importer import import_model
from foldline.universe import UNIVERSE
from tests.foldline.test_compiler import foldable


def test_names_clash_with_none_of_xdsl() -> None:
    from xdsl.universe import XDSL_UNIVERSE

    assert not UNIVERSE.all_dialects.keys() & XDSL_UNIVERSE.all_dialects.keys()
    assert not UNIVERSE.all_passes.keys() & XDSL_UNIVERSE.all_passes.keys()
    assert not UNIVERSE.all_frontends.keys() & XDSL_UNIVERSE.all_frontends.keys()


@pytest.mark.parametrize("name", ["model.mlir", "model.onnx"])
def test_stock_xdsl_opt_runs_a_pass(tmp_path: Path, name: str) -> None:
    if "onnx" not in Universe.get_multiverse().all_frontends:
        pytest.skip("entry points need the package installed")
    path = tmp_path / name
    if path.suffix == ".onnx":
        onnx.save(foldable(), path)
    else:
        path.write_text(str(import_model(foldable())))
    code = "from xdsl.tools.xdsl_opt import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), "-p", "infer-shapes,constant-folding"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("onnx.Add") == 1
    assert "onnx.Constant" in done.stdout
