"""conv-scale-fold: arithmetic with constants goes into the weights and the bias before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.passes.fusion.conv_scale_fold import ConvScaleFold
from tests.stages.check import Array, check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import (
    Node,
    check_bits,
    module,
    normal,
    only,
    operand,
)

PASS = ConvScaleFold()
M = np.array([2.5, -0.75, 1.25], np.float32).reshape(3, 1, 1)
A = np.array([[[[0.1]], [[-3]], [[7]]]], np.float32)


def graph(
    tail: list[Node], weights: dict[str, Array] | None = None, has_bias: bool = True, **given: Any
) -> ModuleOp:
    """A Conv and what follows it; `m` and `a` are constants of channels."""
    known = {"w": normal(3, 2, 3, 3), "b": normal(3, seed=3), "m": M, "a": A, **(weights or {})}
    conv = ("Conv", "x w b" if has_bias else "x w", "c", {"pads": [1, 1, 1, 1]})
    return module([conv, *tail], known, {"x": ("N", 2, 7, 7)}, **given)


FEED = {"x": normal(2, 2, 7, 7, seed=4)}
TAILS: dict[str, list[Node]] = {
    "factor": [("Mul", "c m", "y")],
    "factor first": [("Mul", "m c", "y")],
    "divisor": [("Div", "c m", "y")],
    "addend": [("Add", "c a", "y")],
    "addend first": [("Add", "a c", "y")],
    "subtrahend": [("Sub", "c a", "y")],
    "minuend": [("Sub", "a c", "y")],
    "factor and addend": [("Mul", "c m", "d"), ("Add", "d a", "y")],
    "caffe": [("Sub", "c a", "d"), ("Div", "d m", "e"), ("Add", "e a", "y")],
    "four": [("Mul", "c m", "d"), ("Add", "d a", "e"), ("Div", "e m", "f"), ("Sub", "a f", "y")],
}


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("tail", TAILS)
def test_values_are_the_same(tail: str, has_bias: bool) -> None:
    given = graph(TAILS[tail], has_bias=has_bias)
    results(PASS, given.clone(), FEED).check(4e-5)
    file_results(PASS, given, FEED).check(4e-5)
    assert op_types(given) == ["Conv"]


def test_weights_and_bias_are_rounded_once() -> None:
    given = graph(TAILS["factor and addend"])
    run_pass(PASS, given)
    conv = only(given, "Conv")
    m, a = M.reshape(3).astype(np.float64), A.reshape(3).astype(np.float64)
    w = normal(3, 2, 3, 3).astype(np.float64) * m.reshape(3, 1, 1, 1)
    check_bits(operand(conv, 1), w.astype(np.float32))
    b = normal(3, seed=3).astype(np.float64) * m + a
    check_bits(operand(conv, 2), b.astype(np.float32))


def test_no_bias_appears_where_nothing_is_added() -> None:
    given = graph(TAILS["factor"], has_bias=False)
    run_pass(PASS, given)
    assert only(given, "Conv").operand(2) is None


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (1, 1, 1, 1)])
def test_one_number_is_that_of_every_channel(shape: tuple[int, ...]) -> None:
    given = graph([("Mul", "c k", "y")], {"k": np.full(shape, 0.5, np.float32)})
    results(PASS, given, FEED).check(2e-5)
    assert op_types(given) == ["Conv"]


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ((7,), "is not one number a channel"),
        ((1, 3, 7, 1), "is not one number a channel"),
        ((2, 1, 1, 1), "is not one number a channel"),
        ((1, 1, 1, 1, 1), "may change the shape"),
    ],
)
def test_other_constants_stay(shape: tuple[int, ...], reason: str) -> None:
    given = graph([("Mul", "c k", "y")], {"k": np.ones(shape, np.float32)})
    check_unchanged(PASS, given, reason)


def test_channels_that_a_constant_adds_stay() -> None:
    given = module(
        [("Conv", "x w", "c"), ("Mul", "c m", "y")],
        {"w": normal(1, 2, 3, 3), "m": M},
        {"x": (1, 2, 7, 7)},
    )
    check_unchanged(PASS, given, "there are 1 channels, but 3 numbers")


def test_the_other_way_to_divide_stays() -> None:
    check_unchanged(PASS, graph([("Div", "m c", "y")]), "it divides a constant")


@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38])
def test_what_is_not_finite_is_refused(value: float) -> None:
    given = graph([("Mul", "c k", "y")], {"k": np.float32(value), "w": normal(3, 2, 3, 3) * 9})
    check_unchanged(PASS, given, "the folded weights are not finite")


def test_a_division_by_zero_is_refused() -> None:
    given = graph([("Div", "c k", "y")], {"k": np.float32(0)})
    check_unchanged(PASS, given, "the folded weights are not finite")


def test_a_chain_ends_where_one_cannot_be_folded() -> None:
    given = graph([("Mul", "c m", "d"), ("Mul", "d k", "y")], {"k": np.ones((7, 7), np.float32)})
    run_pass(PASS, given)
    assert op_types(given) == ["Conv", "Mul"]


def test_squares_stay() -> None:
    check_unchanged(PASS, graph([("Mul", "c c", "y")]))


def test_results_that_others_read_stay() -> None:
    check_unchanged(PASS, graph(TAILS["factor"], outputs=("y", "c")), "read outside as well")


@pytest.mark.parametrize(("group", "w"), [(1, (2, 3, 2, 2)), (2, (2, 2, 2, 2))])
def test_transposed_convolutions_too(group: int, w: tuple[int, ...]) -> None:
    count = group * w[1]
    given = module(
        [("ConvTranspose", "x w", "c", {"group": group}), ("Mul", "c m", "d"), ("Add", "d m", "y")],
        {"w": normal(*w), "m": normal(count, 1, 1, seed=2)},
        {"x": (1, 2, 5, 5)},
    )
    feed = {"x": normal(1, 2, 5, 5, seed=4)}
    results(PASS, given.clone(), feed).check(2e-5)
    file_results(PASS, given, feed).check(2e-5)
    assert op_types(given) == ["ConvTranspose"]


@pytest.mark.parametrize("attributes", ["<axis = 1, broadcast = 1>", "<broadcast = 1>"])
def test_old_versions_say_the_axis(attributes: str) -> None:
    shape, values = ("[3]", "{1,2,3}") if "axis" in attributes else ("[3,1,1]", "{1,2,3}")
    given = from_onnx(
        f"""g (float[1,1,2,2] x) => (float[1,3,2,2] y)
        <float[3,1,1,1] w = {{1,2,3}}, float{shape} m = {values}>
        {{ c = Conv(x, w) y = Mul {attributes} (c, m) }}""",
        ir_version=3,
        opset=6,
    )
    run_pass(PASS, given)
    np.testing.assert_array_equal(operand(only(given, "Conv"), 1).reshape(-1), [1, 4, 9])
    assert op_types(given) == ["Conv"]


def test_half_types_stay() -> None:
    given = module(
        [("Conv", "x w", "c"), ("Mul", "c m", "y")],
        {"w": normal(3, 2, 1, 1, dtype=np.float16), "m": M.astype(np.float16)},
        {"x": (1, 2, 4, 4)},
        element=10,
    )
    check_unchanged(PASS, given, "the weights are float16")
