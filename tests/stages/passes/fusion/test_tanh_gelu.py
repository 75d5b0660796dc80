"""tanh-gelu: the polynomial in any spelling, its refusals, its numerics."""

from typing import Any

import numpy as np
import pytest

from foldline.stages.passes.fusion.tanh_gelu import TanhGelu
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import SPECIAL, file_results, grid, real, results, sizes

SLOPE = (2 / np.pi) ** 0.5
NUMBERS = {"h": 0.5, "o": 1, "c": 0.044715, "s": SLOPE, "cs": 0.044715 * SLOPE, "three": 3}
NUMBERS |= {"two": 2, "si": 1 / SLOPE, "other": 0.05}

TAIL = "t = Tanh(u) a = Add(t, o) m = Mul(x, h) y = Mul(m, a)"
ARGUMENTS = {
    "power": "p = Pow(x, three) k = Mul(p, c) i = Add(x, k) u = Mul(i, s)",
    "reversed": "p = Pow(x, three) k = Mul(c, p) i = Add(k, x) u = Mul(s, i)",
    "product": "p = Mul(x, x) p1 = Mul(x, p) k = Mul(p1, c) i = Add(x, k) u = Mul(i, s)",
    "left to right": "p = Mul(c, x) p1 = Mul(p, x) k = Mul(p1, x) i = Add(x, k) u = Mul(i, s)",
    "square inside": "p = Mul(x, x) p1 = Mul(p, c) k = Add(p1, o) i = Mul(k, x) u = Mul(i, s)",
    "slope first": "p = Pow(x, two) p1 = Mul(p, c) k = Add(o, p1) i = Mul(s, x) u = Mul(i, k)",
    "spread": "p = Pow(x, three) k = Mul(p, cs) i = Mul(x, s) u = Add(i, k)",
    "divided": "p = Pow(x, three) k = Mul(p, c) i = Add(x, k) u = Div(i, si)",
}
PLAIN = f"{ARGUMENTS['power']} {TAIL}"


def model(body: str, opset: int = 13, kind: str = "float", head: str = "[N] y"):
    constants = real(kind, **NUMBERS)
    return from_onnx(f"g ({kind}[N] x) => ({kind}{head}) {constants} {{ {body} }}", opset=opset)


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_every_spelling_of_the_polynomial(argument: str):
    module = model(f"{ARGUMENTS[argument]} {TAIL}")
    run_pass(TanhGelu(), module)
    assert op_types(module) == ["Gelu"]


@pytest.mark.parametrize(
    "tail",
    [
        "t = Tanh(u) a = Add(o, t) m = Mul(a, h) y = Mul(x, m)",
        "t = Tanh(u) a = Add(t, o) m = Mul(a, x) y = Div(m, two)",
    ],
)
def test_every_order_of_the_factors(tail: str):
    module = model(f"{ARGUMENTS['power']} {tail}", opset=20)
    run_pass(TanhGelu(), module)
    (node,) = (op for op in module.walk() if op.name == "onnx.Gelu")
    assert node.attribute_values()["approximate"] == "tanh"


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [13, 20])
def test_within_2_eps_of_x(opset: int, run: Any):
    x = np.concatenate([grid(), np.array(SPECIAL, np.float32)])
    run(TanhGelu(), model(PLAIN, opset), {"x": x}).check(2 * sizes(x))


def test_half_type():
    x = grid(np.float16, 6, 301)
    module = model(PLAIN, kind="float16")
    found = results(TanhGelu(), module, {"x": x})
    assert op_types(module) == ["Gelu"]
    found.check(4 * sizes(x))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (PLAIN.replace("Mul(p, c)", "Mul(p, other)"), "0.0398942 x^3"),
        (PLAIN.replace("(x, three)", "(x, two)"), "0.0356774 x^2"),
        (PLAIN.replace("u = Mul(i, s)", "u = Sin(i)"), "not that of Gelu but something else"),
    ],
)
def test_declines_another_argument(body: str, reason: str):
    check_unchanged(TanhGelu(), model(body), reason)


@pytest.mark.parametrize("inner", ["p", "k", "i", "u"])
def test_declines_an_interior_value_that_is_read_outside(inner: str):
    check_unchanged(TanhGelu(), model(PLAIN, head=f"[N] y, float[N] {inner}"), "read outside")


def test_declines_a_polynomial_of_another_value():
    body = PLAIN.replace("Pow(x,", "Pow(z,")
    text = f"g (float[N] x, float[N] z) => (float[N] y) {real('float', **NUMBERS)} {{ {body} }}"
    check_unchanged(TanhGelu(), from_onnx(text, opset=13), "something else")
