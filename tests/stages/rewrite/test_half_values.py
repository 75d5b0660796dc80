import pytest

import foldline
from foldline.stages.rewrite.half_values import narrow_value
from tests.stages.check import from_onnx, onnx_model

BODY = """
g (bool c, float[2] x) => (float[2] y) {
  y = If(c) <
    then_branch = t () => (float[2] a) { h = Cast<to = 10>(x) a = Cast<to = 1>(h) },
    else_branch = e () => (float[2] b) { b = Identity(x) }
  >
}
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("g (float[2] x) => (float[2] y) { y = Relu(x) }", None),
        ("g (double[2] x, uint8[2] z) => (double[2] y) { y = Relu(x) }", None),
        ("g (float16[2] x) => (float16[2] y) { y = Relu(x) }", "float16"),
        ("g (bfloat16[2] x) => (bfloat16[2] y) { y = Relu(x) }", "bfloat16"),
        ("g (float[2] x) => (float[2] y) <float16[1] w = {1}> { y = Relu(x) }", "float16"),
        ("g (float[2] x) => (float16[2] y) { y = Cast<to = 10>(x) }", "float16"),
        ("g (float8e4m3fn[2] x) => (float[2] y) { y = Cast<to = 1>(x) }", "float8e4m3fn"),
        ("g (int4[2] x) => (float[2] y) { y = Cast<to = 1>(x) }", "int4"),
    ],
)
def test_h1_narrow_values_are_found(text, found):
    assert narrow_value(from_onnx(text)) == found


def test_h1_narrow_values_in_bodies_are_found_once_types_are_inferred():
    compiled = foldline.compile(onnx_model(BODY), options={"oo.level": "O1"})
    assert narrow_value(compiled.module) == "float16"
