"""unflatten-transposes: keys of attention are transposed as they are, whatever is empty."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.dialects.onnx.shape import TransposeOp
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.unflatten_transposes import UnflattenTransposes
from foldline.stages.structural import STRUCTURAL
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    nodes,
    op_types,
    parse,
    run_pass,
    values,
)

PASS = UnflattenTransposes()
NOT_CERTAIN = "not certain to be"

DYNAMIC = """g (float[{x}] x) => (float[a,b,c,d] y)
<int64[1] minus = {{-1}}, int64[1] d = {{4}}, int64[1] h = {{3}}> {{
    b = Shape <start = 0, end = 1> (x) heads = Shape <start = 1, end = 2> (x)
    s = Shape <start = 2, end = 3> (x) size = Shape <start = 3> (x)
    flat = Concat <axis = 0> ({flat}) back = Concat <axis = 0> ({back})
    f = Reshape(x, flat) t = Transpose <perm = [{perm}]> (f)
    y = Reshape <allowzero = {zero}> (t, back) }}"""


def inferred(text: str, opset: int = 21) -> ModuleOp:
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def dynamic(
    x: str = "N,3,S,4",
    flat: str = "minus, s, d",
    back: str = "b, h, d, s",
    perm: str = "0, 2, 1",
    zero: int = 0,
) -> ModuleOp:
    return inferred(DYNAMIC.format(x=x, flat=flat, back=back, perm=perm, zero=zero))


def permutations(module: ModuleOp) -> list[tuple[int, ...] | None]:
    return [op.permutation() for op in nodes(module) if isinstance(op, TransposeOp)]


def test_all_axes_are_transposed_at_once() -> None:
    text = f"""%f = {constant([-1, 2, 3])}
    %a = onnx.Reshape(%x, %f) : tensor<20x2x3xf32>
    %t = onnx.Transpose(%a) {{perm = array<i64: 0, 2, 1>}} : tensor<20x3x2xf32>
    %b = {constant([4, 5, 3, 2])}
    %y = onnx.Reshape(%t, %b) : tensor<4x5x3x2xf32>
    return(%y)"""
    after = """%y = onnx.Transpose(%x) {perm = array<i64: 0, 1, 3, 2>} : tensor<4x5x3x2xf32>
    return(%y)"""
    inputs = "%x: tensor<4x5x2x3xf32>"
    check_pass(PASS, parse(text, inputs), parse(after, inputs))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("length", [1, 5])
def test_values_are_the_same_bits(batch: int, length: int) -> None:
    module = dynamic()
    x = np.arange(batch * 3 * length * 4, dtype=np.float32).reshape(batch, 3, length, 4)
    check_values(PASS, module, {"x": x})
    assert permutations(module) == [(0, 1, 3, 2)]
    assert "Reshape" not in op_types(module)
    assert result_names(nodes(module)[-1]) == ("y",)


def test_an_empty_batch_stays_empty() -> None:
    module = dynamic()
    check_values(PASS, module, {"x": np.zeros((0, 3, 5, 4), np.float32)})
    assert permutations(module) == [(0, 1, 3, 2)]


def test_zeros_that_are_meant_are_no_copies() -> None:
    module = dynamic("N,H,S,D", "minus, s, size", "b, heads, size, s", zero=1)
    check_values(PASS, module, {"x": np.ones((2, 3, 5, 4), np.float32)})
    assert permutations(module) == [(0, 1, 3, 2)]


def test_heads_that_an_earlier_reshape_worked_out() -> None:
    module = inferred("""g (float[N,S,12] k) => (float[a,b,c,d] y)
    <int64[1] minus = {-1}, int64[1] four = {4}> {
        n = Shape <start = 0, end = 1> (k) s = Shape <start = 1, end = 2> (k)
        split = Concat <axis = 0> (n, s, minus, four)
        k4 = Reshape(k, split) x = Transpose <perm = [0, 2, 1, 3]> (k4)
        h = Shape <start = 1, end = 2> (x)
        flat = Concat <axis = 0> (minus, s, four) back = Concat <axis = 0> (n, h, four, s)
        f = Reshape(x, flat) t = Transpose <perm = [0, 2, 1]> (f) y = Reshape(t, back) }""")
    check_values(PASS, module, {"k": np.arange(120, dtype=np.float32).reshape(2, 5, 12)})
    assert permutations(module) == [(0, 2, 1, 3), (0, 1, 3, 2)]


@pytest.mark.parametrize(
    ("x", "flat", "back"),
    [
        pytest.param("N,3,S,4", "minus, d, s", "b, h, d, s", id="other flat axes"),
        pytest.param("N,3,S,4", "minus, s, d", "h, b, d, s", id="other axes in front"),
        pytest.param("N,3,S,4", "minus, s, d", "b, h, s, d", id="not swapped"),
        pytest.param("N,H,S,4", "minus, s, d", "b, heads, d, s", id="heads may copy a size"),
        pytest.param("N,3,S,D", "minus, s, size", "b, h, size, s", id="size may copy a length"),
    ],
)
def test_what_may_have_other_sizes_stays(x: str, flat: str, back: str) -> None:
    check_unchanged(PASS, dynamic(x, flat, back), NOT_CERTAIN)


def test_a_copied_size_makes_an_empty_result_another_one() -> None:
    module = dynamic("N,H,S,4", "minus, s, d", "b, heads, d, s")
    run_pass(PASS, module)
    (y,) = values(module, {"x": np.zeros((0, 0, 5, 4), np.float32)})
    assert y.shape == (0, 4, 4, 5)


@pytest.mark.parametrize("perm", ["1, 2, 0", "0, 1, 2"])
def test_another_transpose_stays(perm: str) -> None:
    check_unchanged(PASS, dynamic(back="b, h, d, s", perm=perm))


@pytest.mark.parametrize("other", ["z = Relu(f)", "z = Relu(t)"])
def test_what_others_read_stays(other: str) -> None:
    text = f"""g (float[2,3,5,4] x) => (float[2,3,4,5] y, float[a,b,c] z)
    <int64[3] flat = {{-1, 5, 4}}, int64[4] back = {{2, 3, 4, 5}}> {{
        f = Reshape(x, flat) t = Transpose <perm = [0, 2, 1]> (f) y = Reshape(t, back) {other} }}"""
    check_unchanged(PASS, inferred(text), "other readers")


def test_three_axes_have_nothing_to_flatten() -> None:
    text = """g (float[6,5,4] x) => (float[2,3,4,5] y)
    <int64[3] flat = {-1, 5, 4}, int64[4] back = {2, 3, 4, 5}> {
        f = Reshape(x, flat) t = Transpose <perm = [0, 2, 1]> (f) y = Reshape(t, back) }"""
    check_unchanged(PASS, inferred(text))


def test_it_runs_before_transposes_move_on() -> None:
    names = [placed.name for placed, _ in STRUCTURAL]
    assert names.index(PASS.name) < names.index("sink-transposes")
