"""mish and softplus: of their parts, one after the other."""

from typing import Any

import numpy as np
import pytest

from foldline.stages.passes.fusion.mish import Mish
from foldline.stages.passes.fusion.softplus import Softplus
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import SPECIAL, file_results, grid, results, sizes

PARTS = "s = Softplus(x) t = Tanh(s) y = Mul(x, t)"


def model(body: str, opset: int = 13, head: str = "[N] y"):
    one = "<float o = {1}>"
    return from_onnx(f"g (float[N] x) => (float{head}) {one} {{ {body} }}", opset=opset)


@pytest.mark.parametrize(("opset", "name"), [(13, "fused.Mish"), (18, "onnx.Mish")])
def test_becomes_mish(opset: int, name: str):
    module = model(PARTS.replace("x, t", "t, x"), opset)
    run_pass(Mish(), module)
    assert [op.name for op in module.walk() if "Mish" in op.name] == [name]


def test_softplus_of_parts_first():
    module = model("p = Exp(x) q = Add(o, p) s = Log(q) t = Tanh(s) y = Mul(x, t)")
    run_pass(Softplus(), module)
    run_pass(Mish(), module)
    assert op_types(module) == ["Mish"]


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [13, 18])
def test_within_2_eps_of_x_and_the_limit_at_minus_infinity(opset: int, run: Any):
    x = np.concatenate([grid(), np.array(SPECIAL, np.float32)])
    run(Mish(), model(PARTS, opset), {"x": x[x != -np.inf]}).check(2 * sizes(x[x != -np.inf]))
    at_end = results(Mish(), model(PARTS, opset), {"x": np.array([-np.inf], np.float32)})
    assert np.isnan(at_end.parts[0])
    assert at_end.fused[0] == 0
    assert np.signbit(at_end.fused[0])


def test_declines_interior_values_that_are_read_outside():
    check_unchanged(Mish(), model(PARTS, head="[N] y, float[N] t"), "read outside")


def test_declines_another_value():
    check_unchanged(
        Mish(), model("n = Neg(x) s = Softplus(n) t = Tanh(s) y = Mul(x, t)"), "value 'x'"
    )
