"""Observers: dumps that load again, printing, timing, verifying."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest
from xdsl.context import Context

from foldline.dialects import load_dialects
from foldline.dialects.onnx.equality import difference
from foldline.stages.context import PassContext
from foldline.stages.inference.joining import opened
from foldline.stages.observers import TENSORS, Dump, Observer, PrintAfter, Time, Verify, load_dump
from foldline.stages.pipeline import PIPELINE
from foldline.stages.run import run_pipeline
from foldline.stages.stage import Stage
from foldline.support.errors import InvalidModel, PassFailed
from foldline.support.options import resolve
from tests.stages.check import from_onnx, nodes

MODEL = """g (float[20] x) => (float[20] y) <float[20] w = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}> {
    a = Neg(w) b = Identity(x) y = Add(a, b)
}"""


def dumped(folder: Path, **keywords: bool) -> list[str]:
    run_pipeline(from_onnx(MODEL), resolve({}), observers=[Dump(folder, **keywords)])
    return sorted(path.name for path in folder.iterdir())


def test_a_dump_of_each_stage(tmp_path: Path) -> None:
    assert dumped(tmp_path / "out") == [
        "0.import.mlir",
        "1.prepare.mlir",
        "2.stage1.mlir",
        "3.stage2.mlir",
        "4.before_fusion.mlir",
        "5.fusion.mlir",
        TENSORS,
    ]


def test_a_dump_of_each_pass_that_changed_something(tmp_path: Path) -> None:
    names = dumped(tmp_path, each_pass=True)
    assert [name.split(".")[1::2] for name in names if name.count(".") > 2] == [
        ["prepare", "infer-shapes+constant-folding"],
        ["stage1", "eliminate-identity"],
    ]
    assert "1.prepare.03.infer-shapes+constant-folding.mlir" in names


def test_dumps_load_again_and_go_on(tmp_path: Path) -> None:
    dumped(tmp_path)
    context = Context()
    load_dialects(context)
    assert difference(load_dump(tmp_path / "0.import.mlir", context), from_onnx(MODEL)) is None
    module = load_dump(tmp_path / "1.prepare.mlir", context)
    run_pipeline(module, resolve({}), start_at="stage1")
    assert difference(module, load_dump(tmp_path / "5.fusion.mlir", context)) is None
    assert '#onnx.tensor<"t' in (tmp_path / "5.fusion.mlir").read_text()


def test_what_a_failure_leaves_is_dumped(tmp_path: Path) -> None:
    module = from_onnx("g (float[2, 3] x) => (float[?, ?] y) { y = MatMul(x, x) }")
    with pytest.raises(InvalidModel):
        run_pipeline(module, resolve({}), observers=[Dump(tmp_path)])
    assert (tmp_path / "1.prepare.failed.mlir").exists()


@pytest.mark.parametrize(
    ("names", "times"),
    [(["prune"], 4), (["constant-folding"], 4), (["stage1/constant-folding"], 1), (["none"], 0)],
)
def test_printing_after_passes(names: list[str], times: int) -> None:
    stream = io.StringIO()
    run_pipeline(from_onnx(MODEL), resolve({}), observers=[PrintAfter(names, stream)])
    assert stream.getvalue().count("builtin.module") == times


def test_times_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "foldline.time")
    run_pipeline(from_onnx(MODEL), resolve({}), observers=[Time()])
    steps = [
        (stage.name, [p.run.name for p in step.placed])
        for stage in PIPELINE
        for step in stage.steps
    ]
    options = resolve({})
    assert [message.split("  ")[-1] for message in caplog.messages] == [
        f"{stage}/{'+'.join(filter(options.enabled, names))}" for stage, names in steps
    ]


def test_stages_leave_types_that_inference_would_not_change() -> None:
    verify = Verify(each_pass=True, inference=True)
    report = run_pipeline(from_onnx(MODEL), resolve({}), observers=[verify])
    assert report.rows[-1].nodes_after == 1


class Forgetting(Observer):
    """Drops a type at the end of a stage."""

    def after_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        value = nodes(context.module)[-1].results[0]
        context.rewriter.set_type(value, opened(value.type))


def test_types_that_inference_would_change_are_found() -> None:
    with pytest.raises(PassFailed, match="prepare left types that inference would change"):
        run_pipeline(
            from_onnx(MODEL), resolve({}), observers=[Forgetting(), Verify(inference=True)]
        )
