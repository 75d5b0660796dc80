"""cast-like-to-cast: the target type is named where it is known."""

from __future__ import annotations

import numpy as np

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.cast_like_to_cast import CastLikeToCast
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    from_onnx,
    nodes,
    op_types,
    parse,
    run_pass,
)

PASS = CastLikeToCast()
INPUTS = "%x: tensor<2x3xf32>, %t: tensor<?xf16>"


def test_it_becomes_a_cast() -> None:
    before = parse("%y = onnx.CastLike(%x, %t) : tensor<2x3xf16>\nreturn(%y)", INPUTS)
    after = parse("%y = onnx.Cast(%x) {to = 10 : i64} : tensor<2x3xf16>\nreturn(%y)", INPUTS)
    check_pass(PASS, before, after)


def test_how_it_rounds_goes_along() -> None:
    before = "%y = onnx.CastLike(%x, %t) {saturate = 0 : i64} : !onnx.unknown\nreturn(%y)"
    after = "%y = onnx.Cast(%x) {saturate = 0 : i64, to = 17 : i64} : !onnx.unknown\nreturn(%y)"
    inputs = "%x: tensor<2x3xf32>, %t: tensor<f8E4M3FN>"
    check_pass(PASS, parse(before, inputs), parse(after, inputs))


def test_an_unknown_target_stays() -> None:
    text = "%t = onnx.Identity(%x) : !onnx.unknown\n%y = onnx.CastLike(%x, %t) : !onnx.unknown\n"
    check_unchanged(PASS, parse(f"{text}return(%y)"), "its target type is !onnx.unknown")


def test_what_was_only_there_for_its_type_goes() -> None:
    module = from_onnx("""g (float[3] x, float16[2] t) => (float16[3] y) {
        u = Neg(t) v = Identity(u) y = CastLike(x, v)
    }""")
    InferShapes().run(PassContext(module))
    run_pass(PASS, module)
    assert op_types(module) == ["Cast"]
    assert result_names(nodes(module)[0]) == ("y",)


def test_values_are_the_same_bits() -> None:
    module = from_onnx("""g (float[4] x, float16[1] t) => (float16[4] y) { y = CastLike(x, t) }""")
    feed = {"x": np.float32([np.nan, -0.0, 1e9, 1 / 3]), "t": np.float16([0])}
    check_values(PASS, module, feed)
    assert op_types(module) == ["Cast"]


def test_it_works_in_bodies() -> None:
    module = from_onnx("""g (bool c, float[2] x, int64 t) => (int64[2] y) {
        y = If(c) <then_branch = a () => (int64[2] u) { u = CastLike(x, t) },
                   else_branch = b () => (int64[2] v) { v = CastLike(x, t) }>
    }""")
    check_values(PASS, module, {"c": np.array(True), "x": np.float32([1, 2]), "t": np.array(3)})
    assert not any(op.name == "onnx.CastLike" for op in module.walk())
