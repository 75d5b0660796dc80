"""hard-swish: x times a hard sigmoid of x, in any order of the factors."""

from typing import Any

import numpy as np
import pytest

from foldline.stages.passes.fusion.hard_swish import HardSwish
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import SPECIAL, file_results, grid, real, results, sizes

CLIP = "s = Add(x, three) c = Clip(s, zero, six)"
RELU = "s = Add(three, x) r = Relu(s) c = Min(r, six)"
SIGMOID = "c = HardSigmoid<alpha = 0.16666667, beta = 0.5>(x) y = Mul(c, x)"
PRODUCTS = {
    "(x core) / 6": "m = Mul(x, c) y = Div(m, six)",
    "(core x) * 1/6": "m = Mul(c, x) y = Mul(m, sixth)",
    "x (core / 6)": "m = Div(c, six) y = Mul(x, m)",
    "x (1/6 core)": "m = Mul(sixth, c) y = Mul(x, m)",
    "(x / 6) core": "m = Div(x, six) y = Mul(m, c)",
    "core (x 1/6)": "m = Mul(x, sixth) y = Mul(c, m)",
}
PLAIN = f"{CLIP} {PRODUCTS['(x core) / 6']}"


def model(body: str, opset: int = 13, kind: str = "float", head: str = "[N] y"):
    numbers = {"zero": 0, "one": 1, "three": 3, "six": 6, "sixth": 1 / 6}
    constants = real(kind, **numbers)
    return from_onnx(f"g ({kind}[N] x) => ({kind}{head}) {constants} {{ {body} }}", opset=opset)


@pytest.mark.parametrize("core", [CLIP, RELU])
@pytest.mark.parametrize("order", PRODUCTS)
def test_every_spelling(core: str, order: str):
    module = model(f"{core} {PRODUCTS[order]}")
    run_pass(HardSwish(), module)
    assert op_types(module) == ["HardSwish"]


@pytest.mark.parametrize(("opset", "name"), [(13, "fused.HardSwish"), (14, "onnx.HardSwish")])
def test_of_hard_sigmoid(opset: int, name: str):
    module = model(SIGMOID, opset)
    run_pass(HardSwish(), module)
    assert [op.name for op in module.walk() if "HardSwish" in op.name] == [name]


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [11, 14])
@pytest.mark.parametrize("body", [PLAIN, SIGMOID])
def test_within_2_eps_of_x(body: str, opset: int, run: Any):
    x = np.concatenate([grid(), np.array(SPECIAL, np.float32)])
    x = x[~(np.abs(x) == np.float32(1e38))]
    run(HardSwish(), model(body, opset), {"x": x}).check(2 * sizes(x))


def test_gives_x_where_a_product_of_the_parts_overflows():
    found = results(HardSwish(), model(PLAIN), {"x": np.array([1e38], np.float32)})
    assert found.parts[0] == np.inf
    assert found.fused[0] == np.float32(1e38)


def test_half_type():
    x = grid(np.float16, 8, 301)
    module = model(PLAIN, kind="float16")
    found = results(HardSwish(), module, {"x": x})
    assert op_types(module) == ["HardSwish"]
    found.check(2 * sizes(x))


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (PLAIN, "double", "0.16666666666666666 is no float32"),
        (PLAIN.replace("y = Div(m, six)", "y = Div(m, three)"), "float", "factor is 0.333333"),
        (f"n = Neg(x) {CLIP} m = Mul(n, c) y = Div(m, six)", "float", "not the value 'x'"),
        ("n = Neg(x) " + SIGMOID.replace("c, x", "c, n"), "float", "not the value 'x'"),
    ],
)
def test_declines(body: str, kind: str, reason: str):
    check_unchanged(HardSwish(), model(body, kind=kind), reason)


@pytest.mark.parametrize(
    "body", [SIGMOID.replace("0.16666667", "0.2"), SIGMOID.replace("0.5", "0.4")]
)
def test_declines_other_lines(body: str):
    check_unchanged(HardSwish(), model(body))


def test_declines_an_interior_value_that_is_read_outside():
    check_unchanged(HardSwish(), model(PLAIN, head="[N] y, float[N] c"), "read outside")
