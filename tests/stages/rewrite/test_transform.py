"""What `rewrite` refuses, and names (section 5, group 14 of the rule API)."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.transform import rewrite
from foldline.support.errors import InvalidArgumentError
from foldline.support.passes import PASSES
from tests.stages.rewrite.rules import chain, graph, merge_relus, run, swap, to

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
