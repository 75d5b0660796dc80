"""A run that stands still before each step can be copied, cut between two changes, and repeated."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import pytest

from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.gate import Gate, up_to
from foldline.stages.observers import module_text
from foldline.stages.run import PipelineRun, Place, run_pipeline
from foldline.support.options import resolve
from foldline.support.report import PassRow

MODEL = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[N, 8] x) => (float[N, 8] y, float[N, 4] z)
<float[2, 2] m = {1, 2, 3, 4}, float[8] b = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] axis = {1}>
{
    shape = Shape(x)
    zero = Constant <value_int = 0> ()
    n = Gather <axis = 0> (shape, zero)
    axes = Constant <value_ints = [0]> ()
    batch = Unsqueeze(n, axes)
    rest = Constant <value_ints = [2, 4]> ()
    target = Concat <axis = 0> (batch, rest)
    [same] same = Identity(x)
    tall = Constant <value_ints = [4, 4]> ()
    w = Tile(m, tall)
    [product] p = MatMul(same, w)
    [sum] s = Add(p, b)
    [relu] y = Relu(s)
    r = Reshape(y, target)
    t = Transpose <perm = [0, 2, 1]> (r)
    u = Transpose <perm = [0, 2, 1]> (t)
    [most] most = ReduceMax <keepdims = 0> (u, axis)
    z = Identity(most)
}
"""


def a_run(level: str = "O3") -> PipelineRun:
    module = import_model(onnx.parser.parse_model(MODEL))
    return PipelineRun(PassContext(module, resolve({"oo.level": level})))


def to_the_end(run: PipelineRun) -> PipelineRun:
    while run.due is not None:
        run.advance()
    return run


def rows(found: Sequence[PassRow]) -> list[tuple[str, str, int, int, int]]:
    return [(r.stage, r.name, r.nodes_before, r.nodes_after, r.changes) for r in found]


def text(run: PipelineRun) -> str:
    return module_text(run.context.module)


def steps_before(run: PipelineRun, name: str) -> PipelineRun:
    while run.due is not None and name not in run.due.passes:
        run.advance()
    return run


def test_it_does_what_the_pipeline_does() -> None:
    run = to_the_end(a_run())
    module = import_model(onnx.parser.parse_model(MODEL))
    report = run_pipeline(module, resolve({"oo.level": "O3"}), verify=False)
    assert text(run) == module_text(module)
    assert rows(run.report.rows) == rows(report.rows)
    assert run.report.remarks == report.remarks


def test_a_copy_at_any_step_goes_on_as_the_original() -> None:
    run = a_run()
    copies: list[tuple[str, str, PipelineRun]] = []
    while run.due is not None:
        copies.append((run.due.name, text(run), run.copied()))
        run.advance()
    assert len(copies) > 15
    for name, before, copy in copies:
        assert copy.due is not None
        assert copy.due.name == name
        assert text(copy) == before
        to_the_end(copy)
        assert text(copy) == text(run), name
        assert rows(copy.report.rows) == rows(run.report.rows), name
        assert set(copy.report.remarks) == set(run.report.remarks), name


def test_a_copy_shares_no_state() -> None:
    run = steps_before(a_run(), "constant-folding")
    copy = run.copied()
    before, place, remarks = text(run), run.place, list(run.report.remarks)
    to_the_end(copy)
    assert (text(run), run.place, run.report.remarks) == (before, place, remarks)


@pytest.mark.parametrize("name", ["constant-folding", "linear-pack-fuse"])
def test_a_step_can_be_cut_after_each_change(name: str) -> None:
    start = steps_before(a_run(), name)
    watching = Gate()
    whole = start.copied()
    whole.advance(watching)
    assert watching.refused == 0
    assert whole.context.bounds == start.context.bounds
    texts = [text(start)]
    for application in watching.applications:
        cut = start.copied()
        gate = up_to(application.number + 1)
        cut.advance(gate)
        assert gate.applications == watching.applications[: len(texts)]
        assert "were not let through" in cut.context.bounds[-1] or gate.refused == 0
        texts.append(text(cut))
    assert len(texts) > 1
    assert len(set(texts)) == len(texts)
    cut = start.copied()
    cut.advance(up_to(watching.asked))
    assert text(cut) == text(whole)


def test_one_change_can_be_left_out() -> None:
    start = steps_before(a_run(), "eliminate-identity")
    gate = Gate(lambda _, name, op: not (name == "eliminate-identity"))
    start.advance(gate)
    assert gate.refused > 0
    assert "onnx.Identity" in text(start)


def test_what_raises_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from foldline.stages.passes.cleanup.common_subexpressions import CommonSubexpressions

    def fails(self: object, context: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(CommonSubexpressions, "run", fails)
    run = steps_before(a_run(), "common-subexpressions")
    with pytest.raises(RuntimeError, match="broken"):
        run.advance()
    assert run.due is None


def test_a_run_may_begin_at_a_stage() -> None:
    run = PipelineRun(a_run().context, start=Place(2))
    assert run.due is not None
    assert run.due.stage == "stage2"


def test_an_application_says_what_it_touched() -> None:
    start = steps_before(a_run(), "linear-pack-fuse")
    watching = Gate()
    start.advance(watching)
    (fused,) = [a for a in watching.applications if a.pass_name == "linear-pack-fuse"]
    assert (fused.op_type, fused.node) == ("onnx.Gemm", "sum")
    assert fused.touched >= {"sum", "s"}
    assert fused.op_types >= {"onnx.Gemm", "fused.Linear"}
