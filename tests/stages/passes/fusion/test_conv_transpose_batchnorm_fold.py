"""conv-transpose-batchnorm-fold: the channels are axis 1 of the weights, group by group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.passes.fusion.conv_batchnorm_fold import ConvBatchnormFold
from foldline.stages.passes.fusion.conv_transpose_batchnorm_fold import ConvTransposeBatchnormFold
from tests.stages.check import check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import (
    check_bits,
    factor,
    module,
    normal,
    only,
    operand,
    statistics,
)

PASS = ConvTransposeBatchnormFold()

WAYS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 5, 6), (3, 4, 3, 3), {"strides": [2, 2], "pads": [1, 0, 1, 0]}),
    "grouped": ((1, 6, 5, 5), (6, 2, 2, 3), {"group": 3}),
    "depthwise": ((1, 4, 5, 5), (4, 1, 2, 2), {"group": 4, "strides": [2, 2]}),
    "one axis": ((2, 5, 9), (5, 3, 4), {"output_padding": [1], "strides": [2]}),
    "three axes": ((1, 2, 3, 4, 3), (2, 3, 2, 2, 2), {}),
}


def graph(way: str, has_bias: bool) -> ModuleOp:
    x, w, attributes = WAYS[way]
    count = w[1] * attributes.get("group", 1)
    weights = {"w": normal(*w), **statistics(count)}
    if has_bias:
        weights["b"] = normal(count, seed=3)
    return module(
        [
            ("ConvTranspose", "x w" + " b" * has_bias, "c", attributes),
            ("BatchNormalization", "c gamma beta mean var", "y"),
        ],
        weights,
        {"x": x},
    )


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_row_3_4_values_are_the_same(way: str, has_bias: bool) -> None:
    feed = {"x": normal(*WAYS[way][0], seed=4)}
    given = graph(way, has_bias)
    results(PASS, given.clone(), feed).check(2e-5)
    file_results(PASS, given, feed).check(2e-5)
    assert op_types(given) == ["ConvTranspose"]


def test_row_3_4_weights_of_groups_are_the_formula_rounded_once() -> None:
    given = graph("grouped", has_bias=False)
    run_pass(PASS, given)
    w, s = normal(6, 2, 2, 3).astype(np.float64), factor(statistics(6))
    wanted = w.copy()
    for c in range(6):
        for m in range(2):
            wanted[c, m] *= s[c // 2 * 2 + m]
    check_bits(operand(only(given, "ConvTranspose"), 1), wanted.astype(np.float32))


def test_conv_batchnorm_fold_leaves_it_alone() -> None:
    check_unchanged(ConvBatchnormFold(), graph("plain", has_bias=True))


def test_results_that_others_read_stay() -> None:
    given = module(
        [
            ("ConvTranspose", "x w", "c"),
            ("BatchNormalization", "c gamma beta mean var", "y"),
        ],
        {"w": normal(3, 4, 2, 2), **statistics(4)},
        {"x": (1, 3, 4, 4)},
        outputs=("y", "c"),
    )
    check_unchanged(PASS, given, "read outside as well")
