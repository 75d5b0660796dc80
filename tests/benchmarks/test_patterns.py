"""Patterns counted by their shape, and what counts as fused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from benchmarks.pattern_counts import explained, instances, left_of
from benchmarks.patterns import count
from foldline.importer import import_model
from tests.stages.check import from_onnx

RNG = np.random.default_rng(1)


def tensor(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(dtype)


NUMBERS = {
    name: np.float32(number)
    for name, number in {
        **{"half": 0.5, "one": 1, "two": 2, "three": 3, "six": 6, "zero": 0, "eps": 1e-6},
        **{"root": 2**0.5, "slope": 1.702},
    }.items()
}
WEIGHTS = {
    **NUMBERS,
    **{"w": tensor(4, 4, 1, 1), "c": np.abs(tensor(4)), "m": tensor(8, 8), "v": tensor(8)},
    **{"k": tensor(4, 1, 1), "i": np.ones((8, 8), np.int8), "z": np.uint8(3)},
}
CONV = "a = Conv(x, w)"
BN = "n = BatchNormalization(a, c, c, c, c)"
MEAN = "<keepdims = 1, axes = [-1]>"


def model(body: str, x: str = "float[2, 4, 8, 8]") -> onnx.ModelProto:
    """A model of `x`, `WEIGHTS` and the operators of `body`, the result of which is `y`."""
    text = f"""<ir_version: 8, opset_import: ["" : 14]>
        g ({x} x, float[2, 4, 8, 8] q) => (y) {{ {body} }}"""
    made = onnx.parser.parse_model(text)
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in WEIGHTS.items()
        if name in used
    )
    return made


def found(body: str, x: str = "float[2, 4, 8, 8]") -> dict[str, int]:
    return dict(Counter(each.kind.name for each in instances(import_model(model(body, x), []))))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{CONV} y = Relu(a)", {"Conv + activation": 1}),
        (
            f"{CONV} {BN} y = Relu(n)",
            {"Conv + activation": 1, "Conv + BatchNormalization": 1},
        ),
        (f"{CONV} s = Add(a, k) y = Relu(s)", {"Conv + activation": 1}),
        (f"{CONV} s = Add(a, x) y = Relu(s)", {}),
        (f"{CONV} s = Add(a, half) y = Relu(s)", {}),
        (f"{CONV} r = Relu(a) y = Add(r, a)", {}),
        (f"{CONV} s = Sigmoid(a) y = Mul(a, s)", {"Conv + activation": 1, "SiLU": 1}),
        (f"{CONV} s = Sigmoid(a) p = Mul(a, s) y = Add(p, a)", {"SiLU": 1}),
        ("s = Mul(x, slope) t = Sigmoid(s) y = Mul(x, t)", {"SiLU": 1}),
        ("s = Sigmoid(x) y = Mul(q, s)", {}),
        (
            f"{CONV} s = Add(a, three) t = Clip(s, zero, six) u = Mul(a, t) y = Div(u, six)",
            {"Conv + activation": 1, "HardSwish": 1},
        ),
        ("s = Add(x, two) t = Clip(s, zero, six) u = Mul(x, t) y = Div(u, six)", {}),
        ("s = HardSigmoid <alpha = 0.16666667> (x) y = Mul(x, s)", {"HardSwish": 1}),
        (
            "d = Div(x, root) e = Erf(d) s = Add(e, one) p = Mul(x, s) y = Mul(p, half)",
            {"Gelu": 1},
        ),
        (
            "d = Div(x, root) e = Erf(d) s = Add(e, one) h = Mul(x, half) y = Mul(h, s)",
            {"Gelu": 1},
        ),
        ("e = Erf(x) y = Add(e, half)", {}),
        (
            f"a = ReduceMean {MEAN} (x) d = Sub(x, a) p = Mul(d, d) b = ReduceMean {MEAN} (p)"
            "s = Add(b, eps) r = Sqrt(s) y = Div(d, r)",
            {"LayerNorm": 1},
        ),
        (
            f"p = Pow(x, two) b = ReduceMean {MEAN} (p) s = Add(b, eps) r = Sqrt(s) y = Div(x, r)",
            {"RMSNorm": 1},
        ),
        (f"b = ReduceMean {MEAN} (x) s = Add(b, eps) y = Sqrt(s)", {}),
        ("a = MatMul(x, q) b = Div(a, two) p = Softmax(b) y = MatMul(p, q)", {"attention": 1}),
        ("a = MatMul(x, q) b = Add(a, q) p = Softmax(b) y = MatMul(p, q)", {"attention": 1}),
        ("a = MatMul(x, m) p = Softmax(a) y = MatMul(p, q)", {}),
        ("a = MatMul(x, q) p = Softmax(a) y = Add(p, q)", {}),
        ("a = MatMul(x, m) y = Add(a, v)", {"MatMul + bias": 1}),
        ("a = MatMul(x, m) y = Add(a, m)", {}),
        ("a = MatMul(x, q) y = Add(a, v)", {}),
    ],
)
def test_patterns_by_their_shape(body: str, expected: dict[str, int]) -> None:
    assert found(body) == expected


def test_products_of_integers_and_gemm() -> None:
    scaled = "c1 = Cast <to = 1> (a) y = Mul(c1, half)"
    assert found(f"a = MatMulInteger(x, i, z) {scaled}", "uint8[2, 8]") == {"MatMulInteger": 1}
    assert found("a = MatMulInteger(x, i, z) y = Cast <to = 1> (a)", "uint8[2, 8]") == {}
    assert found("y = Gemm(x, m, v)", "float[2, 8]") == {"Gemm": 1}
    assert found("y = Gemm(m, x, v)", "float[8, 8]") == {}


def test_a_quantised_group() -> None:
    codes = "d = DequantizeLinear(x, half, z) e = DequantizeLinear(i, half)"
    body = f"{codes} a = MatMul(d, e) y = QuantizeLinear(a, half, z)"
    assert found(body, "uint8[2, 8]") == {"QDQ product": 1}
    assert found(f"{codes} y = MatMul(d, e)", "uint8[2, 8]") == {}


def test_what_has_gone_is_fused_and_remarks_explain_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    half = {"w": tensor(4, 4, 1, 1, dtype=np.float16), "c": np.ones(4, np.float16)}
    fused = model(f"{CONV} {BN} s = Sigmoid(n) y = Mul(n, s)")
    onnx.save(fused, path)
    names = ("Conv + BatchNormalization", "Conv + activation", "SiLU")
    assert count(path) == {
        "there": dict.fromkeys(names, 1),
        "fused": dict.fromkeys(names, 1),
        "left": [],
    }
    narrow = model(f"{CONV} {BN} y = Relu(n)", "float16[2, 4, 8, 8]")
    del narrow.graph.initializer[:]
    narrow.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in half.items())
    narrow.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    onnx.save(narrow, path)
    result = count(path)
    assert result["there"] == dict.fromkeys(names[:2], 1)
    assert result["fused"] == {}
    assert {each["pattern"]: each["why"] for each in result["left"]} == dict.fromkeys(
        names[:2], "conv-batchnorm-fold: the weights are float16"
    )


def test_an_activation_that_is_one_operator_but_in_no_convolution_is_left() -> None:
    body = f"{CONV} s = Sigmoid(a) y = Mul(a, s)"
    before = instances(import_model(model(body), []))
    text = "g (float[2, 4, 8, 8] x, float[4, 4, 1, 1] w) => (float[2, 4, 8, 8] y)"
    after = from_onnx(f"{text} {{ a = Conv(x, w) y = Swish(a) }}", opset=24)
    assert [each.kind.name for each in left_of(before, after)] == ["Conv + activation"]
    assert [each.kind.name for each in left_of(before, import_model(model(body), []))] == [
        "Conv + activation",
        "SiLU",
    ]


def test_only_remarks_of_its_passes_on_its_nodes_explain_an_instance() -> None:
    (each,) = instances(import_model(model(f"{CONV} y = Relu(a)"), []))
    assert explained(each, [("conv-activation", "a", "why")]) == "conv-activation: why"
    assert explained(each, [("conv-activation", "x", "why"), ("gelu", "a", "why")]) == ""
