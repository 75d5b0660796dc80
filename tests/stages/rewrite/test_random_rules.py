"""Random graphs and random rules that keep values: what holds for each (group 23)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from foldline.dialects.onnx.verifier import verify_model
from foldline.graph import ModelGraph
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.options import OptimizeOptions
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.slots import ANY, PatternNode
from foldline.stages.rewrite.transform import Transform, rewrite
from tests.stages.check import onnx_model
from tests.stages.rewrite.rules import text
from tests.stages.rewrite.test_optimize import check_report

Array = npt.NDArray[Any]
UNARY = ("Neg", "Abs", "Relu")
BINARY = ("Add", "Sub")
FEED = {"x": np.array([[-1.5, 0.0, 2.0], [3.0, -7.0, 0.25]], np.float32)}
Draw = Any


@st.composite
def bodies(draw: Draw) -> str:
    """A graph of up to sixteen nodes; some values are outputs, some nodes are dead."""
    values, lines = ["x"], list[str]()
    for place in range(draw(st.integers(3, 16))):
        source = st.sampled_from(values[-5:])
        op_type = draw(st.sampled_from(UNARY + BINARY))
        inputs = [draw(source) for _ in range(1 if op_type in UNARY else 2)]
        lines.append(f"v{place} = {op_type}({', '.join(inputs)})")
        values.append(f"v{place}")
    outputs = sorted({values[-1], *draw(st.lists(st.sampled_from(values[1:]), max_size=3))})
    declared = ", ".join(f"float[2,3] {name}" for name in outputs)
    return f"g (float[2,3] x) => ({declared}) {{ {' '.join(lines)} }}"


@st.composite
def patterns(draw: Draw) -> Pattern:
    """A tree of up to four nodes; the root comes last."""
    pattern = Pattern()

    def node(depth: int) -> PatternNode:
        op_types = draw(st.lists(st.sampled_from(UNARY + BINARY), min_size=2, max_size=4))
        optional = depth > 0 and draw(st.integers(0, 4)) == 0
        made = pattern.node(op_types, optional=optional)
        for place in (ANY, 0):
            if len(pattern.nodes) < 4 and draw(st.integers(0, 2 + depth)) > depth:
                pattern.edge(node(depth + 1), made, place)
                break
        return made

    node(0)
    if draw(st.integers(0, 3)) == 0:
        pattern.results = [(pattern.nodes[0], 0)]
    return pattern


def copies(build: Any, match: Match) -> list[Any]:
    """The same values, of new nodes in another form: -(-x) of everything."""
    new: dict[Any, Any] = {}
    for op in match.nodes:
        made = build.like(op, [new.get(value, value) for value in op.operands])
        new[op.results[0]] = made
    return [build.Neg(build.Neg(new[value])) for value in match.outputs]


def mirrored(build: Any, match: Match) -> list[Any]:
    """The same nodes again."""
    new: dict[Any, Any] = {}
    for op in match.nodes:
        new[op.results[0]] = build.like(op, [new.get(value, value) for value in op.operands])
    return [new[value] for value in match.outputs]


@st.composite
def rules(draw: Draw) -> list[Transform]:
    found: list[Transform] = []
    for place in range(draw(st.integers(1, 3))):
        refused = draw(st.integers(0, 3))
        condition = None if refused else (lambda match: len(match.nodes) % 2 == 1)
        replace = draw(st.sampled_from((copies, mirrored)))
        found.append(rewrite(f"rule {place}", draw(patterns()), replace, condition))
    return found


def values(on: ModelGraph) -> list[Array]:
    return Session(lower(on.module, grades=("reference",)), threads=1).run(None, FEED)


def check(body: str, transforms: list[Transform]) -> None:
    on = ModelGraph(onnx_model(body))
    note(text(on))
    expected = values(on)
    report = on.optimize(OptimizeOptions(transforms, max_iterations=2, verify=True))
    note(text(on))
    verify_model(on.module)
    for old, new in zip(expected, values(on), strict=True):
        np.testing.assert_array_equal(old, new)
    check_report(report)
    assert len(on.nodes) == report.nodes_after
    again = ModelGraph(onnx_model(body))
    second = again.optimize(OptimizeOptions(transforms, max_iterations=2))
    assert text(again) == text(on)
    counted = [{**row, "seconds": 0.0} for row in report.to_json()["rows"]]
    assert counted == [{**row, "seconds": 0.0} for row in second.to_json()["rows"]]


HELD = dict[str, Any](deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@settings(max_examples=60, **HELD)
@given(bodies(), rules())
def test_23_random_rules_keep_values(body: str, transforms: list[Transform]) -> None:
    check(body, transforms)


@pytest.mark.slow
@settings(max_examples=500, **HELD)
@given(bodies(), rules())
def test_23_random_rules_keep_values_often(body: str, transforms: list[Transform]) -> None:
    check(body, transforms)


@settings(max_examples=40, **HELD)
@given(bodies(), patterns())
def test_23_sums_do_not_hang_on_the_order_of_independent_rules(body: str, pattern: Pattern) -> None:
    """Of two rules that only refuse, either may come first."""
    both = [rewrite(name, pattern, mirrored, lambda match: False) for name in ("a", "b")]
    reports = [
        ModelGraph(onnx_model(body)).optimize(OptimizeOptions(order))
        for order in (both, both[::-1])
    ]
    for name in ("a", "b"):
        first, second = (report.row(name) for report in reports)
        first.seconds = second.seconds = 0.0
        assert first == second
