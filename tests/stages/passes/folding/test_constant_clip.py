"""constant-clip: constants that overflow when cast become the largest number instead."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import is_inserted
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import node_name
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.passes.folding.constant_clip import ConstantClip
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import (
    Array,
    check_pass,
    check_unchanged,
    constant,
    from_onnx,
    nodes,
    op_types,
    parse,
    run_pass,
    splat,
)

PASS = ConstantClip()
WEIGHT = [1.5, 65505.0, -1e30, np.inf, -np.inf, np.nan]


def cast(weight: object = WEIGHT, dtype: str = "float32", to: int = 10, target: str = "f16") -> str:
    array = np.asarray(weight, dtype)
    return f"""%c = {constant(array, array.dtype)}
        %h = onnx.Cast(%c) {{to = {to} : i64}} : tensor<{len(array)}x{target}>
        %y = onnx.Size(%h) : tensor<i64>
        return(%y)"""


def test_row_94_a_clip_of_the_form_of_the_opset_is_put_before_the_cast() -> None:
    after = parse(
        f"""%c = {constant(WEIGHT, np.float32)}
        %l = {constant(-65504, np.float32)}
        %m = {constant(65504, np.float32)}
        %d = onnx.Clip(%c, %l, %m) : tensor<6xf32>
        %h = onnx.Cast(%d) {{to = 10 : i64}} : tensor<6xf16>
        %y = onnx.Size(%h) : tensor<i64>
        return(%y)""",
    )
    context = check_pass(PASS, parse(cast()), after)
    assert [r.message for r in context.remarks] == [
        "clipped 4 elements to [-65504, 65504] of float16"
    ]
    before = parse(cast(), opset=10)
    PASS.run(PassContext(before))
    clip = next(op for op in nodes(before) if op.op_type == "Clip")
    assert clip.attribute_values() == {"min": -65504.0, "max": 65504.0}
    assert is_inserted(clip)


def computed(module: ModuleOp) -> Array:
    """What is left when the new Clip and the Cast have been folded."""
    context = PassContext(module)
    passes = (InferShapes(), PASS, ConstantFolding())
    Traversal(context, [given.visitor(context) for given in passes]).run()
    (op,) = (op for op in nodes(module) if isinstance(op, ConstantOp))
    tensor = op.tensor()
    assert tensor is not None
    return tensor.array


def test_row_94_the_clip_and_the_cast_fold_and_nan_stays() -> None:
    text = """g (float16[4] x) => (float16[4] y) <float[4] w = {65505, -70000, 3.25, nan}> {
        [half] h = Cast<to = 10>(w) y = Add(h, x) }"""
    module = from_onnx(text)
    found = computed(module)
    np.testing.assert_array_equal(found, np.float16([65504, -65504, 3.25, np.nan]))
    assert op_types(module) == ["Add"]
    assert node_name(nodes(module)[0]) == "half"


def test_a_double_becomes_a_float() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y) <double[2] w = {1e300, -2.5}> {
        h = Cast<to = 1>(w) y = Add(h, x) }""")
    np.testing.assert_array_equal(computed(module), [np.finfo(np.float32).max, np.float32(-2.5)])


def test_a_splat_is_looked_at_once() -> None:
    text = f"""%c = {splat(1e9, (1 << 20, 1 << 20), np.float32)}
    %h = onnx.Cast(%c) {{to = 10 : i64}} : tensor<1048576x1048576xf16>
    %y = onnx.Size(%h) : tensor<i64>
    return(%y)"""
    module = parse(text)
    context = run_pass(PASS, module)
    assert op_types(module) == ["Clip", "Cast", "Size"]
    assert "clipped 1 elements" in next(iter(context.remarks)).message


UNCHANGED = {
    "in_range": cast([1.5, 65504, -65504, np.nan]),
    "to_a_wider_type": cast([1e30], to=11, target="f64"),
    "row_94_to_integers": cast([1e30, 2], to=6, target="i32"),
    "from_integers": cast([1 << 40], "int64", 10, "f16"),
    "from_a_type_of_the_same_width": cast(np.array([3e38], ml_dtypes.bfloat16), "bfloat16"),
    "to_a_type_that_saturates": cast([1e9], to=17, target="f8E4M3FN"),
    "no_elements": cast([]),
    "no_constant": """%h = onnx.Cast(%x) {to = 10 : i64} : tensor<2x3xf16>
        %y = onnx.Size(%h) : tensor<i64> return(%y)""",
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_it_leaves_alone(text: str) -> None:
    context = check_unchanged(PASS, parse(text))
    assert not len(context.remarks)


def test_a_type_that_does_not_saturate_is_clipped_to() -> None:
    text = cast([1e9, -3], to=17, target="f8E4M3FN").replace(
        "17 : i64", "17 : i64, saturate = 0 : i64"
    )
    module = parse(text)
    run_pass(PASS, module)
    assert op_types(module) == ["Clip", "Cast", "Size"]
