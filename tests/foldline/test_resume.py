"""A compile that goes on from a dump ends as one that ran through."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result

import foldline
from foldline.cli import root
from foldline.support.debug_options import resolve_debug
from foldline.support.errors import FoldlineError, InvalidArgumentError, InvalidModel
from foldline.support.passes import STAGES
from tests.stages.check import onnx_model

DUMPS = ["0.import", *(f"{n}.{name}" for n, name in enumerate(STAGES, 1))]


def model() -> onnx.ModelProto:
    """Folding in a body too, and constants large enough for the file beside dumps."""
    many = ", ".join(map(str, range(40)))
    return onnx_model(f"""g (float[N, 3] x, bool c) => (float[M, 3] y)
        <float[40] k = {{{many}}}, float one = {{1}}, int64[2] s = {{-1, 3}}> {{
        two = Add (one, one)
        ks = Sum (k, two)
        sum = ReduceSum <keepdims = 0> (ks)
        r = Reshape (x, s)
        b = If (c) <
            then_branch = g1 () => (t) {{ e = Mul (two, two) t = Mul (r, e) }},
            else_branch = g2 () => (f) {{ f = Neg (r) }}
        >
        y = Mul (b, sum)
    }}""")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(), "m.onnx")
    debug = resolve_debug({"dump-to": "d"})
    foldline.compile("m.onnx", debug=debug).save("whole.onnx")
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(root, list(arguments))
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(("dump", "stage"), list(zip(DUMPS, STAGES, strict=False)))
def test_from_each_stage(folder: Path, dump: str, stage: str) -> None:
    resumed = foldline.resume(f"d/{dump}.mlir", stage)
    assert resumed.to_bytes() == Path("whole.onnx").read_bytes()
    assert {row.stage for row in resumed.report.rows} == set(STAGES[STAGES.index(stage) :])
    run("compile", "--start-at", stage, f"d/{dump}.mlir", "-o", f"{stage}.onnx")
    assert Path(f"{stage}.onnx").read_bytes() == Path("whole.onnx").read_bytes()


def test_stops_and_options_hold(folder: Path) -> None:
    arguments = ["--start-at", "prepare", "d/0.import.mlir", "--stop-after", "stage1"]
    result = run("compile", *arguments, "-o", "o.onnx", "--disable-constant-folding")
    assert "stage1/" in result.stdout
    assert "stage2" not in result.stdout
    assert "Sum" in {node.op_type for node in onnx.load("o.onnx").graph.node}


def test_checked_against_the_model(folder: Path) -> None:
    arguments = ["--start-at", "stage1", "d/1.prepare.mlir", "--check"]
    assert "equal" in run("compile", "m.onnx", *arguments).stdout
    assert "--check needs the MODEL" in run("compile", *arguments, code=2).stderr


def test_what_cannot_be_resumed(folder: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="'stage3' is not a stage"):
        foldline.resume("d/1.prepare.mlir", "stage3")
    with pytest.raises(InvalidModel, match=r"'m.onnx' is no dump"):
        foldline.resume("m.onnx", "stage1")
    Path("half.mlir").write_text(Path("d/1.prepare.mlir").read_text()[:-200])
    with pytest.raises(InvalidModel, match=r"'half.mlir' is no dump"):
        foldline.resume("half.mlir", "stage1")
    with pytest.raises(InvalidArgumentError, match="dump elsewhere"):
        foldline.resume("d/1.prepare.mlir", "stage1", debug=resolve_debug({"dump-to": "d"}))
    with pytest.raises(FoldlineError, match="cannot be pinned"):
        foldline.resume("d/1.prepare.mlir", "stage1", options={"inputs.x.shape": [2, 3]})
    assert "absent.mlir" in run("compile", "--start-at", "stage1", "absent.mlir", code=1).stderr
