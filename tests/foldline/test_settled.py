"""Compiling a compiled model changes nothing: what fusion leaves, and how it is written.

Whole models are the business of `benchmarks.stability`; here is what was wrong once, made small.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest

import foldline
from tests.stages.check import onnx_model

SHARED_HEADS = """
    {i}ku = Unsqueeze({i}k, two) {i}ke = Expand({i}ku, more) {i}kr = Reshape({i}ke, joined)
    {i}vu = Unsqueeze({i}v, two) {i}ve = Expand({i}vu, more) {i}vr = Reshape({i}ve, joined)
    {i}kt = Transpose <perm = [0, 1, 3, 2]> ({i}kr) {i}p = MatMul({i}q, {i}kt)
    {i}s = Mul({i}p, scale) {i}a = Add({i}s, m) {i}w = Softmax <axis = -1> ({i}a)
    {i}y = MatMul({i}w, {i}vr)"""
TWO_ATTENTIONS = f"""
g (float[N,1,S,S] m, float[N,4,S,8] aq, float[N,2,S,8] ak, float[N,2,S,8] av,
   float[N,4,S,8] bq, float[N,2,S,8] bk, float[N,2,S,8] bv)
   => (float[N,4,S,8] ay, float[N,4,S,8] by)
<int64[1] two = {{2}}, int64[5] more = {{1, 1, 2, 1, 1}}, int64[4] joined = {{0, 4, -1, 8}},
 float scale = {{0.35}}>
{{ {SHARED_HEADS.format(i="a")} {SHARED_HEADS.format(i="b")} }}"""

FACTORS = """
g (float[1,2,3] x) => (float[1,3,3] y)
<float[3] k = {1, 2, 3}, float[2,1] a = {2, 3}, float[2,1] b = {4, 5},
 float[3,2,1] w = {1, 2, 3, 4, 5, 6}>
{ u = Mul(x, k) v = Mul(u, a) z = Mul(v, b) y = Conv(z, w) }"""

FLAT_KEYS = """
g (float[N,S,12] x, float[12,12] o) => (float[N,S,12] y)
<int64[1] minus = {-1}, int64[1] three = {3}, int64[1] four = {4}, int64[1] twelve = {12}>
{ n = Shape <start = 0, end = 1> (x) s = Shape <start = 1, end = 2> (x)
  split = Concat <axis = 0> (n, s, minus, four) x4 = Reshape <allowzero = 1> (x, split)
  q = Transpose <perm = [0, 2, 1, 3]> (x4) h = Shape <start = 1, end = 2> (q)
  flat = Concat <axis = 0> (minus, s, four) back = Concat <axis = 0> (n, h, four, s)
  f = Reshape(q, flat) t = Transpose <perm = [0, 2, 1]> (f) k = Reshape(t, back)
  p = MatMul(q, k) w = Softmax <axis = -1> (p) r = MatMul(w, q)
  z = Transpose <perm = [0, 2, 1, 3]> (r) join = Concat <axis = 0> (n, s, minus)
  j = Reshape <allowzero = 1> (z, join) y = MatMul(j, o) }"""


def compiled(model: onnx.ModelProto | bytes) -> bytes:
    return foldline.compile(model, options={"oo.level": "O3"}).to_bytes()


def operators(model: bytes) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load_from_string(model).graph.node)


FREED_SIZES = """
g (float[S,N,12] x, float[1] one) => (float[N,3,S,4] y, float[a,b,c] z)
<int64[1] three = {3}, int64[1] four = {4}, int64[1] twelve = {12}>
{ s = Shape <start = 0, end = 1> (x) n = Shape <start = 1, end = 2> (x) r = Mul(n, three)
  flat = Concat <axis = 0> (s, r, four) whole = Concat <axis = 0> (n, three, s, four)
  q1 = Reshape(x, flat) q2 = Transpose <perm = [1, 0, 2]> (q1) q = Reshape(q2, whole)
  k1 = Relu(x) k2 = Reshape(k1, flat) k3 = Transpose <perm = [1, 0, 2]> (k2) k4 = Reshape(k3, whole)
  kt = Transpose <perm = [0, 1, 3, 2]> (k4) p = MatMul(q, kt) w = Softmax <axis = -1> (p)
  v1 = Neg(x) v2 = Reshape(v1, flat) v3 = Transpose <perm = [1, 0, 2]> (v2) v = Reshape(v3, whole)
  y = MatMul(w, v) all = Concat <axis = 0> (s, n, twelve) z = Expand(one, all) }"""


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        pytest.param(FREED_SIZES, 18, id="shape vectors that need less after fusion"),
        pytest.param(TWO_ATTENTIONS, 18, id="parts of two operators that fusion does not know"),
        pytest.param(FACTORS, 18, id="factors that fold one at a time"),
        pytest.param(FLAT_KEYS, 18, id="sizes that fusion makes plain"),
    ],
)
def test_a_compiled_model_is_settled(text: str, opset: int) -> None:
    once = compiled(onnx_model(text, opset=opset))
    assert compiled(once) == once


def test_constants_of_several_operators_are_written_once() -> None:
    once = onnx.load_from_string(compiled(onnx_model(TWO_ATTENTIONS, opset=18)))
    constants = [node.attribute[0].t for node in once.graph.node if node.op_type == "Constant"]
    found = [onnx.numpy_helper.to_array(tensor).tolist() for tensor in constants]
    assert sorted(map(str, found)) == sorted({str(value) for value in found})
    assert found.count([0, 2, -1, 8]) == found.count([0, 4, -1, 8]) <= 1


def test_parts_of_operators_have_types() -> None:
    once = onnx.load_from_string(compiled(onnx_model(TWO_ATTENTIONS, opset=18)))
    typed = {info.name for info in (*once.graph.value_info, *once.graph.output)}
    made = {name for node in once.graph.node for name in node.output}
    assert typed == made


def test_all_factors_are_folded_before_the_rest_is_taken() -> None:
    assert operators(compiled(onnx_model(FACTORS, opset=18))) == {
        "Mul": 1,
        "Conv": 1,
        "Constant": 1,
    }


def test_a_target_that_attention_makes_plain_is_a_constant() -> None:
    once = compiled(onnx_model(FLAT_KEYS, opset=18))
    assert operators(once)["Concat"] == operators(once)["Shape"] == 0
    fed = {
        "x": np.linspace(-1, 1, 120, dtype=np.float32).reshape(2, 5, 12),
        "o": np.eye(12, dtype=np.float32),
    }
    plain = foldline.compile(onnx_model(FLAT_KEYS, opset=18), options={"oo.level": "O0"})
    (found,) = foldline.compile(once).session().run(None, fed)
    (expected,) = plain.session().run(None, fed)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
