"""Iterations, turns and what is skipped: I rows, groups 3 to 11, 18 to 20 of the rule API."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from foldline import transforms
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.rewrite.match import Match, name_of
from foldline.stages.rewrite.options import OptimizeOptions
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import as_transform
from foldline.stages.rewrite.transform import Transform, rewrite
from foldline.support.errors import InvalidArgumentError
from foldline.support.rewrite_report import OptimizeReport
from tests.stages.rewrite.rules import (
    Seen,
    chain,
    graph,
    merge_relus,
    ops,
    outputs_of,
    run,
    swap,
    text,
    to,
    traced,
)

DISPOSITIONS = (
    "replacements",
    "skipped_removed",
    "skipped_nonconvex",
    "skipped_dead",
    "rejected_by_condition",
)


def check_report(report: OptimizeReport) -> None:
    """What holds for every report."""
    for row in report.rows:
        assert row.applications <= report.iterations
        assert row.applications <= row.replacements
        assert row.matches == sum(getattr(row, name) for name in DISPOSITIONS)
    rows = report.rows
    assert report.nodes_after - report.nodes_before == sum(
        row.nodes_added - row.nodes_removed for row in rows
    )
    assert OptimizeReport.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_3_a_simple_rule() -> None:
    on = graph("a = Relu(x) b = Relu(a) y = Neg(b)")
    before = outputs_of(on)
    report = run(on, merge_relus())
    assert ops(on) == ["Relu", "Neg"]
    np.testing.assert_array_equal(outputs_of(on), before)
    row = report.row("merge-relus")
    assert (row.applications, row.replacements, row.matches) == (1, 1, 1)
    assert (row.nodes_removed, row.nodes_added) == (2, 1)
    assert (report.iterations, report.converged, report.status) == (2, True, "done")
    check_report(report)


def test_4_i2_an_occurrence_that_a_replacement_creates_waits_for_the_next_iteration() -> None:
    on = graph("a = Relu(x) b = Relu(a) y = Relu(b)")
    seen = Seen()
    report = run(on, merge_relus(condition=seen))
    row = report.row("merge-relus")
    assert ops(on) == ["Relu"]
    assert (row.applications, row.replacements) == (2, 2)
    assert report.iterations == 3
    check_report(report)


@pytest.mark.parametrize("answer", [True, False, 1, 0, "yes", "", None])
def test_i4_what_is_true_of_a_condition_decides(answer: Any) -> None:
    asked: list[Match] = []

    def condition(match: Match) -> Any:
        asked.append(match)
        return answer

    def build(builder: Any, match: Match) -> Any:
        (value,), (result,) = match.inputs, match.outputs
        assert value is match.value("x")
        assert result.owner.name == "onnx.Neg"
        return builder.Abs(value)

    on = graph("y = Neg(x)")
    row = run(on, rewrite("rule", traced(lambda op, x: op.Neg(x)), build, condition)).row("rule")
    assert len(asked) == 1
    assert (row.replacements, row.rejected_by_condition) == (bool(answer), not answer)
    assert ops(on) == (["Abs"] if answer else ["Neg"])


def test_5_i6_three_occurrences_in_one_iteration_are_one_application() -> None:
    body = " ".join(f"a{i} = Relu(x) b{i} = Relu(a{i})" for i in range(3))
    on = graph(f"{body} c = Add(b0, b1) y = Add(c, b2)")
    row = run(on, merge_relus()).row("merge-relus")
    assert (row.applications, row.replacements) == (1, 3)


def test_6_i3a_the_second_of_two_overlapping_occurrences_is_skipped_unseen() -> None:
    on = graph("[one] a = Relu(x) [two] b = Relu(a) [three] y = Relu(b)")
    seen = Seen()
    report = run(on, merge_relus(condition=seen), max_iterations=1)
    row = report.row("merge-relus")
    assert seen.names == ["one"]
    assert (row.matches, row.replacements, row.skipped_removed) == (2, 1, 1)
    check_report(report)


def test_7_i3b_a_match_that_is_not_convex_is_skipped_unseen() -> None:
    @traced
    def around(op: Any, x: Any, other: Any) -> Any:
        return op.Add(op.Relu(x, name="relu"), other)

    around.results = None
    on = graph("[one] a = Relu(x) b = Neg(a) [two] y = Add(a, b)")
    seen = Seen()
    report = run(on, rewrite("rule", around, to("Abs"), seen))
    assert seen.names == []
    assert report.row("rule").skipped_nonconvex == report.row("rule").matches == 1
    check_report(report)


def test_i3b_what_only_stands_between_is_convex() -> None:
    on = graph("a = Relu(x) b = Sigmoid(x) c = Neg(a) y = Add(b, c)")
    report = run(on, rewrite("rule", traced(lambda op, x: op.Neg(op.Relu(x))), to("Abs")))
    assert report.row("rule").replacements == 1
    assert ops(on) == ["Sigmoid", "Abs", "Add"]


def test_what_reads_an_early_output_moves_behind_what_replaces_it() -> None:
    """Sigmoid reads the first result of the match, and stands before the last of its nodes."""
    on = graph("a = Relu(x) s = Sigmoid(a) n = Neg(a) y = Add(s, n)")
    before = outputs_of(on)

    def both(build: Any, match: Match) -> list[Any]:
        relu = build.op("Relu", match.value("x"))
        return [relu, build.op("Neg", relu)]

    pattern = traced(lambda op, x: op.Neg(op.Relu(x)))
    pattern.results = None
    run(on, rewrite("rule", pattern, both), max_iterations=1)
    assert ops(on) == ["Relu", "Neg", "Sigmoid", "Add"]
    np.testing.assert_array_equal(outputs_of(on), before)


def test_8_i3c_a_match_that_nothing_reads_is_skipped_unseen() -> None:
    on = graph("[dead] a = Neg(x) y = Relu(x)")
    seen = Seen()
    report = run(on, rewrite("rule", chain("Neg"), to("Abs"), seen))
    assert seen.names == []
    assert (report.row("rule").skipped_dead, report.row("rule").matches) == (1, 1)
    assert report.converged
    check_report(report)


def test_9_graph_outputs_and_captures_count_as_readers() -> None:
    on = graph("y = Neg(x)")
    (match,) = on.find_pattern(chain("Neg"))
    assert len(match.outputs) == 1
    body = """
        c = Constant<value = bool {1}>() a = Neg(x)
        y = If (c) <then_branch = t () => (float[2,3] u) { u = Relu(a) },
                    else_branch = e () => (float[2,3] v) { v = Abs(x) }>
    """
    (match,) = (captured := graph(body)).find_pattern(chain("Neg"))
    assert len(match.outputs) == 1
    run(captured, swap("rule", "Neg", "Sigmoid"))
    assert ops(captured) == ["Sigmoid", "If"]


def test_9_bodies_are_rewritten_too() -> None:
    body = """
        c = Constant<value = bool {1}>()
        y = If (c) <then_branch = t () => (float[2,3] u) { b = Relu(x) u = Relu(b) },
                    else_branch = e () => (float[2,3] v) { v = Abs(x) }>
    """
    on = graph(body)
    assert run(on, merge_relus()).row("merge-relus").replacements == 1
    assert [op.op_type for op in on.nodes].count("Relu") == 1


def test_a_match_stays_within_one_body() -> None:
    body = """
        c = Constant<value = bool {1}>() a = Relu(x)
        y = If (c) <then_branch = t () => (float[2,3] u) { u = Relu(a) },
                    else_branch = e () => (float[2,3] v) { v = Abs(x) }>
    """
    assert run(graph(body), merge_relus()).row("merge-relus").matches == 0


def test_10_an_interior_value_that_is_read_outside_is_an_output_and_kept() -> None:
    on = graph("[one] a = Relu(x) [two] b = Neg(a) c = Abs(a) y = Add(b, c)")
    before = outputs_of(on)
    seen: list[list[str]] = []

    def replace(build: Any, match: Match) -> list[Any]:
        seen.append([name_of(value.owner) for value in match.outputs])
        kept = build.like(match.nodes[0], match.inputs)
        return [kept, build.op("Sub", build.constant(np.float32(0)), kept)]

    pattern = chain("Relu", "Neg")
    run(on, rewrite("rule", pattern, replace))
    assert seen == [["one", "two"]]
    assert ops(on) == ["Relu", "Sub", "Abs", "Add"]
    np.testing.assert_array_equal(outputs_of(on), before)


def test_10_i5_shared_nodes_stay() -> None:
    """The replacement reads on what only the match was expected to make."""
    on = graph("a = Relu(x) y = Neg(a)")

    def replace(build: Any, match: Match) -> Any:
        return build.op("Sub", build.constant(np.float32(0)), match.nodes[0].results[0])

    run(on, rewrite("rule", chain("Relu", "Neg"), replace))
    assert ops(on) == ["Relu", "Sub"]


def test_11_a_pattern_of_several_outputs() -> None:
    @traced
    def pattern(op: Any, x: Any) -> Any:
        a = op.Relu(x)
        return op.Neg(a), op.Abs(a)

    def replace(build: Any, match: Match) -> tuple[Any, Any]:
        made = {"Neg": build.op("Sigmoid", match.value("x")), "Abs": build.Tanh(match.value("x"))}
        first, second = (value.owner.op_type for value in match.outputs)
        return made[first], made[second]

    on = graph("a = Relu(x) b = Neg(a) c = Abs(a) y = Sub(b, c)")
    run(on, rewrite("rule", pattern, replace))
    assert sorted(ops(on)) == ["Sigmoid", "Sub", "Tanh"]


def test_18_i1_runs_after_orders_and_list_order_rules_otherwise() -> None:
    first, second = swap("first", "Neg", "Abs"), swap("second", "Abs", "Relu")
    late = rewrite("late", chain("Sigmoid"), to("Tanh"), runs_after=[second])
    report = run(graph("y = Neg(x)"), late, second, first)
    assert [row.name for row in report.rows] == ["second", "late", "first"]


def test_18_a_circle_and_two_of_one_name_are_refused_when_they_run() -> None:
    a = Transform("a", swap("a", "Neg", "Abs").action, ("b",))
    b = Transform("b", swap("b", "Neg", "Abs").action, ("a",))
    on = graph("y = Neg(x)")
    with pytest.raises(InvalidArgumentError, match="runs after itself"):
        run(on, a, b)
    with pytest.raises(InvalidArgumentError, match="two transforms are called 'n'"):
        run(on, swap("n", "Neg", "Abs"), swap("n", "Abs", "Neg"))


def test_18_runs_after_what_does_not_run_is_ignored() -> None:
    absent = swap("absent", "Abs", "Neg")
    rule = rewrite("rule", chain("Neg"), to("Abs"), runs_after=[absent])
    assert run(graph("y = Neg(x)"), rule).row("rule").replacements == 1


@pytest.mark.parametrize("bound", [0, -1])
def test_s4_a_bound_below_one_is_refused(bound: int) -> None:
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        graph("y = Neg(x)").optimize(OptimizeOptions([], max_iterations=bound))


def test_19_i7_a_rule_that_makes_its_own_pattern_stops_at_the_bound() -> None:
    report = run(graph("y = Neg(x)"), swap("again", "Neg", "Neg"), max_iterations=4)
    row = report.row("again")
    assert (report.iterations, report.converged, report.status) == (4, False, "done")
    assert (row.applications, row.replacements) == (4, 4)
    check_report(report)


def test_19_i7_rules_that_undo_each_other_stop_at_the_bound() -> None:
    on = graph("y = Neg(x)")
    there, back = swap("there", "Neg", "Abs"), swap("back", "Abs", "Neg")
    report = run(on, there, back, max_iterations=3)
    assert not report.converged
    assert [row.applications for row in report.rows] == [3, 3]
    assert ops(on) == ["Neg"]


def test_19_i7_what_grows_is_bounded() -> None:
    def twice(build: Any, match: Match) -> Any:
        return build.Neg(build.Neg(match.inputs[0]))

    on = graph("y = Neg(x)")
    run(on, rewrite("grow", chain("Neg"), twice), max_iterations=5)
    assert len(ops(on)) == 2**5


def test_20_s5_copies_of_a_handle_are_equal_and_share_the_rule() -> None:
    rule = merge_relus()
    for other in (copy.copy(rule), copy.deepcopy(rule)):
        assert other == rule
        assert hash(other) == hash(rule)
        assert other.action is rule.action
    assert rule != merge_relus()
    with pytest.raises(AttributeError):
        rule.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_20_s5_a_pattern_edited_later_does_not_change_the_rule() -> None:
    pattern = chain("Neg")
    rule = rewrite("rule", pattern, to("Abs"))
    pattern.edge(pattern.nodes[0], pattern.node("Relu"))
    on = graph("y = Neg(x)")
    assert run(on, rule).row("rule").replacements == 1


def test_a_pass_among_rules_has_a_row_like_them() -> None:
    on = graph("a = Identity(x) b = Relu(a) y = Relu(b)")
    report = run(on, as_transform(EliminateIdentity()), merge_relus())
    row = report.row("eliminate-identity")
    assert (row.applications, row.replacements, row.matches, row.nodes_removed) == (1, 1, 1, 1)
    check_report(report)


def test_a_transform_that_never_fired_has_a_row() -> None:
    report = run(graph("y = Neg(x)"), merge_relus(), transforms.conv_batchnorm_fold())
    assert [(r.name, r.matches, r.applications) for r in report.rows] == [
        ("merge-relus", 0, 0),
        ("conv-batchnorm-fold", 0, 0),
    ]


def test_captured_values_are_those_of_now_when_an_earlier_replacement_changed_them() -> None:
    """The second match captured a value that the first replacement made anew."""
    swish = traced(lambda op, x: op.Mul(x, op.Sigmoid(x)))
    on = graph("a = Sigmoid(x) b = Mul(a, x) c = Sigmoid(b) y = Mul(b, c)")
    rule = rewrite("rule", swish, lambda build, m: build.Tanh(m.value("x")))
    row = run(on, rule, max_iterations=1).row("rule")
    assert (row.replacements, row.skipped_removed) == (2, 0)
    assert ops(on) == ["Tanh", "Tanh"]


def test_i3_a_match_that_an_earlier_replacement_rewired_is_skipped_unseen() -> None:
    """The first match's replacement makes Neg read Abs, so Relu -> Neg is no match any more."""
    pattern = Pattern()
    relu, other = pattern.node("Relu"), pattern.node(["Neg", "Tanh"])
    pattern.edge(relu, other)
    on = graph("r = Relu(x) t = Tanh(r) n = Neg(r) y = Add(t, n)")
    seen = Seen()

    def replace(build: Any, match: Match) -> list[Any]:
        return [build.op("Abs", match.inputs[0]) for _ in match.outputs]

    report = run(on, rewrite("rule", pattern, replace, seen), max_iterations=1)
    row = report.row("rule")
    assert len(seen.names) == 1
    assert (row.matches, row.replacements, row.skipped_removed) == (2, 1, 1)
    check_report(report)


