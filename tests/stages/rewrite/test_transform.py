"""What `rewrite` refuses, and names (section 5, group 14 of the rule API)."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

from foldline.graph import ModelGraph
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.transform import rewrite
from foldline.support.errors import InvalidArgumentError
from foldline.support.passes import PASSES
from foldline.support.remarks import Remark
from tests.stages.rewrite.rules import Seen, chain, graph, merge_relus, ops, run, swap, to

GOOD: dict[str, Any] = {"name": "rule", "pattern": chain("Neg"), "replace_fn": to("Abs")}


def refused(**changed: Any) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        rewrite(**{**GOOD, **changed})
    assert isinstance(caught.value, ValueError)
    assert caught.value.status == "INVALID_ARGUMENT"
    return str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", None, 7])
def test_14_an_empty_name(name: Any) -> None:
    assert "needs a name" in refused(name=name)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_14_the_name_of_a_built_in(name: str) -> None:
    assert "built-in" in refused(name=name)


def test_14_runs_after_itself() -> None:
    assert "itself" in refused(runs_after=[merge_relus("rule")])


@pytest.mark.parametrize("replace_fn", [None, "", 3])
def test_14_no_replacement(replace_fn: Any) -> None:
    assert "not a function" in refused(replace_fn=replace_fn)


def test_14_a_condition_that_cannot_be_called() -> None:
    assert "not a function" in refused(condition_fn="yes")


@pytest.mark.parametrize("entry", ["name", None, 3])
def test_14_runs_after_no_transform(entry: Any) -> None:
    assert "no transform" in refused(runs_after=[entry])


def test_14_no_pattern() -> None:
    assert "no node" in refused(pattern=Pattern())
    assert "no pattern" in refused(pattern=[])
    assert "is not a pattern" in refused(pattern=["Relu"])


def test_14_no_condition_takes_all() -> None:
    assert run(graph("y = Neg(x)"), rewrite(**GOOD, condition_fn=None)).row("rule").replacements


@pytest.mark.parametrize("name", ["two words", "règle-№1", "a/b (2)"])
def test_14_any_other_name_will_do(name: str) -> None:
    assert run(graph("y = Neg(x)"), swap(name, "Neg", "Abs")).row(name).replacements == 1


def test_spellings_are_tried_in_order() -> None:
    rule = rewrite("rule", [chain("Neg"), chain("Abs")], to("Relu"))
    on = graph("a = Abs(x) b = Neg(a) y = Sigmoid(b)")
    assert run(on, rule).row("rule").replacements == 2


def test_by_default_a_rule_is_taken_to_move_bits() -> None:
    assert not rewrite(**GOOD).preserves_bits
    assert rewrite(**GOOD, preserves_bits=True).preserves_bits


@pytest.mark.parametrize("bound", ["min_opset", "max_opset"])
@pytest.mark.parametrize("value", [0, -1, "13", 13.0, True])
def test_bounds_that_are_no_version(bound: str, value: Any) -> None:
    assert "is not a version of an operator set" in refused(**{bound: value})


def test_bounds_that_nothing_is_within() -> None:
    assert "min_opset is 14, max_opset 13" in refused(min_opset=14, max_opset=13)


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ({}, None),
        ({"min_opset": 13}, None),
        ({"max_opset": 13}, None),
        ({"min_opset": 13, "max_opset": 13}, None),
        ({"min_opset": 14}, "operator set 13 is imported here, and the rule is for 14 or later"),
        ({"max_opset": 12}, "operator set 13 is imported here, and the rule is for 12 or earlier"),
    ],
)
def test_a_rule_is_at_home_in_some_operator_sets(bounds: Any, reason: str | None) -> None:
    seen = Seen()
    on, told = graph("y = Neg(x)", opset=13), list[Remark]()
    rule = rewrite("rule", chain("Neg"), to("Abs"), seen, **bounds)
    report = run(on, rule, trace=told.append)
    assert ops(on) == (["Abs"] if reason is None else ["Neg"])
    assert len(seen.names) == int(reason is None), "the condition never sees the others"
    assert [r.message for r in told if r.kind == "declined"] == ([] if reason is None else [reason])
    assert report.rows[0].rejected_by_condition == int(reason is not None)


def test_the_operator_set_of_the_function_that_holds_an_occurrence_counts() -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 13, "local" : 1]>
        g (float[2] x) => (float[2] y) { n = Neg(x) y = local.f(n) }
        <opset_import: ["" : 17], domain: "local"> f (a) => (b) { b = Neg(a) }"""
    )
    on = ModelGraph(made)
    run(on, rewrite("rule", chain("Neg"), to("Abs"), min_opset=17), max_iterations=2)
    written = on.to_proto()
    assert [n.op_type for n in written.graph.node] == ["Neg", "f"]
    assert [n.op_type for n in written.functions[0].node] == ["Abs"]
