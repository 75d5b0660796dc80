"""matmul-scale-fold: arithmetic with constants of columns goes into the product before it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.stages.passes.fusion.matmul_scale_fold import MatmulScaleFold
from tests.stages.check import check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import (
    Node,
    check_bits,
    model,
    module,
    normal,
    only,
    operand,
    statistics,
)

PASS = MatmulScaleFold()
FEED = {"x": normal(2, 3, 5, seed=4)}


def graph(tail: list[Node], x: tuple[object, ...] = ("N", "S", 5)) -> ModuleOp:
    weights = {"w": normal(5, 4), "m": normal(4, seed=1), "a": normal(1, 1, 4, seed=2)}
    weights["k"] = np.array(0.125, np.float32)
    return module(tail, weights, {"x": x})


TAILS: dict[str, tuple[list[Node], list[str]]] = {
    "factor": ([("MatMul", "x w", "p"), ("Mul", "p m", "y")], ["MatMul"]),
    "number": ([("MatMul", "x w", "p"), ("Div", "p k", "y")], ["MatMul"]),
    "after the bias": (
        [("MatMul", "x w", "p"), ("Add", "a p", "q"), ("Mul", "k q", "y")],
        ["MatMul", "Add"],
    ),
    "two sums": (
        [("MatMul", "x w", "p"), ("Add", "p a", "q"), ("Sub", "q m", "y")],
        ["MatMul", "Add"],
    ),
    "before a sum": (
        [("MatMul", "x w", "p"), ("Mul", "p m", "q"), ("Add", "q a", "y")],
        ["MatMul", "Add"],
    ),
}


@pytest.mark.parametrize("tail", TAILS)
def test_values_are_the_same(tail: str) -> None:
    given = graph(TAILS[tail][0])
    results(PASS, given.clone(), FEED).check(2e-5)
    file_results(PASS, given, FEED).check(2e-5)
    assert op_types(given) == TAILS[tail][1]


def test_weights_are_rounded_once() -> None:
    given = graph(TAILS["factor"][0])
    run_pass(PASS, given)
    wide = normal(5, 4).astype(np.float64) * normal(4, seed=1).astype(np.float64)
    check_bits(operand(only(given, "MatMul"), 1), wide.astype(np.float32))


def test_gemm_takes_sums_too() -> None:
    given = graph([("Gemm", "x w m", "p"), ("Mul", "p k", "q"), ("Add", "q m", "y")], x=("N", 5))
    feed = {"x": normal(3, 5, seed=4)}
    results(PASS, given.clone(), feed).check(2e-5)
    file_results(PASS, given, feed).check(2e-5)
    assert op_types(given) == ["Gemm"]


def test_a_sum_alone_is_the_bias_and_stays() -> None:
    check_unchanged(PASS, graph([("MatMul", "x w", "p"), ("Add", "p a", "y")]))


def test_a_constant_that_raises_the_rank_stays() -> None:
    given = graph([("MatMul", "x w", "p"), ("Mul", "p a", "y")], x=("N", 5))
    check_unchanged(PASS, given, "may change the shape")


def test_stacked_weights_have_columns_too() -> None:
    given = module(
        [("MatMul", "x w", "p"), ("Mul", "p m", "y")],
        {"w": normal(2, 5, 4), "m": normal(4, seed=1)},
        {"x": (2, 3, 5)},
    )
    results(PASS, given, FEED).check(2e-5)
    assert op_types(given) == ["MatMul"]


def test_products_of_run_time_stay() -> None:
    given = module(
        [("MatMul", "x v", "p"), ("Mul", "p k", "y")],
        {"k": np.array(0.5, np.float32)},
        {"x": (2, 3, 5), "v": (5, 4)},
    )
    check_unchanged(PASS, given, "the weights of MatMul are not constant")


def test_integers_stay() -> None:
    given = module(
        [("MatMul", "x w", "p"), ("Mul", "p k", "y")],
        {"w": np.ones((5, 4), np.int64), "k": np.array(3)},
        {"x": (2, 3, 5)},
        element=7,
    )
    check_unchanged(PASS, given, "the weights are int64")


def test_a_norm_behind_a_factor_is_folded_at_once() -> None:
    """A product became an operator of its own before what follows the factor was folded."""
    weights = {"w": normal(5, 4), "m": normal(4, seed=1), **statistics(4)}
    tail: list[Node] = [
        ("MatMul", "x w", "p"),
        ("Mul", "p m", "q"),
        ("BatchNormalization", "q gamma beta mean var", "y"),
    ]
    options = {"oo.level": "O3"}
    written = foldline.optimize(model(tail, weights, {"x": ("N", 5)}), options=options)
    assert [node.op_type for node in written.graph.node if node.op_type != "Constant"] == ["Gemm"]
    again = foldline.optimize(written, options=options)
    assert again.SerializeToString() == written.SerializeToString()