def test_names_of_outputs_stay() -> None:
    on = graph("a = Relu(x) y = Relu(a)")
    run(on, merge_relus())
    assert [o.name for o in on.to_proto().graph.output] == ["y"]
    bypass = graph("a = Neg(x) y = Neg(a)")
    pattern = traced(lambda op, x: op.Neg(op.Neg(x)))
    run(bypass, rewrite("rule", pattern, lambda build, m: m.value("x")))
    assert ops(bypass) == ["Identity"]
    assert [o.name for o in bypass.to_proto().graph.output] == ["y"]


def test_new_nodes_that_nothing_reads_are_dropped() -> None:
    on = graph("y = Neg(x)")

    def replace(build: Any, match: Match) -> Any:
        build.Sigmoid(match.inputs[0])
        return build.Abs(match.inputs[0])

    report = run(on, rewrite("rule", chain("Neg"), replace))
    assert ops(on) == ["Abs"]
    assert report.row("rule").nodes_added == 1


def test_results_are_the_same_text_every_time() -> None:
    body = "a = Relu(x) b = Relu(a) c = Neg(b) d = Relu(c) e = Relu(d) y = Add(b, e)"
    texts: set[str] = set()
    for _ in range(3):
        on = graph(body)
        run(on, merge_relus())
        texts.add(text(on))
    assert len(texts) == 1


def test_matches_come_in_program_order() -> None:
    body = "[c] c = Neg(x) [a] a = Neg(c) [b] b = Neg(a) y = Relu(b)"
    matches = graph(body).find_pattern(chain("Neg", "Neg"))
    assert [name_of(m.nodes[0]) for m in matches] == ["c", "a"]
