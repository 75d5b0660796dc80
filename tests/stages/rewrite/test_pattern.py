"""Patterns: what is refused, copies, optional nodes (groups 12, 13, 20 of the rule API)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from foldline.stages.rewrite.pattern import MAX_OPTIONAL_PATTERN_NODES, Pattern
from foldline.stages.rewrite.slots import ANY
from foldline.support.errors import InvalidArgumentError
from tests.stages.rewrite.rules import chain, graph, one_relu, ops, rewrite, run, traced


def _dangling() -> Pattern:
    pattern = chain("Relu")
    pattern.edge(pattern.nodes[0], Pattern().node("Abs"))
    return pattern


def _result_elsewhere() -> Pattern:
    pattern = chain("Relu")
    pattern.results = [(Pattern().node("Abs"), 0)]
    return pattern


def _empty_predicate() -> Pattern:
    pattern = Pattern()
    pattern.node(None)
    return pattern


def _disconnected() -> Pattern:
    pattern = chain("Relu")
    pattern.node("Abs")
    return pattern


def _cyclic() -> Pattern:
    pattern = chain("Relu", "Abs")
    pattern.edge(pattern.nodes[1], pattern.nodes[0])
    return pattern


def _one_name_twice() -> Pattern:
    pattern = Pattern()
    a, b = pattern.node("Relu", name="n"), pattern.node("Abs", name="n")
    pattern.edge(a, b)
    return pattern


def _negative_position() -> Pattern:
    pattern = chain("Relu")
    pattern.capture("x", pattern.nodes[0], -2)
    return pattern


def optional(count: int) -> Pattern:
    """A Relu and `count` optional Abs behind it."""
    pattern = Pattern()
    nodes = [pattern.node("Relu", name="relu")]
    nodes += [pattern.node("Abs", name=f"abs{i}", optional=True) for i in range(count)]
    pattern.capture("x", nodes[0], 0)
    for before, after in itertools.pairwise(nodes):
        pattern.edge(before, after)
    return pattern


REFUSED: list[tuple[Callable[[], Pattern], str]] = [
    (Pattern, "no node"),
    (_dangling, "never added"),
    (_result_elsewhere, "never added"),
    (_empty_predicate, "empty predicate"),
    (_disconnected, "not connected"),
    (_cyclic, "cycle"),
    (_one_name_twice, "one name"),
    (_negative_position, "negative"),
    (lambda: optional(9), "9 nodes are optional, more than 8"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_13_patterns_that_are_refused_by_search_and_rewrite(
    make: Callable[[], Pattern], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        graph("y = Relu(x)").find_pattern(make())
    with pytest.raises(InvalidArgumentError, match=message):
        rewrite("rule", make(), one_relu)


def test_a_pattern_of_optional_nodes_only_is_refused() -> None:
    pattern = Pattern()
    pattern.node("Relu", optional=True)
    with pytest.raises(InvalidArgumentError, match="optional"):
        pattern.check()


def test_12_eight_optional_nodes_are_tried_largest_first() -> None:
    assert MAX_OPTIONAL_PATTERN_NODES == 8
    sizes = [len(variant.nodes) for variant in optional(8).variants()]
    assert len(sizes) == 2**8
    assert sizes == sorted(sizes, reverse=True)
    body = "a = Relu(x) b = Abs(a) c = Abs(b) y = Neg(c)"
    found = [[n.op_type for n in m.nodes] for m in graph(body).find_pattern(optional(8))]
    assert found == [["Relu", "Abs", "Abs"], ["Relu", "Abs"], ["Relu"]]


def test_12_an_optional_node_is_there_or_bypassed() -> None:
    @traced
    def pattern(op, x):
        return op.Neg(op.Abs(op.Relu(x), optional=True, name="abs"))

    with_abs = graph("a = Relu(x) b = Abs(a) y = Neg(b)").find_pattern(pattern)
    without = graph("a = Relu(x) y = Neg(a)").find_pattern(pattern)
    assert [len(m.nodes) for m in with_abs] == [3]
    assert [len(m.nodes) for m in without] == [2]
    assert with_abs[0]["abs"] is not None
    assert without[0]["abs"] is None


def test_an_optional_node_at_the_end_takes_over_the_result() -> None:
    @traced
    def pattern(op, x):
        return op.Neg(op.Relu(x), optional=True)

    rule = rewrite("rule", pattern, lambda build, m: build.op("Abs", m.value("x")))
    longer, shorter = graph("a = Relu(x) y = Neg(a)"), graph("y = Relu(x)")
    for each in (longer, shorter):
        run(each, rule)
        assert ops(each) == ["Abs"]


def test_an_optional_node_at_the_start_passes_its_input_on() -> None:
    @traced
    def pattern(op, x):
        return op.Neg(op.Cast(x, optional=True, name="cast"))

    assert [m.value("x") for m in graph("y = Neg(x)").find_pattern(pattern)]


def test_any_operand_and_commutative_operators() -> None:
    pattern = Pattern()
    relu, add = pattern.node("Relu"), pattern.node("Sub")
    pattern.edge(relu, add, ANY)
    first, second = "a = Relu(x) y = Sub(a, x)", "a = Relu(x) y = Sub(x, a)"
    assert all(len(graph(body).find_pattern(pattern)) == 1 for body in (first, second))
    pattern.edges.clear()
    pattern.edge(relu, add, 0)
    assert [len(graph(body).find_pattern(pattern)) for body in (first, second)] == [1, 0]
    commutes = chain("Relu", "Mul")
    commutes.edges.clear()
    commutes.edge(*commutes.nodes, 0)
    assert graph("a = Relu(x) y = Mul(x, a)").find_pattern(commutes)


def test_an_operand_that_has_to_be_left_out() -> None:
    @traced
    def pattern(op, x):
        return op.Clip(x, None)

    def clip(given: str) -> int:
        body = f"low = Constant<value_float = 0.0>() y = Clip(x{given})"
        return len(graph(body).find_pattern(pattern))

    assert [clip(""), clip(", low")] == [1, 0]


def test_a_name_that_stands_twice_is_one_value() -> None:
    @traced
    def square(op, x):
        return op.Mul(x, x)

    assert graph("y = Mul(x, x)").find_pattern(square)
    assert not graph("a = Relu(x) y = Mul(x, a)").find_pattern(square)
