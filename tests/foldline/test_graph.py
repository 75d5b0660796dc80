"""Graphs that rules run on: search, replacement, locks, threads (S4, groups 21 and 22)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import foldline
from foldline import transforms
from foldline.support.errors import InvalidArgumentError, RewriteError, RuleFailed
from foldline.transforms import OptimizeOptions
from tests.stages.check import onnx_model
from tests.stages.rewrite.rules import (
    chain,
    graph,
    merge_relus,
    ops,
    outputs_of,
    run,
    swap,
    text,
    to,
)


def test_find_pattern_finds_all_and_changes_nothing() -> None:
    on = graph("a = Neg(x) b = Neg(a) y = Neg(b)")
    before = text(on)
    matches = on.find_pattern(chain("Neg", "Neg"))
    assert [[n.results[0] for n in m.nodes] for m in matches] == [
        [on.nodes[i].results[0], on.nodes[i + 1].results[0]] for i in (0, 1)
    ]
    (first, _) = matches
    assert first.inputs == [on.module.body.block.last_op.regions[0].block.args[0]]  # type: ignore[union-attr]
    assert first.outputs == [on.nodes[1].results[0]]
    assert text(on) == before


def test_inputs_are_distinct_and_in_the_order_of_first_use() -> None:
    on = graph("a = Neg(x) b = Abs(x) c = Sub(b, a) y = Mul(c, b)")
    (match,) = on.find_pattern(chain("Sub", "Mul"))
    assert match.inputs == [on.nodes[1].results[0], on.nodes[0].results[0]]


def test_is_convex() -> None:
    on = graph("a = Neg(x) b = Abs(a) y = Sub(a, b)")
    a, b, c = on.nodes
    assert not on.is_convex([a, c])
    assert on.is_convex([a, b])
    assert on.is_convex([a, b, c])
    assert on.is_convex([b])
    with pytest.raises(InvalidArgumentError, match="no node"):
        on.is_convex([])


def test_replace() -> None:
    on = graph("a = Neg(x) b = Abs(a) y = Relu(b)")
    (match,) = on.find_pattern(chain("Neg", "Abs"))
    x = match.inputs[0]
    (new,) = on.replace(match.outputs, lambda build: build.Abs(x), match.inputs)
    assert ops(on) == ["Abs", "Relu"]
    assert new.owner is on.nodes[0]


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: b.op("Cast", x, to=7),
        lambda b, x: [b.Neg(x), b.Neg(x)],
        lambda b, x: b.Neg(graph("y = Abs(x)").nodes[0].results[0]),
    ],
)
def test_a_refused_replace_changes_nothing(build: Any) -> None:
    on = graph("a = Neg(x) y = Relu(a)")
    (match,) = on.find_pattern(chain("Neg"))
    before, x = text(on), match.inputs[0]
    with pytest.raises(RewriteError):
        on.replace(match.outputs, lambda b: build(b, x), match.inputs)
    assert text(on) == before
    assert match.nodes, "the match still holds"


def test_replace_needs_outputs_that_nodes_make() -> None:
    on = graph("y = Relu(x)")
    x = on.nodes[0].operands[0]
    with pytest.raises(InvalidArgumentError):
        on.replace([], lambda b: [], [])
    with pytest.raises(RewriteError, match="made by no node"):
        on.replace([x], lambda b: b.Neg(x), [])


def test_a_graph_of_a_module_is_a_copy() -> None:
    compiled = foldline.compile(
        onnx_model("g (float[2,3] x) => (float[2,3] y) { a = Neg(x) y = Abs(a) }"),
        options={"oo.level": "O1"},
    )
    on = compiled.graph()
    run(on, swap("rule", "Neg", "Relu"))
    assert ops(on) == ["Relu", "Abs"]
    assert [n.op_type for n in compiled.to_proto().graph.node] == ["Neg", "Abs"]


def test_save(tmp_path: Path) -> None:
    on = graph("y = Neg(x)")
    on.save(tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx").graph.node[0].op_type == "Neg"


def test_a_dry_run_reports_and_changes_nothing() -> None:
    on = graph("a = Relu(x) y = Relu(a)")
    before = text(on)
    (match,) = on.find_pattern(chain("Relu", "Relu"))
    report = run(on, merge_relus(), dry_run=True)
    assert report.row("merge-relus").replacements == 1
    assert text(on) == before
    assert match.nodes


def test_22_a_rule_mixed_into_the_defaults_is_the_same_as_one_run_last() -> None:
    body = "a = Identity(x) b = Transpose(a) c = Transpose(b) d = Relu(c) y = Relu(d)"
    mixed, apart = graph(body), graph(body)
    run(mixed, *mixed.default_transforms(), merge_relus())
    apart.optimize()
    run(apart, merge_relus())
    assert text(mixed) == text(apart)
    np.testing.assert_array_equal(outputs_of(mixed), outputs_of(apart))


def test_21_one_handle_serves_many_threads() -> None:
    threads: set[int] = set()

    def condition(match: Any) -> bool:
        threads.add(threading.get_ident())
        return True

    rule = merge_relus(condition=condition)
    bodies = [
        " ".join(f"a{i} = Relu(x) b{i} = Relu(a{i})" for i in range(n))
        + f" y = Sum({', '.join(f'b{i}' for i in range(n))})"
        for n in range(2, 10)
    ]
    ready = threading.Barrier(8)

    def work(body: str) -> tuple[str, int]:
        on = graph(body)
        ready.wait()
        row = run(on, rule).row(rule.name)
        return text(on), row.replacements

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, bodies))
    assert len(threads) == 8
    assert [count for _, count in found] == list(range(2, 10))
    for body, (result, _) in zip(bodies, found, strict=True):
        alone = graph(body)
        run(alone, merge_relus())
        assert text(alone) == result


def test_21_functions_run_on_the_thread_that_optimises() -> None:
    seen: list[int] = []
    rule = transforms.rewrite(
        "rule", chain("Neg"), to("Abs"), lambda m: seen.append(threading.get_ident()) or True
    )
    run(graph("y = Neg(x)"), rule)
    assert seen == [threading.get_ident()]


def test_7_two_runs_on_one_graph_at_once_are_refused() -> None:
    on = graph("y = Neg(x)")
    inside, go_on = threading.Event(), threading.Event()

    def condition(match: Any) -> bool:
        inside.set()
        return go_on.wait(20)

    rule = transforms.rewrite("rule", chain("Neg"), to("Abs"), condition)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(run, on, rule)
        assert inside.wait(20)
        with pytest.raises(RewriteError, match="one run at a time"):
            on.optimize()
        go_on.set()
        assert first.result().row("rule").replacements == 1
    on.optimize()


def test_7_a_callback_may_optimise_another_graph_and_not_its_own() -> None:
    on, other = graph("y = Neg(x)"), graph("y = Neg(x)")

    def on_other(match: Any) -> bool:
        run(other, swap("inner", "Neg", "Relu"))
        return True

    run(on, transforms.rewrite("outer", chain("Neg"), to("Abs"), on_other))
    assert (ops(on), ops(other)) == (["Abs"], ["Relu"])

    def on_itself(match: Any) -> bool:
        on.optimize()
        return True

    with pytest.raises(RuleFailed, match="one run at a time"):
        run(on, transforms.rewrite("outer", chain("Abs"), to("Neg"), on_itself))
    assert ops(on) == ["Abs"]


def test_a_failure_of_an_inner_run_is_blamed_on_both() -> None:
    other = graph("y = Neg(x)")

    def fails(match: Any) -> bool:
        raise LookupError("no")

    def inner(match: Any) -> bool:
        run(other, transforms.rewrite("inner", chain("Neg"), to("Abs"), fails))
        return True

    with pytest.raises(RuleFailed) as caught:
        run(graph("y = Neg(x)"), transforms.rewrite("outer", chain("Neg"), to("Abs"), inner))
    assert caught.value.transform == "outer"
    assert isinstance(caught.value.__cause__, RuleFailed)
    assert caught.value.__cause__.transform == "inner"


def test_options_are_checked() -> None:
    with pytest.raises(InvalidArgumentError):
        graph("y = Neg(x)").optimize(OptimizeOptions(max_iterations=0))
