"""hard-sigmoid: a line within 0 and 1, and Clip(x + 3, 0, 6) / 6."""

from typing import Any

import numpy as np
import pytest

from foldline.stages.passes.fusion.hard_sigmoid import HardSigmoid
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import SPECIAL, file_results, grid, real, results

LINE = "m = Mul(x, a) s = Add(m, h) y = Clip(s, zero, one)"
SIXTH = "s = Add(x, three) c = Clip(s, zero, six) y = Div(c, six)"


def model(body: str, opset: int = 13, kind: str = "float", head: str = "[N] y"):
    numbers = {"a": 0.2, "h": 0.5, "zero": 0, "one": 1, "three": 3, "six": 6, "sixth": 1 / 6}
    constants = real(kind, **numbers)
    return from_onnx(f"g ({kind}[N] x) => ({kind}{head}) {constants} {{ {body} }}", opset=opset)


@pytest.mark.parametrize(
    ("body", "alpha"),
    [
        (LINE, 0.2),
        ("m = Mul(a, x) s = Add(h, m) y = Clip(s, zero, one)", 0.2),
        ("m = Div(x, six) s = Add(m, h) y = Clip(s, zero, one)", 1 / 6),
        (SIXTH, 1 / 6),
        ("s = Add(three, x) c = Clip(s, zero, six) y = Mul(sixth, c)", 1 / 6),
        ("s = Add(x, three) r = Relu(s) c = Min(r, six) y = Div(c, six)", 1 / 6),
    ],
)
def test_becomes_hard_sigmoid(body: str, alpha: float):
    module = model(body)
    run_pass(HardSigmoid(), module)
    (node,) = (op for op in module.walk() if op.name == "onnx.HardSigmoid")
    assert node.attribute_values() == {"alpha": np.float32(alpha), "beta": 0.5}


@pytest.mark.parametrize("opset", [7, 10])
def test_limits_as_attributes(opset: int):
    module = model("m = Mul(x, a) s = Add(m, h) y = Clip<min = 0.0, max = 1.0>(s)", opset)
    run_pass(HardSigmoid(), module)
    assert op_types(module) == ["HardSigmoid"]


def test_a_line_keeps_its_bits():
    x = np.concatenate([grid(), np.array(SPECIAL, np.float32)])
    found = results(HardSigmoid(), model(LINE), {"x": x})
    np.testing.assert_array_equal(found.fused.view(np.uint32), found.parts.view(np.uint32))


@pytest.mark.parametrize("run", [results, file_results])
def test_a_sixth_within_1_eps(run: Any):
    x = np.concatenate([grid(), np.array(SPECIAL, np.float32)])
    run(HardSigmoid(), model(SIXTH), {"x": x}).check(np.finfo(np.float32).eps)


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (LINE, "double", "0.2 is no float32"),
        (SIXTH, "double", "is no float32"),
        (SIXTH.replace("Div(c, six)", "Div(c, three)"), "float", "the factor is 0.333333"),
    ],
)
def test_declines(body: str, kind: str, reason: str):
    check_unchanged(HardSigmoid(), model(body, kind=kind), reason)


@pytest.mark.parametrize(
    "body", [LINE.replace("zero, one", "zero, six"), SIXTH.replace("x, three", "x, one")]
)
def test_declines_other_limits_and_shifts(body: str):
    check_unchanged(HardSigmoid(), model(body))


def test_declines_an_interior_value_that_is_read_outside():
    check_unchanged(HardSigmoid(), model(LINE, head="[N] y, float[N] s"), "read outside")


def test_declines_integers():
    text = "g (int64[N] x) => (int64[N] y) <int64 three = {3}, int64 zero = {0}, int64 six = {6}>"
    check_unchanged(HardSigmoid(), from_onnx(f"{text} {{ {SIXTH} }}"), "does not take int64")
