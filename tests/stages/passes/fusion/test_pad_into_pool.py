"""pad-into-pool: a border that a pool can add itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.passes.fusion.pad_into_pool import PadIntoPool
from tests.stages.check import check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import Node, check_bits, module, normal, only

PASS = PadIntoPool()
PADS = [0, 0, 1, 0, 0, 0, 1, 2]


def graph(
    pool: str,
    fill: float = 0.0,
    pads: list[int] | None = None,
    before: list[Node] | None = None,
    x: tuple[Any, ...] = (2, 3, 9, 8),
    opset: int = 21,
    outputs: str = "y",
    **given: Any,
) -> ModuleOp:
    nodes: list[Node] = [
        *(before or []),
        ("Pad", f"{'r' if before else 'x'} p f", "d"),
        (pool, "d", outputs, {"kernel_shape": [3, 3], **given}),
    ]
    weights = {"p": np.array(pads or PADS, np.int64), "f": np.array(fill, np.float32)}
    return module(nodes, weights, {"x": x}, opset=opset)


FEED = {"x": normal(2, 3, 9, 8, seed=4)}
AVERAGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "strides": {"strides": [2, 2]},
    "own pads that count": {"pads": [0, 0, 1, 0, 0, 0, 1, 0], "count_include_pad": 1},
    "VALID": {"auto_pad": "VALID"},
}


@pytest.mark.parametrize("way", AVERAGES)
def test_averages_count_the_zeros(way: str) -> None:
    given = graph("AveragePool", **AVERAGES[way])
    results(PASS, given.clone(), FEED).check(1e-6)
    file_results(PASS, given, FEED).check(1e-6)
    assert op_types(given) == ["AveragePool"]
    assert only(given, "AveragePool").attribute_values()["count_include_pad"] == 1


def test_own_pads_that_count_are_added_to() -> None:
    given = module(
        [
            ("Pad", "x p", "d"),
            (
                "AveragePool",
                "d",
                "y",
                {"kernel_shape": [4, 4], "pads": [1, 1, 1, 1], "count_include_pad": 1},
            ),
        ],
        {"p": np.array(PADS)},
        {"x": (2, 3, 9, 8)},
    )
    results(PASS, given.clone(), FEED).check(1e-6)
    file_results(PASS, given, FEED).check(1e-6)
    assert only(given, "AveragePool").attribute_values()["pads"] == (2, 1, 2, 3)


@pytest.mark.parametrize("special", [None, np.nan, -np.inf])
def test_maxima_do_not_see_minus_infinity(special: float | None) -> None:
    feed = {"x": FEED["x"].copy()}
    if special is not None:
        feed["x"][0, 0, :4, :4] = special
    given = graph("MaxPool", -np.inf)
    check = results(PASS, given.clone(), feed)
    check_bits(check.fused, check.parts)
    file_results(PASS, given, feed).check(0)
    assert op_types(given) == ["MaxPool"]


@pytest.mark.parametrize("name", ["Relu", "Sigmoid", "Clip"])
def test_maxima_of_what_is_not_negative_do_not_see_zeros(name: str) -> None:
    before: list[Node] = [(name, "x f" if name == "Clip" else "x", "r")]
    given = graph("MaxPool", before=before)
    results(PASS, given.clone(), FEED).check(0)
    file_results(PASS, given, FEED).check(0)
    assert op_types(given) == [name, "MaxPool"]


@pytest.mark.parametrize(
    ("pool", "given", "reason"),
    [
        ("MaxPool", {}, "which may be greater"),
        ("MaxPool", {"before": [("Tanh", "x", "r")]}, "which may be greater"),
        ("MaxPool", {"fill": -3.4e38}, "which may be greater"),
        ("MaxPool", {"fill": -np.inf, "ceil_mode": 1}, "ceil_mode"),
        ("MaxPool", {"fill": -np.inf, "outputs": "y i"}, "indices"),
        ("MaxPool", {"fill": -np.inf, "dilations": [2, 2]}, "a dilated window"),
        ("MaxPool", {"fill": -np.inf, "pads": [0, 0, 3, 0, 0, 0, 0, 0]}, "as wide as the window"),
        ("AveragePool", {"fill": 1.0}, "adds 1.0 and not 0"),
        ("AveragePool", {"auto_pad": "SAME_UPPER"}, "does not count the pads"),
        ("AveragePool", {"ceil_mode": 1}, "ceil_mode"),
        ("AveragePool", {"pads": [0, 1, 1, 0, 0, 0, 0, 0]}, "adds images or channels"),
    ],
)
def test_others_stay(pool: str, given: dict[str, Any], reason: str) -> None:
    check_unchanged(PASS, graph(pool, **given), reason)


def test_own_pads_that_do_not_count_stay() -> None:
    given = module(
        [
            ("Pad", "x p", "d"),
            ("AveragePool", "d", "y", {"kernel_shape": [4, 4], "pads": [1, 1, 1, 1]}),
        ],
        {"p": np.array(PADS)},
        {"x": (2, 3, 9, 8)},
    )
    check_unchanged(PASS, given, "does not count the pads")


def test_it_settles() -> None:
    given = graph("AveragePool")
    run_pass(PASS, given)
    assert not run_pass(PASS, given).rewriter.changes
