"""quick-gelu: a sigmoid of 1.702 x."""

from typing import Any

import numpy as np
import pytest

from foldline.stages.passes.fusion.quick_gelu import QuickGelu
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import SPECIAL, file_results, grid, real, results, sizes

PLAIN = "d = Mul(x, q) e = Sigmoid(d) y = Mul(x, e)"


def model(body: str, opset: int = 13, kind: str = "float", head: str = "[N] y"):
    constants = real(kind, q=1.702, i=1 / 1.702, other=1.7)
    return from_onnx(f"g ({kind}[N] x) => ({kind}{head}) {constants} {{ {body} }}", opset=opset)


@pytest.mark.parametrize(
    "body",
    [PLAIN, "d = Mul(q, x) e = Sigmoid(d) y = Mul(e, x)", PLAIN.replace("Mul(x, q", "Div(x, i")],
)
@pytest.mark.parametrize(("opset", "name"), [(13, "fused.Swish"), (24, "onnx.Swish")])
def test_becomes_swish(body: str, opset: int, name: str):
    module = model(body, opset)
    run_pass(QuickGelu(), module)
    (node,) = (op for op in module.walk() if op.name == name)
    assert node.attribute_values()["alpha"] == np.float32(1.702)


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [13, 24])
def test_within_2_eps_of_x(opset: int, run: Any):
    x = np.concatenate([grid(), np.array(SPECIAL, np.float32)])
    run(QuickGelu(), model(PLAIN, opset), {"x": x}).check(2 * sizes(x))


def test_half_type_takes_the_rounded_constant():
    module = model(PLAIN, kind="float16")
    run_pass(QuickGelu(), module)
    assert op_types(module) == ["Swish"]


def test_declines_another_factor():
    check_unchanged(QuickGelu(), model(PLAIN.replace("q)", "other)")))


def test_declines_double_as_the_attribute_is_float32():
    check_unchanged(QuickGelu(), model(PLAIN, kind="double"), "1.702 is no float32")


def test_declines_a_sigmoid_that_is_read_outside():
    check_unchanged(QuickGelu(), model(PLAIN, head="[N] y, float[N] e"), "read outside")
