"""A compile that is compared with the original on the way names what breaks it, or undoes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import foldline
from foldline.support.debug_options import CHECK_MODES as MODES
from foldline.support.debug_options import CheckMode, DebugOptions
from foldline.support.errors import PassFailed
from foldline.workbench import watching
from foldline.workbench.watching import OutputsDiffer, Watch, compile_checked
from tests.foldline.workbench import broken_passes
from tests.foldline.workbench.test_bisect import TEXT

MODEL = onnx.parser.parse_model(TEXT)


def notes(compiled: foldline.CompiledModel) -> list[tuple[str, str]]:
    return [
        (f"{remark.stage}/{remark.pass_name}", remark.node)
        for remark in compiled.report.remarks
        if remark.message.startswith("undone: ")
    ]


def is_right(compiled: foldline.CompiledModel, model: onnx.ModelProto = MODEL) -> bool:
    return foldline.check(model, compiled, rtol=1e-5).equal


@pytest.mark.parametrize("mode", MODES)
def test_what_is_right_is_compiled_as_ever(mode: CheckMode) -> None:
    compiled = compile_checked(MODEL, mode=mode)
    expected = foldline.compile(MODEL)
    assert compiled.to_bytes() == expected.to_bytes()
    rows = [(row.stage, row.name, row.changes) for row in compiled.report.rows]
    assert rows == [(row.stage, row.name, row.changes) for row in expected.report.rows]
    assert not notes(compiled)


@pytest.mark.parametrize("mode", MODES[:3])
def test_the_change_is_named(monkeypatch: pytest.MonkeyPatch, mode: CheckMode) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    with pytest.raises(OutputsDiffer, match=r"^stage1/eliminate-identity at onnx.Abs 'abs': ") as e:
        compile_checked(MODEL, mode=mode)
    assert e.value.finding.node == "abs"
    assert isinstance(e.value, PassFailed)


@pytest.mark.parametrize(("mode", "last"), [("stages", "stage1"), ("passes", "stage1")])
def test_nothing_runs_behind_a_stage_that_differs(
    monkeypatch: pytest.MonkeyPatch, mode: CheckMode, last: str
) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    ran: list[str] = []

    class Watcher(foldline.stages.observers.Observer):
        def after_pass(self, step: Any, context: Any) -> None:
            ran.append(step.stage)

    compiler = foldline.Compiler(drive=Watch(mode))
    with pytest.raises(OutputsDiffer):
        compiler.compile(MODEL, observers=[Watcher()])
    assert ran[-1] == last


def test_revert_undoes_just_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    compiled = compile_checked(MODEL, mode="revert")
    undone = notes(compiled)
    assert undone[0] == ("stage1/eliminate-identity", "abs")
    assert {node for _, node in undone} == {"abs"}
    assert is_right(compiled)
    operators = [node.op_type for node in compiled.to_proto().graph.node]
    assert "Abs" in operators
    assert "Identity" not in operators  # what the same pass does right is kept
    assert "Neg" not in operators


def test_revert_undoes_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Sin")
    compiled = compile_checked(MODEL, mode="revert")
    assert {node for _, node in notes(compiled)} == {"first", "second"}
    assert is_right(compiled)


def test_revert_goes_on_where_a_pass_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_raises(monkeypatch, "Sin", "second")
    compiled = compile_checked(MODEL, mode="revert")
    assert {node for _, node in notes(compiled)} == {"second"}
    assert is_right(compiled)


@pytest.mark.parametrize("mode", MODES[:3])
def test_what_a_pass_raises_is_raised(monkeypatch: pytest.MonkeyPatch, mode: CheckMode) -> None:
    broken_passes.identity_raises(monkeypatch, "Sin")
    with pytest.raises(ValueError, match="boom"):
        compile_checked(MODEL, mode=mode)


def test_revert_of_a_pass_over_the_whole_module(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.merging_looks_at_first_inputs(monkeypatch)
    model = onnx.parser.parse_model(TEXT.replace("Sin(f)", "Sub(f, a)").replace("(g)", "(f)"))
    model.graph.node[5].op_type = "Sub"
    model.graph.node[5].input.append("s")
    compiled = compile_checked(model, mode="revert")
    assert ("stage1/common-subexpressions", "") in notes(compiled)
    assert is_right(compiled, model)


def test_a_pass_that_goes_on_breaking_is_refused_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST_REFUSALS", 2)
    broken_passes.identity_drops(monkeypatch, "Sin")
    lines = "\n".join(f"[n{i}] v{i + 1} = Sin(v{i})" for i in range(8))
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] v0) => (float[2] y) {{ {lines} y = Exp(v8) }}""")
    compiled = compile_checked(model, mode="revert")
    assert is_right(compiled, model)
    stage1 = [node for where, node in notes(compiled) if where == "stage1/eliminate-identity"]
    assert stage1 == ["n0", "n1", "n2"]
    assert any("were not let through" in bound for bound in compiled.report.bounds)


def test_a_step_whose_matching_raises_is_left_out() -> None:
    """No gate is asked before a condition."""
    transforms = foldline.transforms

    def fails(match: Any) -> bool:
        raise RuntimeError("no")

    pattern = transforms.traced(lambda op, x: op.Abs(x))
    rule = transforms.rewrite("failing", pattern, lambda build, match: match.value("x"), fails)
    compiled = compile_checked(MODEL, mode="revert", rules=[rule])
    assert ("fusion/failing", "abs") in notes(compiled)
    assert any("left out" in bound for bound in compiled.report.bounds)
    assert is_right(compiled)


def test_only_given_inputs_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
    g (int64[3] x) => (int64[3] y) { d = Add(x, x) [abs] a = Abs(d) y = Add(a, x) }""")
    inputs: Mapping[str, Any] = {"x": np.array([1, -2, 3])}
    compile_checked(model, mode="stages")
    with pytest.raises(OutputsDiffer, match="inputs 'given'"):
        compile_checked(model, mode="stages", inputs=inputs)


def test_rtol(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.folding_adds_one(monkeypatch)
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float[2] b = {-10000, 10000}> { c = Neg(b) y = Add(x, c) }""")
    compile_checked(model, mode="passes")
    with pytest.raises(OutputsDiffer):
        compile_checked(model, mode="passes", rtol=1e-6)


def test_dumps_and_stages_are_those_of_a_compile(tmp_path: Path) -> None:
    debug = DebugOptions(stop_after="stage1", dump_to=tmp_path / "watched")
    compiled = compile_checked(MODEL, mode="stages", debug=debug)
    foldline.compile(MODEL, debug=DebugOptions(stop_after="stage1", dump_to=tmp_path / "plain"))
    for name in ("0.import.mlir", "1.prepare.mlir", "2.stage1.mlir"):
        assert (tmp_path / "watched" / name).read_text() == (tmp_path / "plain" / name).read_text()
    assert compiled.report.rows[-1].stage == "stage1"


def test_a_model_that_no_made_up_input_suits_says_so() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
    g (seq(float[2]) s) => (int64 n) { m = SequenceLength(s) n = Abs(m) }""")
    with pytest.raises(foldline.InvalidArgumentError, match="give these inputs"):
        compile_checked(model, mode="passes")
