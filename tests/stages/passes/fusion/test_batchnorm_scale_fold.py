"""batchnorm-scale-fold: arithmetic goes into the scale and shift of the norm before it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.passes.fusion.batchnorm_scale_fold import BatchnormScaleFold
from tests.stages.check import Array, check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import (
    Node,
    check_bits,
    module,
    normal,
    only,
    operand,
    statistics,
)

PASS = BatchnormScaleFold()
M, A = normal(3, 1, 1, seed=1), normal(1, 3, 1, 1, seed=2)
TAILS: dict[str, list[Node]] = {
    "scale": [("Mul", "n m", "d"), ("Add", "d a", "y")],
    "factor": [("Mul", "m n", "y")],
    "divisor": [("Div", "n m", "y")],
    "minuend": [("Sub", "a n", "y")],
}
FEED = {"x": normal(2, 3, 4, 5, seed=4)}


def graph(tail: list[Node], x: tuple[object, ...] = ("N", 3, "H", "W")) -> ModuleOp:
    weights: dict[str, Array] = {"m": M, "a": A, **statistics(3)}
    return module([("BatchNormalization", "x gamma beta mean var", "n"), *tail], weights, {"x": x})


@pytest.mark.parametrize("tail", TAILS)
def test_values_are_the_same(tail: str) -> None:
    given = graph(TAILS[tail])
    results(PASS, given.clone(), FEED).check(2e-5)
    file_results(PASS, given, FEED).check(2e-5)
    assert op_types(given) == ["BatchNormalization"]


def test_scale_and_shift_are_rounded_once() -> None:
    given = graph(TAILS["scale"])
    run_pass(PASS, given)
    norm, old = only(given, "BatchNormalization"), statistics(3)
    m, a = M.reshape(3).astype(np.float64), A.reshape(3).astype(np.float64)
    check_bits(operand(norm, 1), (old["gamma"] * m).astype(np.float32))
    check_bits(operand(norm, 2), (old["beta"] * m + a).astype(np.float32))
    check_bits(operand(norm, 3), old["mean"])


def test_what_is_not_one_number_a_channel_stays() -> None:
    given = module(
        [("BatchNormalization", "x gamma beta mean var", "n"), ("Mul", "n m", "y")],
        {"m": normal(4, 5), **statistics(3)},
        {"x": (2, 3, 4, 5)},
    )
    check_unchanged(PASS, given, "is not one number a channel")


def test_a_rank_that_is_not_known_stays() -> None:
    statistic = ", ".join(f"float[3] {name} = {{1,2,3}}" for name in "gbmv")
    given = from_onnx(f"""g (float[2,60] x, int64[R] s) => (float[A,B,C,D] y)
    <{statistic}, float[3,1,1] k = {{4,5,6}}>
    {{ r = Reshape(x, s) n = BatchNormalization(r, g, b, m, v) y = Mul(n, k) }}""")
    check_unchanged(PASS, given, "may change the shape")


def test_training_stays() -> None:
    given = module(
        [
            ("BatchNormalization", "x gamma beta mean var", "n p q", {"training_mode": 1}),
            ("Mul", "n m", "y"),
        ],
        {"m": M, **statistics(3)},
        {"x": (2, 3, 4, 5)},
    )
    check_unchanged(PASS, given, "trains")
