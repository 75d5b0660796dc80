"""swish: a value times its sigmoid."""

from typing import Any

import numpy as np
import pytest

from foldline.stages.passes.fusion.swish import Swish
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import SPECIAL, file_results, grid, real, results, sizes

PLAIN = "e = Sigmoid(x) y = Mul(x, e)"
SCALED = "d = Mul(x, a) e = Sigmoid(d) y = Mul(x, e)"


def model(body: str, opset: int = 13, kind: str = "float", head: str = "[N] y"):
    constants = real(kind, a=1.5, two=2, zero=0, third=1 / 3)
    return from_onnx(f"g ({kind}[N] x) => ({kind}{head}) {constants} {{ {body} }}", opset=opset)


@pytest.mark.parametrize(
    ("body", "alpha"),
    [
        (PLAIN, 1.0),
        ("e = Sigmoid(x) y = Mul(e, x)", 1.0),
        (SCALED, 1.5),
        (SCALED.replace("x, a", "a, x"), 1.5),
        (SCALED.replace("Mul(x, a)", "Div(x, two)"), 0.5),
    ],
)
@pytest.mark.parametrize(("opset", "name"), [(7, "fused.Swish"), (24, "onnx.Swish")])
def test_becomes_swish(body: str, alpha: float, opset: int, name: str):
    module = model(body, opset)
    run_pass(Swish(), module)
    (node,) = (op for op in module.walk() if op.name == name)
    assert node.attribute_values()["alpha"] == alpha


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("body", [PLAIN, SCALED])
@pytest.mark.parametrize("opset", [13, 24])
def test_within_2_eps_of_x(opset: int, body: str, run: Any):
    x = np.concatenate([grid(reach=120), np.array(SPECIAL, np.float32)])
    run(Swish(), model(body, opset), {"x": x}).check(2 * sizes(x))


@pytest.mark.parametrize("kind", ["double", "float16"])
def test_other_floats(kind: str):
    x = grid(np.float64 if kind == "double" else np.float16, 6, 301)
    module = model(SCALED, kind=kind)
    found = results(Swish(), module, {"x": x})
    assert op_types(module) == ["Swish"]
    found.check(2 * sizes(x))


def test_dynamic_rank_and_zero_size():
    for shape in ("[0, 3]", "[]", ""):
        module = from_onnx(f"g (float{shape} x) => (float{shape} y) {{ {PLAIN} }}")
        run_pass(Swish(), module)
        assert op_types(module) == ["Swish"]


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (SCALED.replace("x, a", "x, zero"), "float", "the factor is 0"),
        (SCALED.replace("x, a", "x, third"), "double", "is no float32"),
        ("e = Sigmoid(x) z = Neg(x) y = Mul(z, e)", "float", "not the value 'x'"),
    ],
)
def test_declines(body: str, kind: str, reason: str):
    check_unchanged(Swish(), model(body, kind=kind), reason)


def test_declines_where_operators_do_not_broadcast():
    check_unchanged(Swish(), model(PLAIN, 6), "operator set 6 broadcasts only where")


def test_declines_a_sigmoid_that_is_read_outside():
    check_unchanged(Swish(), model(PLAIN, head="[N] y, float[N] e"), "read outside")
