"""The change that breaks a model is found, whatever kind of pass makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from foldline import transforms
from foldline.importer import import_model
from foldline.stages.gate import Application, Gate
from foldline.workbench import bisect
from foldline.workbench.bisect import Finding, find_change
from foldline.workbench.comparison import Comparison, DoesNotRun, is_quantised
from foldline.workbench.stepper import Stepper
from tests.foldline.workbench import broken_passes

TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[2,4] x) => (float[2,4] y)
<float[4] b = {1, 2, 3, 4}>
{
    [same] s = Identity(x)
    [negate] c = Neg(b)
    [add] a = Add(s, c)
    [first] f = Sin(a)
    [second] g = Sin(f)
    [abs] h = Abs(g)
    [exp] e = Exp(h)
    [sum] y = Sub(e, a)
}
"""


def found(
    text: str | onnx.ModelProto,
    inputs: Mapping[str, Any] | None = None,
    rules: tuple[transforms.Transform, ...] = (),
    rtol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Finding | None:
    model = onnx.parser.parse_model(text) if isinstance(text, str) else text
    stepper = Stepper.of(model, options or {}, rules)
    compare = Comparison(stepper.original, "fast", inputs, rtol)
    return find_change(stepper.here.ahead, compare)


def culprit(finding: Finding | None) -> tuple[str, str]:
    assert finding is not None
    return finding.culprit, finding.node


def test_nothing_is_found_where_nothing_is_broken() -> None:
    assert found(TEXT) is None


@pytest.mark.parametrize(
    ("breaks", "expected"),
    [
        (broken_passes.folding_adds_one, ("prepare/constant-folding", "negate")),
        (
            lambda patch: broken_passes.identity_drops(patch, "Abs"),
            ("stage1/eliminate-identity", "abs"),
        ),
        (
            lambda patch: broken_passes.identity_drops(patch, "Sin"),
            ("stage1/eliminate-identity", "first"),
        ),
    ],
)
def test_the_first_change_of_a_broken_pass(
    monkeypatch: pytest.MonkeyPatch,
    breaks: Callable[[pytest.MonkeyPatch], None],
    expected: tuple[str, str],
) -> None:
    breaks(monkeypatch)
    finding = found(TEXT)
    assert culprit(finding) == expected
    assert finding is not None
    assert finding.together == 1
    assert finding.case.output == "y"
    assert str(finding).startswith(f"{expected[0]} at onnx.")


def test_a_pass_over_the_whole_module(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.merging_looks_at_first_inputs(monkeypatch)
    text = TEXT.replace("Sin(f)", "Sub(f, a)").replace("Abs(g)", "Sub(f, g)")
    finding = found(text)
    assert culprit(finding) == ("stage1/common-subexpressions", "")
    assert finding is not None
    assert finding.change is not None
    assert "h" in finding.change.touched


def test_a_broken_rule() -> None:
    rule = transforms.rewrite(
        "abs-to-neg",
        transforms.traced(lambda op, x: op.Abs(x)),
        lambda build, match: build.Neg(match.value("x")),
    )
    assert culprit(found(TEXT, rules=(rule,))) == ("fusion/abs-to-neg", "abs")


def test_a_fault_that_only_the_given_inputs_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up integers are at least 0, and Abs does nothing to them."""
    broken_passes.identity_drops(monkeypatch, "Abs")
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (int64[3] x) => (int64[3] y) { d = Add(x, x) [abs] a = Abs(d) y = Add(a, x) }"""
    assert found(text) is None
    finding = found(text, {"x": np.array([1, -2, 3])})
    assert culprit(finding) == ("stage1/eliminate-identity", "abs")
    assert finding is not None
    assert finding.case.name == "given"


def test_a_fault_that_only_edge_inputs_show() -> None:
    """x - x is 0 for all that is finite."""
    rule = transforms.rewrite(
        "nothing-left",
        transforms.traced(lambda op, x: op.Sub(x, x, name="sub")),
        lambda build, match: build.Mul(match.value("x"), build.constant(np.float32(0))),
    )
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[4] x) => (float[4] y) { [sub] d = Sub(x, x) y = Add(d, d) }"""
    assert found(text, rules=(rule,)) is None
    zero = transforms.rewrite(
        "zero",
        transforms.traced(lambda op, x: op.Sub(x, x, name="sub")),
        lambda build, match: build.constant(np.zeros(4, np.float32)),
    )
    finding = found(text, rules=(zero,))
    assert culprit(finding) == ("fusion/zero", "sub")
    assert finding is not None
    assert finding.case.name in ("nan", "inf")


def test_what_a_pass_raises_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_raises(monkeypatch, "Sin", "second")
    finding = found(TEXT)
    assert culprit(finding) == ("stage1/eliminate-identity", "second")
    assert finding is not None
    assert isinstance(finding.error, ValueError)
    assert finding.after is None
    assert str(finding).endswith("raises ValueError: boom")


def test_what_differs_before_a_pass_raises_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.folding_adds_one(monkeypatch)
    broken_passes.identity_raises(monkeypatch, "Sin", "second")
    assert culprit(found(TEXT)) == ("prepare/constant-folding", "negate")


def test_a_rule_that_raises_is_named() -> None:
    def fails(match: Any) -> bool:
        raise RuntimeError("no")

    pattern = transforms.traced(lambda op, x: op.Abs(x))
    rule = transforms.rewrite("failing", pattern, lambda build, match: match.value("x"), fails)
    finding = found(TEXT, rules=(rule,))
    assert culprit(finding) == ("fusion/failing", "abs")


def test_a_module_that_a_pass_leaves_unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    from foldline.dialects.onnx.verifier import verify_model
    from foldline.stages import observers
    from foldline.support.errors import InvalidModel

    def verify(module: Any, **how: Any) -> None:
        verify_model(module, **how)
        if "Identity" not in str(module):
            raise InvalidModel("no Identity is left")

    monkeypatch.setattr(observers, "verify_model", verify)
    finding = found(TEXT)
    assert finding is not None
    assert finding.change is None
    assert finding.culprit.startswith("stage1/")
    assert "does not verify: no Identity is left" in finding.case.message


def test_a_change_in_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (bool c, float[2] x) => (float[2] y) {
        [choice] z = If (c) <
            then_branch = t () => (float[2] p) { [inner] q = Abs(x) p = Sin(q) },
            else_branch = e () => (float[2] r) { [other] s = Abs(x) r = Cos(s) }>
        y = Exp(z)
    }"""
    assert culprit(found(text, {"c": np.array(True), "x": np.float32([-1, 2])})) == (
        "stage1/eliminate-identity",
        "inner",
    )


def test_states_that_do_not_run_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of changes that only run together the last is named, with their number."""
    broken_passes.identity_drops(monkeypatch, "Sin")
    runs_alike = bisect.runs_alike

    def not_half_way(compare: Comparison, module: Any) -> bool | None:
        return None if str(module).count("onnx.Sin") == 1 else runs_alike(compare, module)

    monkeypatch.setattr(bisect, "runs_alike", not_half_way)
    finding = found(TEXT)
    assert culprit(finding) == ("stage1/eliminate-identity", "second")
    assert finding is not None
    assert finding.together == 2
    assert "(or one of the 1 changes before it)" in str(finding)
    assert "onnx.Sin" in str(finding.before)
    assert "onnx.Sin" not in str(finding.after)


def test_a_module_that_cannot_be_lowered_is_no_case() -> None:
    stepper = Stepper.of(onnx.parser.parse_model(TEXT), {})
    compare = Comparison(stepper.original, "fast")
    text = TEXT.replace('"" : 20', '"" : 20, "custom" : 1').replace("Abs(g)", "custom.Unknown(g)")
    broken = import_model(onnx.parser.parse_model(text))
    with pytest.raises(DoesNotRun):
        compare(broken)


QUANTISED = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[64] x) => (uint8[64] y)
<float scale = {0.05}, uint8 zero = {0}>
{
    q = QuantizeLinear(x, scale, zero)
    d = DequantizeLinear(q, scale, zero)
    [shift] s = Add(d, offset)
    y = QuantizeLinear(s, scale, zero)
}
"""


@pytest.mark.parametrize(("steps", "is_found"), [(1, False), (3, True)])
def test_a_step_of_quantisation_is_no_fault(steps: int, is_found: bool) -> None:
    """The offset becomes that of the rule, so that outputs are off by some steps."""
    model = onnx.parser.parse_model(QUANTISED.replace("offset", "scale"))
    rule = transforms.rewrite(
        "shift",
        transforms.traced(lambda op, x, o: op.Add(x, o, name="shift")),
        lambda build, match: build.Add(
            match.value("x"), build.constant(np.float32(0.05 * (steps + 1)))
        ),
    )
    inputs = {"x": np.linspace(0, 0.5, 64, dtype=np.float32)}
    options = {"passes.disable": "qdq"}
    finding = found(model, inputs, (rule,), options=options)
    assert (finding is not None) == is_found
    assert is_quantised(Stepper.of(model, {}).original)
    assert not is_quantised(Stepper.of(onnx.parser.parse_model(TEXT), {}).original)
    assert found(model, inputs, (rule,), rtol=0.0, options=options) is not None


def test_the_original_is_run_once_for_each_input(monkeypatch: pytest.MonkeyPatch) -> None:
    from foldline import checking

    runs: list[Any] = []
    run = checking._run
    monkeypatch.setattr(checking, "_run", lambda s, feed: runs.append(s) or run(s, feed))
    broken_passes.identity_drops(monkeypatch, "Abs")
    assert found(TEXT) is not None
    original = runs[0]
    assert sum(session is original for session in runs) == len(checking.EDGES)
    assert len(runs) > 5 * len(checking.EDGES)


def test_an_application_is_the_one_that_a_gate_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_passes.identity_drops(monkeypatch, "Abs")
    finding = found(TEXT)
    assert finding is not None
    change = finding.change
    assert isinstance(change, Application)
    run = finding.step.run.copied()
    run.advance(Gate(lambda number, *_: number != change.number))
    assert "onnx.Abs" in str(run.context.module)
