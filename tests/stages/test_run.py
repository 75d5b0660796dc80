"""Running the pipeline: options, rows, bounds, failures, what a whole compile keeps."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.ir import Operation

from foldline.dialects.onnx.attributes import InterfaceAttr
from foldline.dialects.onnx.structure import main_graph, terminator
from foldline.stages.context import PassContext
from foldline.stages.observers import Observer
from foldline.stages.pass_base import GraphPass
from foldline.stages.passes.cleanup.prune import Prune
from foldline.stages.pipeline import PIPELINE
from foldline.stages.run import run_pipeline
from foldline.stages.stage import Stage, whole
from foldline.support.errors import InvalidArgumentError, InvalidModel, PassFailed
from foldline.support.options import resolve
from foldline.support.passes import PASSES
from foldline.support.report import NO_PASSES, Report
from tests.stages.check import from_onnx, op_types, values

MODEL = """g (float[2, 3] x) => (float[3, 2] y)
<float[3] w = {1, -2, 3}, float[3] v = {1, -2, 3}, int64[2] s = {3, 2}> {
    [neg] a = Neg(w) [abs] b = Abs(a) [id] i = Identity(x) [dead] d = Sin(x)
    [add] e = Add(i, b) [mul] f = Mul(e, v) [shape] y = Reshape(f, s)
}"""
FEED = {"x": np.float32([[np.nan, np.inf, -0.0], [1, -1, 1e-40]])}


def run(text: str = MODEL, **given: Any) -> tuple[Any, Report]:
    module = from_onnx(text)
    options = {key.replace("__", "."): value for key, value in given.items()}
    keywords = {k: options.pop(k) for k in ("stop_after", "start_at", "observers") if k in options}
    return module, run_pipeline(module, resolve(options), **keywords)


def rows(report: Report) -> list[tuple[str, str, int, int]]:
    return [(r.stage, r.name, r.nodes_before, r.nodes_after) for r in report.rows]


def test_the_table_of_a_compile() -> None:
    module, report = run(oo__level="O1")
    assert op_types(module) == ["Add", "Mul", "Reshape"]
    assert [row for row in rows(report) if row[2] != row[3]] == [
        ("prepare", "constant-folding", 7, 5),
        ("stage1", "eliminate-identity", 5, 4),
        ("stage1", "prune", 4, 3),
    ]
    options = resolve({"oo.level": "O1"})
    assert [row[:2] for row in rows(report) if row[1] != NO_PASSES] == [
        (stage.name, placed.run.name)
        for stage in PIPELINE
        for step in stage.steps
        for placed in step.placed
        if options.enabled(placed.run.name)
    ]
    assert all(a[3] == b[2] for a, b in pairwise(rows(report)))
    assert report.seconds >= sum(row.seconds for row in report.rows) > 0
    assert {(e.engine, e.op_type, e.computed) for e in report.engines} == {
        ("host", "Neg", 1),
        ("host", "Abs", 1),
    }
    assert not report.bounds
    assert {r.node for r in report.remarks if r.kind == "applied"} >= {"neg", "abs", "id", "dead"}


def test_the_lowest_level_changes_nothing() -> None:
    module, report = run(oo__level="O0")
    assert str(module) == str(from_onnx(MODEL))
    assert {row.name for row in report.rows} == {NO_PASSES}
    assert [row.stage for row in report.rows] == [
        *("prepare", "stage1", "stage2", "before_fusion", "fusion")
    ]


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_levels_keep_the_bits(level: str) -> None:
    before = values(from_onnx(MODEL), FEED)
    after = values(run(oo__level=level)[0], FEED)
    for old, new in zip(before, after, strict=True):
        assert old.tobytes() == new.tobytes()


def test_switches_turn_passes_off() -> None:
    module, report = run(oo__level="O2", oo__constantFolding=False)
    assert "constant-folding" not in {row.name for row in report.rows}
    assert op_types(module)[:2] == ["Neg", "Abs"]
    module, _ = run(oo__level="O2", passes__disable=["prune", "eliminate-identity"])
    assert op_types(module) == ["Identity", "Sin", "Add", "Mul", "Reshape"]


def test_optimising_again_changes_nothing() -> None:
    module, _ = run()
    before = str(module)
    run_pipeline(module, resolve({}))
    assert str(module) == before


def test_stages_can_be_left_out() -> None:
    module, report = run(stop_after="prepare")
    assert {row.stage for row in report.rows} == {"prepare"}
    assert op_types(module) == ["Identity", "Sin", "Add", "Mul", "Reshape"]
    report = run_pipeline(module, resolve({}), start_at="stage1", stop_after="stage2")
    assert {row.stage for row in report.rows} == {"stage1", "stage2"}
    assert op_types(module) == ["Add", "Mul", "Reshape"]
    with pytest.raises(InvalidArgumentError, match="'stage' is not a stage; did you mean 'stage2'"):
        run(stop_after="stage")


class Listening(Observer):
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.gc_is_on = True

    def before_pipeline(self, context: PassContext) -> None:
        self.heard.append("begin")
        self.gc_is_on = gc.isenabled()

    def after_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        self.heard.append(f"{number}.{stage.name}")

    def after_failure(self, where: str, context: PassContext) -> None:
        self.heard.append(f"failed {where}")


def test_the_collector_is_paused_while_stages_run() -> None:
    listening = Listening()
    run(observers=[listening])
    assert not listening.gc_is_on
    assert gc.isenabled()


def test_a_failing_pass_is_named() -> None:
    listening = Listening()
    text = "g (float[2, 3] x) => (float[?, ?] y) { [bad] y = MatMul(x, x) }"
    with pytest.raises(InvalidModel, match=r"^prepare/infer-shapes: .* 'bad'") as caught:
        run(text, observers=[listening])
    begin, failed = listening.heard
    assert begin == "begin"
    assert failed.startswith("failed prepare/infer-shapes+")
    inner, note = caught.value.__notes__
    assert inner == "in infer-shapes at onnx.MatMul (node 'bad')"
    assert note.startswith("while prepare/infer-shapes+")
    assert note.endswith("ran; before it: prepare/inline-functions, prepare/protect-quantisation")


@dataclass(frozen=True)
class Vandal(GraphPass):
    """Breaks the model: the interface names an output too many."""

    name = "prune"
    INFO: ClassVar = PASSES["prune"]

    def run(self, context: PassContext) -> None:
        end = terminator(main_graph(context.module).body.block)
        end.properties["interface"] = InterfaceAttr(type(end.interface.data)())


def test_ir_that_a_stage_broke_is_found_after_it() -> None:
    listening = Listening()
    module = from_onnx(MODEL)
    stages = [Stage("one", "nothing"), Stage("two", "nothing", (whole(Vandal(), "to test"),))]
    with pytest.raises(PassFailed, match="two left a module that does not verify"):
        run_pipeline(module, resolve({}), observers=[listening], stages=stages)
    assert listening.heard == ["begin", "1.one", "failed two"]
    run_pipeline(from_onnx(MODEL), resolve({}), verify=False, stages=stages)


def test_a_broken_promise_is_found_unless_its_pass_is_off() -> None:
    def illegal(op: Operation, context: PassContext) -> bool:
        return op.name != "onnx.Neg"

    stages = [Stage("one", "no Neg is left", (whole(Prune(), "to test"),), illegal, ("prune",))]
    with pytest.raises(PassFailed, match=r"one: onnx\.Neg \(node 'neg'\) breaks .* no Neg is left"):
        run_pipeline(from_onnx(MODEL), resolve({}), stages=stages)
    run_pipeline(from_onnx(MODEL), resolve({"passes.disable": ["prune"]}), stages=stages)


def test_every_stage_promise_holds_where_folding_is_refused() -> None:
    text = """g (float[2] x) => (float[2] y, float[2] n, float[2] r) <float[2] w = {1, 2}> {
        a = Neg(w) y = Add(a, x) n = Abs(w) r = RandomNormal<shape = [2]>()
    }"""
    _, report = run(text, fold__skip=["op:Neg"])
    reasons = {r.op_type: r.message for r in report.remarks if r.stage == "before_fusion"}
    assert reasons == {
        "onnx.Neg": "fold.skip has 'op:Neg'",
        "onnx.Abs": "it names the output 'n' of the model and fold.graphOutputs is false",
        "onnx.RandomNormal": "it draws random numbers",
    }
