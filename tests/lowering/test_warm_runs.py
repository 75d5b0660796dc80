"""A warm run allocates no array but its outputs: the rest is in the arena.

Of each model the outputs are its value `y`, or one number made of that: then nothing as large as an
array may be allocated at all, not even for a moment. `ALLOCATING` has what does, and why.
"""

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
TILE = 300_000
"""Bytes of a part of the data, where a kernel works part by part; however large the data is."""

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
    "Celu", "Erf", "Gelu", "Gelu<approximate = \"tanh\">", "ThresholdedRelu", "Identity",
    "LeakyRelu<alpha = 2.0>", "Sign", "Floor", "Ceil", "Round", "Log", "Sin", "Cos", "Tan", "Sinh",
    "Cosh", "Asin", "Acos", "Atan", "Asinh", "Acosh", "Atanh",
)  # fmt: skip

MODELS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    **{op: (ROWS, f"t = Mul(x, w) u = {op}(t) y = Add(u, w)", MATRIX) for op in UNARY},
    **{
        op: (ROWS, f"t = Mul(x, w) u = {op}(t, w) y = Add(u, w)", MATRIX)
        for op in (
            "Add",
            "Sub",
            "Div",
            "Max",
            "Min",
            "Sum",
            "Mean",
            "PRelu",
            "Pow",
            "Mod<fmod = 1>",
        )
    },
    **{
        op: (ROWS, f"t = Mul(x, w) m = {op}(t, ax) y = Sub(t, m)", {**MATRIX, "ax": np.array([1])})
        for op in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSum")
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
    **{
        op: (IMAGE, f"t = Relu(x) u = {op}(t) y = Neg(u)", {})
        for op in (
            "LRN<size = 5>",
            "LRN<size = 5, beta = 0.5>",
            "GlobalMaxPool",
            "DepthToSpace<blocksize = 2>",
            "SpaceToDepth<blocksize = 2>",
            "LpPool<kernel_shape = [3, 3]>",
        )
    },
    "ConvTranspose": (
        IMAGE,
        "t = Relu(x) u = ConvTranspose<strides = [2, 2]>(t, k) y = Neg(u)",
        {"k": _normal(16, 16, 2, 2)},
    ),
    **{
        f"Resize {mode}": (
            IMAGE,
            f't = Relu(x) u = Resize<mode = "{mode}">(t, , s) y = Neg(u)',
            {"s": np.array([1, 1, 2, 1.5], np.float32)},
        )
        for mode in ("nearest", "linear", "cubic")
    },
    "Resize of a long axis": (
        "float[64,2048] x",
        't = Relu(x) u = Resize<mode = "linear">(t, , s) y = Neg(u)',
        {"s": np.array([1, 2], np.float32)},
    ),
    "Slice": (
        ROWS,
        "t = Mul(x, w) u = Slice(t, b, e) y = Neg(u)",
        {**MATRIX, "b": np.array([1]), "e": np.array([400])},
    ),
    "Expand": (
        ROWS,
        "t = Mul(x, w) u = Expand(t, r) y = Neg(u)",
        {**MATRIX, "r": np.array([2, 512, 256])},
    ),
    "QuantizeLinear": (
        ROWS,
        "t = Mul(x, w) q = QuantizeLinear(t, s, z) u = DequantizeLinear(q, s, z) y = Neg(u)",
        {**MATRIX, "s": np.float32(0.1), "z": np.uint8(128)},
    ),
    "LSTM": (
        "float[64,1,256] x",
        "t = Relu(x) y, h, c = LSTM<hidden_size = 256>(t, i, r)",
        {"i": _normal(1, 1024, 256), "r": _normal(1, 1024, 256)},
    ),
    "GRU": (
        "float[64,1,256] x",
        "t = Relu(x) y, h = GRU<hidden_size = 256>(t, i, r)",
        {"i": _normal(1, 768, 256), "r": _normal(1, 768, 256)},
    ),
    "Conv": (
        IMAGE,
        "t = Conv<pads = [1, 1, 1, 1]>(x, k, b) u = Relu(t)"
        "v = Conv<pads = [1, 1, 1, 1]>(u, k, b) y = Relu(v)",
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


TILES = dict.fromkeys(("LogSoftmax", "pointwise Conv", "QuantizeLinear"), TILE)
"""Models with kernels that work part by part."""
TILES["attention"] = 2 * TILE
"""Its scores take seven times as much. Of the keys, see the last but one of `ALLOCATING`."""

WIDE = {**MATRIX, "ax": np.array([1])}
INDEXED = {**MATRIX, "i": np.zeros((512, 256), np.int64), "j": np.zeros((512, 1), np.int64)}

ALLOCATING: dict[str, tuple[str, str, Mapping[str, Any], str]] = {
    "Where": (
        ROWS,
        "t = Mul(x, w) c = Greater(t, w) u = Where(c, t, w) y = Add(u, w)",
        MATRIX,
        "selecting and copying takes a third of the time of copying under a mask",
    ),
    "Shrink": (ROWS, "t = Mul(x, w) u = Shrink(t) y = Add(u, w)", MATRIX, "as Where"),
    "Hardmax": (ROWS, "t = Mul(x, w) u = Hardmax(t) y = Add(u, w)", MATRIX, "a mask and a sum"),
    "LpNormalization": (
        ROWS,
        "t = Mul(x, w) u = LpNormalization(t) y = Add(u, w)",
        MATRIX,
        "what is summed is an array",
    ),
    **{
        op: (ROWS, f"t = Mul(x, w) m = {op}(t, ax) y = Sub(t, m)", WIDE, "what is summed")
        for op in ("ReduceL1", "ReduceLogSumExp")
    },
    "MeanVarianceNormalization": (
        IMAGE,
        "t = Relu(x) u = MeanVarianceNormalization(t) y = Neg(u)",
        {},
        "runs as the body of its schema",
    ),
    "TopK": (
        ROWS,
        "t = Mul(x, w) m, i = TopK(t, k) y = Neg(m)",
        {**MATRIX, "k": np.array([250])},
        "NumPy sorts copies",
    ),
    "GridSample": (
        IMAGE,
        "t = Relu(x) u = GridSample(t, g) y = Neg(u)",
        {"g": _normal(1, 96, 96, 2)},
        "what each corner gives is an array",
    ),
    "GatherElements": (
        ROWS, "t = Mul(x, w) u = GatherElements(t, i) y = Neg(u)", INDEXED, "NumPy has no out",
    ),
    "GatherND": (
        ROWS, "t = Mul(x, w) u = GatherND(t, j) y = Neg(u)", INDEXED, "NumPy has no out",
    ),
    "Einsum": (
        ROWS,
        'z = Mul(x, w) y = Einsum<equation = "ij,kj->ik">(z, z)',
        MATRIX,
        "goes through the product of tensors of NumPy",
    ),
    "OneHot": (
        ROWS,
        "t = Mul(x, w) m = ArgMax<axis = 1, keepdims = 0>(t) u = OneHot(m, d, v) y = Neg(u)",
        {**MATRIX, "d": np.array(256), "v": np.array([0, 1], np.float32)},
        "makes its result itself",
    ),
    "product with a transposed operand": (
        ROWS,
        "t = Mul(x, w) u = Transpose<perm = [1, 0]>(t) y = MatMul(t, u)",
        MATRIX,
        "BLAS would sum in another order, so the operand is copied",
    ),
    "Conv with a sum": (
        IMAGE,
        "t = Conv<pads = [1, 1, 1, 1]>(x, k, b) y = Add(t, x)",
        CONV,
        "what is added has its channels outermost, so it is copied",
    ),
}  # fmt: skip
"""What takes memory for arrays at each run, and why it does."""


def _session(model: tuple[Any, ...], level: str, output: str) -> foldline.Session:
    inputs, body, weights, *_ = model
    last = f"{body} {output} = ReduceMax<keepdims = 0>(y)" if output != "y" else body
    graph = parser.parse_graph(f"g ({inputs}) => (float {output}) {{ {last} }}")
    graph.output[0].type.tensor_type.ClearField("shape")
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), key) for key, value in weights.items()
    )
    opset = [onnx.helper.make_opsetid("", 20)]
    model_proto = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    return foldline.compile(model_proto, options={"oo.level": level}).session(threads=1)


def _allocated(session: foldline.Session) -> tuple[int, int]:
    """The most bytes a warm run takes at a time, and those of its outputs."""
    (port,) = session.get_inputs()
    feed = {"x": np.random.default_rng(0).standard_normal(port.shape).astype(np.float32)}
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
    return peak - before, sum(array.nbytes for array in outputs)


@pytest.mark.parametrize("level", ["O0", "O3"])
@pytest.mark.parametrize("output", ["y", "one"])
@pytest.mark.parametrize("name", MODELS)
def test_a_warm_run_allocates_no_array_but_its_outputs(name: str, output: str, level: str) -> None:
    allocated, given = _allocated(_session(MODELS[name], level, output))
    assert allocated < given + TILES.get(name, NUMPY_BUFFERS)


@pytest.mark.parametrize("name", ALLOCATING)
def test_these_allocate(name: str) -> None:
    """Whatever allocates no more belongs to the others."""
    allocated, _ = _allocated(_session(ALLOCATING[name], "O3", "one"))
    assert allocated > TILE
