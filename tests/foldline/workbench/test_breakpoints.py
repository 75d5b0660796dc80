"""What a breakpoint stops at."""

from __future__ import annotations

import pytest

from foldline.stages.gate import Application
from foldline.support.errors import InvalidArgumentError
from foldline.workbench.breakpoints import Breakpoint, first_hit

CHANGE = Application(
    7,
    "constant-folding",
    "onnx.Add",
    "sum",
    1,
    frozenset({"sum", "total"}),
    frozenset({"onnx.Add", "com_microsoft.Gelu"}),
)


@pytest.mark.parametrize(
    ("kind", "glob", "hits"),
    [
        ("rule", "constant-folding", True),
        ("rule", "constant*", True),
        ("rule", "sum", False),
        ("node", "sum", True),
        ("node", "s?m", True),
        ("node", "Sum", False),
        ("value", "total", True),
        ("value", "constant-folding", False),
        ("type", "Add", True),
        ("type", "Gelu", True),
        ("type", "com_microsoft.*", True),
        ("type", "sum", False),
    ],
)
def test_kinds(kind: str, glob: str, hits: bool) -> None:
    assert Breakpoint(kind, glob).hits(CHANGE) is hits


def test_a_kind_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"'rul'.*did you mean 'rule'.*rule, node, value"
    ):
        Breakpoint("rul", "x")


def test_the_first_change_from_a_position_on() -> None:
    other = Application(8, "prune", "", "", 1)
    points = [Breakpoint("rule", "prune"), Breakpoint("node", "sum")]
    assert first_hit(points, [CHANGE, other], 0) == (0, points[1])
    assert first_hit(points, [CHANGE, other], 1) == (1, points[0])
    assert first_hit(points, [CHANGE, other], 2) is None
    assert str(points[0]) == "rule prune"
