"""Starting is cheap: what a command does not need is not loaded, and oracles never are."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.tree import ROOT

HELP = """
sys.argv = ["foldline", "--help"]
from foldline.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
COMPILE_AND_RUN = """
import numpy
from onnx import TensorProto, helper
import foldline
value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x")], [value("y")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
feed = {"x": numpy.ones(2, numpy.float32)}
assert foldline.compile(model).session().run(None, feed)[0].tolist() == [1.0, 1.0]
"""


def loaded(code: str, *, of: tuple[str, ...]) -> list[str]:
    """Which of some modules a fresh interpreter has loaded after running `code`."""
    report = f"print(*[name for name in {of!r} if name in sys.modules], sep=',', file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import sys\n{code}\n{report}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return [name for name in result.stderr.splitlines()[-1].split(",") if name]


@pytest.mark.parametrize("code", ["import foldline", "import foldline.support", HELP])
def test_starting_loads_no_heavy_library(code: str) -> None:
    assert not loaded(code, of=("onnx", "xdsl", "numpy"))


def test_running_a_model_loads_no_oracle() -> None:
    assert not loaded(COMPILE_AND_RUN, of=("onnxruntime", "onnx.reference"))


def test_the_check_sees_a_loaded_module() -> None:
    assert loaded("import numpy", of=("onnx", "numpy")) == ["numpy"]
