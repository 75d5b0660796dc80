"""softplus: the logarithm of one plus an exponential."""

from typing import Any

import numpy as np
import pytest

from foldline.stages.passes.fusion.softplus import Softplus
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, grid, results, sizes

PARTS = "p = Exp(x) q = Add(p, o) y = Log(q)"


def model(body: str, opset: int = 13, head: str = "[N] y"):
    one = "<float o = {1}>"
    return from_onnx(f"g (float[N] x) => (float{head}) {one} {{ {body} }}", opset=opset)


@pytest.mark.parametrize("opset", [7, 22])
@pytest.mark.parametrize("body", [PARTS, PARTS.replace("p, o", "o, p")])
def test_becomes_softplus(body: str, opset: int):
    module = model(body, opset)
    run_pass(Softplus(), module)
    assert op_types(module) == ["Softplus"]


@pytest.mark.parametrize("run", [results, file_results])
def test_within_2_eps_of_the_larger_of_x_and_1(run: Any):
    x = np.concatenate([grid(reach=80), np.array([0, -0.0, np.inf, -np.inf, np.nan], np.float32)])
    run(Softplus(), model(PARTS), {"x": x}).check(2 * sizes(x, 1))


def test_gives_x_where_the_exponential_overflows():
    found = results(Softplus(), model(PARTS), {"x": np.array([100, 3e38], np.float32)})
    np.testing.assert_array_equal(found.parts, np.inf)
    np.testing.assert_array_equal(found.fused, np.array([100, 3e38], np.float32))


def test_declines():
    check_unchanged(Softplus(), model(PARTS, head="[N] y, float[N] q"), "read outside")
    check_unchanged(Softplus(), model("p = Exp(x) q = Add(p, p) y = Log(q)"), "not a constant 1")
