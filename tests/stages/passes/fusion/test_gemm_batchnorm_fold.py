"""gemm-batchnorm-fold: the columns of a product are the channels of a norm on rank 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.passes.fusion.gemm_batchnorm_fold import GemmBatchnormFold
from tests.stages.check import check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import (
    Node,
    check_bits,
    factor,
    module,
    normal,
    only,
    operand,
    statistics,
)

PASS = GemmBatchnormFold()
NORM: Node = ("BatchNormalization", "c gamma beta mean var", "y")
FEED = {"x": normal(3, 5, seed=4)}


def graph(before: list[Node], w: tuple[int, ...] = (5, 4), **shapes: Any) -> ModuleOp:
    weights = {"w": normal(*w), "b": normal(4, seed=3), "k": normal(1, 4, seed=5), **statistics(4)}
    return module([*before, NORM], weights, {"x": ("N", 5), **shapes})


GEMMS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("x w b", {}),
    "no bias": ("x w", {}),
    "a row": ("x w k", {"beta": 0.5}),
    "factors": ("x w b", {"alpha": 0.25, "beta": -2.0}),
    "transposed": ("x w b", {"transB": 1}),
}


@pytest.mark.parametrize("way", GEMMS)
def test_gemm(way: str) -> None:
    inputs, attributes = GEMMS[way]
    w = (4, 5) if "transB" in attributes else (5, 4)
    given = graph([("Gemm", inputs, "c", attributes)], w)
    results(PASS, given.clone(), FEED).check(2e-5)
    file_results(PASS, given, FEED).check(2e-5)
    assert op_types(given) == ["Gemm"]


def test_weights_are_the_formula_rounded_once() -> None:
    given = graph([("Gemm", "x w b", "c", {"beta": 2.0, "transB": 1})], (4, 5))
    run_pass(PASS, given)
    gemm, norm, s = only(given, "Gemm"), statistics(4), factor(statistics(4))
    wide = normal(4, 5).astype(np.float64) * s.reshape(4, 1)
    check_bits(operand(gemm, 1), wide.astype(np.float32))
    b = (normal(4, seed=3).astype(np.float64) * 2 - norm["mean"]) * s + norm["beta"]
    check_bits(operand(gemm, 2), b.astype(np.float32))
    assert gemm.attribute_values()["beta"] == 1


def test_matmul_and_its_addition() -> None:
    given = graph([("MatMul", "x w", "p"), ("Add", "p b", "c")])
    results(PASS, given.clone(), FEED).check(2e-5)
    file_results(PASS, given, FEED).check(2e-5)
    assert op_types(given) == ["MatMul", "Add"]


def test_matmul_alone_is_added_to() -> None:
    given = graph([("MatMul", "x w", "c")])
    results(PASS, given.clone(), FEED).check(2e-5)
    file_results(PASS, given, FEED).check(2e-5)
    assert op_types(given) == ["MatMul", "Add"]


def test_other_axes_stay() -> None:
    given = module(
        [("MatMul", "x w", "c"), NORM],
        {"w": normal(5, 4), **statistics(4)},
        {"x": (2, 4, 5)},
    )
    check_unchanged(PASS, given, "the rank is 3, so that axis 1 is not the last one")


@pytest.mark.parametrize("shape", [(3, 1), (3, 4)])
def test_a_gemm_that_adds_no_row_stays(shape: tuple[int, ...]) -> None:
    given = module(
        [("Gemm", "x w k", "c"), NORM],
        {"w": normal(5, 4), "k": normal(*shape), **statistics(4)},
        {"x": (3, 5)},
    )
    check_unchanged(PASS, given, "is not one number a channel")


def test_a_bias_of_run_time_stays() -> None:
    check_unchanged(PASS, graph([("Gemm", "x w v", "c")], v=(4,)), "the bias of Gemm is not const")
