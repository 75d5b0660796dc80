"""A warm run allocates no array but its outputs: the rest is in the arena."""

import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import foldline

NUMPY_BUFFERS = 100_000
"""Bytes a ufunc may take for itself: 8192 elements for each of three operands that broadcast."""

RANDOM = np.random.default_rng(0)


def _normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape).astype(np.float32) * np.float32(0.1)


ROWS = "float[512,256] x"
IMAGE = "float[1,16,96,96] x"
CONV = {"k": _normal(16, 16, 3, 3), "b": _normal(16)}
POINTWISE = {"k": _normal(16, 16, 1, 1), "b": _normal(16)}
DEPTHWISE = {"k": _normal(16, 1, 3, 3), "b": _normal(16)}
MATRIX = {"a": _normal(256, 256), "w": _normal(256)}
UNARY = (
    "Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "HardSigmoid", "Softmax", "LogSoftmax",
    "Elu", "Softplus", "Mish", "Softsign", "Selu", "Neg", "Abs", "Sqrt", "Exp", "Reciprocal",
)  # fmt: skip

MODELS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    **{op: (ROWS, f"t = Mul(x, w) u = {op}(t) y = Add(u, w)", MATRIX) for op in UNARY},
    **{
        op: (ROWS, f"t = Mul(x, w) u = {op}(t, w) y = Add(u, w)", MATRIX)
        for op in ("Add", "Sub", "Div", "Max", "Min", "Sum", "Mean")
    },
    "Clip": (
        ROWS,
        "t = Mul(x, w) u = Clip(t, low, high) y = Add(u, w)",
        {**MATRIX, "low": np.float32(-1), "high": np.float32(1)},
    ),
    "Reduce": (
        ROWS,
        "t = Mul(x, w) m = ReduceMean(t, ax) u = Sub(t, m) s = ReduceSum(u, ax) y = Sub(u, s)",
        {**MATRIX, "ax": np.array([1])},
    ),
    "LayerNormalization": (ROWS, "t = Mul(x, w) y = LayerNormalization(t, w, w)", MATRIX),
    "MatMul": (ROWS, "t = MatMul(x, a) u = Relu(t) v = MatMul(u, a) y = Add(v, w)", MATRIX),
    "Gemm": (
        ROWS,
        "t = Gemm<transB = 1>(x, a, w) u = Sigmoid(t) v = Gemm(u, a, w) y = Relu(v)",
        MATRIX,
    ),
    "movement": (
        ROWS,
        "t = Mul(x, w) c = Concat<axis = 1>(t, x) l, r = Split<axis = 1, num_outputs = 2>(c)"
        "u = Mul(l, r) p = Transpose<perm = [1, 0]>(u) q = Relu(p) n = Neg(q) y = Mul(n, p)",
        MATRIX,
    ),
    "Pad": (
        ROWS,
        "t = Mul(x, w) u = Pad(t, p) y = Relu(u)",
        {**MATRIX, "p": np.array([1, 0, 1, 0])},
    ),
    "Gather": (
        ROWS,
        "t = Mul(x, w) u = Gather(t, i) y = Relu(u)",
        {**MATRIX, "i": np.arange(300)},
    ),
    "Conv": (
        IMAGE,
        "t = Conv<pads = [1, 1, 1, 1]>(x, k, b) u = Relu(t)"
        "v = Conv<pads = [1, 1, 1, 1]>(u, k, b) w = Add(v, x) y = Relu(w)",
        CONV,
    ),
    "pointwise Conv": (
        IMAGE,
        "t = Conv(x, k, b) s = Sigmoid(t) u = Mul(t, s) v = Conv(u, k, b) y = Relu(v)",
        POINTWISE,
    ),
    "depthwise Conv": (
        IMAGE,
        "t = Conv<pads = [1, 1, 1, 1], group = 16>(x, k, b) u = Relu(t)"
        "y = Conv<pads = [1, 1, 1, 1], group = 16>(u, k, b)",
        DEPTHWISE,
    ),
    "BatchNormalization": (
        IMAGE,
        "t = Relu(x) u = BatchNormalization(t, b, b, b, v) y = Relu(u)",
        {"b": _normal(16), "v": np.ones(16, np.float32)},
    ),
    "InstanceNormalization": (
        IMAGE,
        "t = Relu(x) u = InstanceNormalization(t, b, b) y = Relu(u)",
        {"b": _normal(16)},
    ),
    "MaxPool": (IMAGE, "t = Relu(x) u = MaxPool<kernel_shape = [3, 3]>(t) y = Neg(u)", {}),
    "AveragePool": (IMAGE, "t = Relu(x) u = AveragePool<kernel_shape = [3, 3]>(t) y = Neg(u)", {}),
    "GlobalAveragePool": (IMAGE, "t = Relu(x) u = GlobalAveragePool(t) y = Mul(t, u)", {}),
    "attention": (
        "float[1,256,512] x",
        "q = MatMul(x, a) k = MatMul(x, b) v = MatMul(x, c)"
        "q1 = Reshape(q, s) k1 = Reshape(k, s) v1 = Reshape(v, s)"
        "q2 = Transpose<perm = [0, 2, 1, 3]>(q1) k2 = Transpose<perm = [0, 2, 3, 1]>(k1)"
        "v2 = Transpose<perm = [0, 2, 1, 3]>(v1) p = MatMul(q2, k2) p1 = Div(p, d)"
        "p2 = Softmax<axis = -1>(p1) o = MatMul(p2, v2) o1 = Transpose<perm = [0, 2, 1, 3]>(o)"
        "o2 = Reshape(o1, s2) o3 = MatMul(o2, a) r = Add(o3, x) y = LayerNormalization(r, g, g)",
        {
            **{name: _normal(512, 512) for name in "abc"},
            "s": np.array([1, 256, 8, 64]),
            "s2": np.array([1, 256, 512]),
            "d": np.float32(8),
            "g": _normal(512),
        },
    ),
}


def _session(name: str, level: str) -> foldline.Session:
    inputs, body, weights = MODELS[name]
    graph = parser.parse_graph(f"g ({inputs}) => (float y) {{ {body} }}")
    graph.output[0].type.tensor_type.ClearField("shape")
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), key) for key, value in weights.items()
    )
    opset = [onnx.helper.make_opsetid("", 20)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    return foldline.compile(model, options={"oo.level": level}).session(threads=1)


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("name", MODELS)
def test_a_warm_run_allocates_no_array_but_its_outputs(name: str, level: str) -> None:
    session = _session(name, level)
    (port,) = session.get_inputs()
    feed = {"x": RANDOM.standard_normal(port.shape).astype(np.float32)}
    assert feed["x"].nbytes > 5 * NUMPY_BUFFERS
    for _ in range(3):
        session.run(None, feed)
    tracemalloc.start()
    try:
        session.run(None, feed)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        outputs = session.run(None, feed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < sum(array.nbytes for array in outputs) + NUMPY_BUFFERS
