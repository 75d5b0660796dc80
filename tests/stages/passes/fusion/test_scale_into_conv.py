"""scale-into-conv: a factor of the input goes into the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.passes.fusion.scale_into_conv import ScaleIntoConv
from tests.stages.check import check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import Node, check_bits, module, normal, only, operand

PASS = ScaleIntoConv()
FEED = {"x": normal(2, 4, 6, 6, seed=4)}


def graph(
    scale: Node, group: int = 1, x: tuple[Any, ...] = ("N", 4, "H", "W"), **given: Any
) -> ModuleOp:
    weights = {
        "w": normal(6, 4 // group, 3, 3),
        "m": normal(4, 1, 1, seed=1),
        "k": np.array(255, np.float32),
    }
    conv = ("Conv", "d w", "y", {"group": group, "pads": [1, 1, 1, 1]})
    return module([scale, conv], weights, {"x": x}, **given)


@pytest.mark.parametrize("scale", [("Mul", "x m", "d"), ("Mul", "m x", "d"), ("Div", "x k", "d")])
@pytest.mark.parametrize("group", [1, 2])
def test_values_are_the_same(scale: Node, group: int) -> None:
    given = graph(scale, group)
    results(PASS, given.clone(), FEED).check(2e-5)
    file_results(PASS, given, FEED).check(2e-5)
    assert op_types(given) == ["Conv"]


def test_weights_are_rounded_once() -> None:
    given = graph(("Mul", "x m", "d"), 2)
    run_pass(PASS, given)
    w, m = normal(6, 2, 3, 3).astype(np.float64), normal(4, seed=1).astype(np.float64)
    wanted = np.concatenate([w[:3] * m[:2, None, None], w[3:] * m[2:, None, None]])
    check_bits(operand(only(given, "Conv"), 1), wanted.astype(np.float32))


def test_a_factor_that_makes_the_channels_stays() -> None:
    given = graph(("Mul", "x m", "d"), x=(1, 1, 6, 6))
    check_unchanged(PASS, given, "is not known to have 4 channels")


def test_the_other_way_to_divide_stays() -> None:
    check_unchanged(PASS, graph(("Div", "m x", "d")), "it divides a constant")


def test_products_that_others_read_stay() -> None:
    given = graph(("Mul", "x m", "d"), outputs=("y", "d"))
    check_unchanged(PASS, given, "read outside as well")


def test_what_is_not_finite_is_refused() -> None:
    given = module(
        [("Div", "x k", "d"), ("Conv", "d w", "y")],
        {"w": normal(6, 4, 1, 1), "k": np.array(0, np.float32)},
        {"x": (1, 4, 6, 6)},
    )
    check_unchanged(PASS, given, "the folded weights are not finite")


def test_sums_stay() -> None:
    check_unchanged(PASS, graph(("Add", "x m", "d")))
