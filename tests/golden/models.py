"""Small models that between them use every kind of exact kernel, with their weights and inputs.

Each model has something to fold, so that folding and running are both seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import foldline
from tests.golden import runtime_models
from tests.golden.building import Golden, made, numbers, odd


def perceptron() -> Golden:
    return made(
        17,
        """g (float[N, 12] x) => (float[N, 5] y, float[N, 5] z) {
            h = Gemm <transB = 1, alpha = 0.5> (x, w, b)
            r = Relu (h)
            scaled = Mul (v, k)
            t = MatMul (r, scaled)
            y = Softmax <axis = -1> (t)
            z = LogSoftmax <axis = -1> (t)
        }""",
        {"x": numbers(1, 7, 12)},
        w=numbers(2, 20, 12),
        b=numbers(3, 20),
        v=numbers(4, 20, 5),
        k=np.float32(1.7),
    )


def convolutions() -> Golden:
    return made(
        17,
        """g (float[N, 3, 14, 14] x) => (float[N, 10] y) {
            a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w1, b1)
            n = BatchNormalization (a, scale, bias, mean, var)
            r = Relu (n)
            p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (r)
            c = Conv <group = 2> (p, w2)
            g = GlobalAveragePool (c)
            f = Flatten (g)
            y = Gemm <transB = 1> (f, w3, b3)
        }""",
        {"x": numbers(5, 2, 3, 14, 14)},
        w1=numbers(6, 8, 3, 3, 3),
        b1=numbers(7, 8),
        scale=numbers(8, 8),
        bias=numbers(9, 8),
        mean=numbers(10, 8),
        var=numbers(11, 8) * np.float32(0.5) + np.float32(1),
        w2=numbers(12, 6, 4, 3, 3),
        w3=numbers(13, 10, 6),
        b3=numbers(14, 10),
    )


def depthwise() -> Golden:
    return made(
        17,
        """g (float[1, 8, 9, 9] x) => (float[1, 8, 9, 9] y) {
            e = Conv (x, w1)
            s = HardSwish (e)
            d = Conv <group = 16, pads = [1, 1, 1, 1]> (s, w2, b2)
            low = Neg (high)
            c = Clip (d, low, high)
            p = Conv (c, w3)
            y = Add (p, x)
        }""",
        {"x": numbers(15, 1, 8, 9, 9)},
        w1=numbers(16, 16, 8, 1, 1),
        w2=numbers(17, 16, 1, 3, 3),
        b2=numbers(18, 16),
        w3=numbers(19, 8, 16, 1, 1),
        high=np.float32(0.75),
    )


def transformer() -> Golden:
    return made(
        17,
        """g (float[1, S, 16] x) => (float[1, S, 16] y) {
            n = LayerNormalization (x, g1, g2)
            q0 = MatMul (n, wq)
            k0 = MatMul (n, wk)
            v0 = MatMul (n, wv)
            q1 = Reshape (q0, split)
            k1 = Reshape (k0, split)
            v1 = Reshape (v0, split)
            q = Transpose <perm = [0, 2, 1, 3]> (q1)
            k = Transpose <perm = [0, 2, 3, 1]> (k1)
            v = Transpose <perm = [0, 2, 1, 3]> (v1)
            s = MatMul (q, k)
            root = Sqrt (size)
            t = Div (s, root)
            p = Softmax <axis = -1> (t)
            o = MatMul (p, v)
            m = Transpose <perm = [0, 2, 1, 3]> (o)
            joined = Reshape (m, join)
            a = Add (joined, x)
            r2 = Sqrt (two)
            d = Div (a, r2)
            e = Erf (d)
            e1 = Add (e, one)
            g = Mul (a, e1)
            y = Mul (g, half)
        }""",
        {"x": numbers(20, 1, 6, 16)},
        g1=numbers(21, 16),
        g2=numbers(22, 16),
        wq=numbers(23, 16, 16),
        wk=numbers(24, 16, 16),
        wv=numbers(25, 16, 16),
        split=np.array([0, 0, 4, 4], np.int64),
        join=np.array([0, 0, 16], np.int64),
        size=np.float32(4),
        two=np.float32(2),
        one=np.float32(1),
        half=np.float32(0.5),
    )


def recurrent() -> Golden:
    return made(
        17,
        """g (float[5, 2, 3] x) => (float[5, 2, 2, 4] y1, float[5, 1, 2, 4] y2, float[1, 2, 4] h) {
            y1, h1, c1 = LSTM <hidden_size = 4, direction = "bidirectional"> (x, w1, r1, b1)
            y2, h2 = GRU <hidden_size = 4, linear_before_reset = 1> (x, w2, r2)
            y3, h = RNN <hidden_size = 4, activations = ["Softsign"]> (x, w3, r3)
        }""",
        {"x": numbers(26, 5, 2, 3)},
        w1=numbers(27, 2, 16, 3),
        r1=numbers(28, 2, 16, 4),
        b1=numbers(29, 2, 32),
        w2=numbers(30, 1, 12, 3),
        r2=numbers(31, 1, 12, 4),
        w3=numbers(32, 1, 4, 3),
        r3=numbers(33, 1, 4, 4),
    )


def resampling() -> Golden:
    return made(
        20,
        """g (float[1, 4, 5, 6] x, float[1, 3, 3, 2] grid)
            => (float[1, 3, H, W] y, float[1, 4, 3, 3] z, float[1, 4, A, B] u) {
            t = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w, b)
            r = Resize <mode = "linear", coordinate_transformation_mode = "align_corners">
                (t, , scales)
            y = LeakyRelu <alpha = 0.1> (r)
            z = GridSample <mode = "cubic", padding_mode = "reflection"> (x, grid)
            u = Resize <mode = "cubic", antialias = 1> (x, , shrink)
        }""",
        {"x": numbers(34, 1, 4, 5, 6), "grid": numbers(35, 1, 3, 3, 2)},
        w=numbers(36, 4, 3, 3, 3),
        b=numbers(37, 3),
        scales=np.array([1, 1, 1.5, 2], np.float32),
        shrink=np.array([1, 1, 0.6, 0.5], np.float32),
    )


def attention() -> Golden:
    return made(
        23,
        """g (float[1, 4, 5, 8] q, float[1, 2, 7, 8] k, float[1, 2, 7, 8] v)
            => (float[1, 4, 5, 8] y, float[1, 4, 5, 8] z) {
            y = Attention <is_causal = 1, softcap = 2.0> (q, k, v)
            z = RMSNormalization (y, s)
        }""",
        {"q": numbers(38, 1, 4, 5, 8), "k": numbers(39, 1, 2, 7, 8), "v": numbers(40, 1, 2, 7, 8)},
        s=numbers(41, 8),
    )


def quantised() -> Golden:
    weights = (numbers(43, 4, 3, 3, 3) * 127).astype(np.int8)
    return made(
        17,
        """g (float[1, 3, 6, 6] x) => (float[1, 4, 4, 4] y, float[4, 4] m, uint8[3, 4] d) {
            q = QuantizeLinear (x, s, z)
            c = QLinearConv (q, s, z, w, ws, wz, ys, yz)
            y = DequantizeLinear (c, ys, yz)
            f = DequantizeLinear (w2, ws, wz)
            t = Transpose (f)
            i = MatMulInteger (u, w2)
            p = Cast <to = 1> (i)
            m = MatMul (t, p)
            d, ds, dz = DynamicQuantizeLinear (p)
        }""",
        {"x": numbers(42, 1, 3, 6, 6)},
        s=np.float32(0.0078125),
        z=np.uint8(120),
        w=weights,
        ws=np.float32(0.01),
        wz=np.int8(0),
        ys=np.float32(0.05),
        yz=np.uint8(128),
        w2=(numbers(44, 3, 4) * 127).astype(np.int8),
        u=(numbers(45, 3, 3) * 127 + 128).astype(np.uint8),
    )


_UNARY = (
    "Exp Log Sqrt Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Sigmoid Softplus "
    "Softsign Relu Elu Selu Celu LeakyRelu HardSigmoid HardSwish Mish Gelu Abs Neg Sign Floor Ceil "
    "Round Reciprocal ThresholdedRelu Shrink"
).split()


def elementary() -> Golden:
    lines = [f"y{i} = {op} (x)" for i, op in enumerate(_UNARY)]
    outputs = ", ".join(f"float[9, 8] y{i}" for i in range(len(_UNARY)))
    body = "\n".join(lines)
    return made(20, f"g (float[9, 8] x) => ({outputs}) {{ {body} }}", {"x": odd(46, 9, 8)})


def binary() -> Golden:
    return made(
        20,
        """g (float[9, 8] a, float[9, 8] b) => (float[9, 8] y0, float[9, 8] y1, float[9, 8] y2,
            float[9, 8] y3, float[9, 8] y4, float[9, 8] y5, float[9, 8] y6, float[9, 8] y7,
            float[9, 8] y8, float[9, 8] y9) {
            y0 = Add (a, b)
            y1 = Sub (a, b)
            y2 = Mul (a, b)
            y3 = Div (a, b)
            y4 = Pow (a, b)
            y5 = Max (a, b)
            y6 = Min (a, b)
            y7 = Mod <fmod = 1> (a, b)
            y8 = Mean (a, b, a)
            y9 = PRelu (a, b)
        }""",
        {"a": odd(47, 9, 8), "b": odd(48, 9, 8)[::-1].copy()},
    )


def reductions() -> Golden:
    ops = "Sum Mean Prod Max Min L1 L2 LogSum LogSumExp SumSquare".split()
    lines = [f"y{i} = Reduce{op} (x, axes)" for i, op in enumerate(ops)]
    lines.append("c = CumSum (x, axis)")
    outputs = ", ".join(f"float[4, 1, 5] y{i}" for i in range(len(ops)))
    body = "\n".join(lines)
    return made(
        18,
        f"g (float[4, 33, 5] x) => ({outputs}, float[4, 33, 5] c) {{ {body} }}",
        {"x": numbers(49, 4, 33, 5)},
        axes=np.array([1], np.int64),
        axis=np.array(1, np.int64),
    )


def control_flow() -> Golden:
    return made(
        17,
        """g (float[3, 3] x, bool b) => (float[3, 3] y, float[4, 3, 3] all) {
            y0, all = Loop (trips, , x) <body = body
                (int64 i, bool c, float[3, 3] s) => (bool d, float[3, 3] t, float[3, 3] u) {
                    d = Identity (c)
                    h = MatMul (s, w)
                    t = Tanh (h)
                    e = Exp (w)
                    u = Mul (t, e)
                }>
            y = If (b) <
                then_branch = yes () => (float[3, 3] p) { p = Softmax (y0) },
                else_branch = no () => (float[3, 3] n) { n = Neg (y0) }>
        }""",
        {"x": numbers(50, 3, 3), "b": np.array(True)},
        trips=np.array(4, np.int64),
        w=numbers(51, 3, 3),
    )


def half() -> Golden:
    return made(
        18,
        """g (float16[1, 4, 6, 6] x) => (float16[1, 6] y, bfloat16[1, 6] z) {
            c = Conv <pads = [1, 1, 1, 1]> (x, w)
            n = InstanceNormalization (c, s, b)
            e = Exp (n)
            m = ReduceMean <keepdims = 0> (e, axes)
            y = Softmax (m)
            l = Cast <to = 16> (m)
            k = Cast <to = 16> (v)
            z = MatMul (l, k)
        }""",
        {"x": numbers(52, 1, 4, 6, 6, dtype=np.float16)},
        w=numbers(53, 6, 4, 3, 3, dtype=np.float16),
        s=numbers(54, 6, dtype=np.float16),
        b=numbers(55, 6, dtype=np.float16),
        axes=np.array([2, 3], np.int64),
        v=numbers(56, 6, 6),
    )


def double() -> Golden:
    return made(
        18,
        """g (double[5, 7] x) => (double[5, 4] y, double[5, 1] z, double d) {
            h = MatMul (x, w)
            t = Tanh (h)
            y = Softmax (t)
            z = ReduceLogSumExp (x, axes)
            d = Det (s)
        }""",
        {"x": numbers(57, 5, 7, dtype=np.float64)},
        w=numbers(58, 7, 4, dtype=np.float64),
        axes=np.array([1], np.int64),
        s=numbers(59, 5, 5, dtype=np.float64),
    )


def einsum() -> Golden:
    return made(
        18,
        """g (float[2, 3, 4] a, float[4, 5, 3] b) => (float[2, 5] y, float[3, 3] t, float[2, 3] r) {
            y = Einsum <equation = "nij,jkl->nk"> (a, b)
            t = Einsum <equation = "nij,nkj->ik"> (a, a)
            r = Einsum <equation = "...j->..."> (a)
        }""",
        {"a": numbers(60, 2, 3, 4), "b": numbers(61, 4, 5, 3)},
    )


def normalisations() -> Golden:
    return made(
        21,
        """g (float[2, 6, 4, 5] x) => (float[2, 6, 4, 5] y0, float[2, 6, 4, 5] y1,
            float[2, 6, 4, 5] y2, float[2, 6, 4, 5] y3, float[2, 6, 4, 5] y4) {
            y0 = InstanceNormalization (x, s, b)
            y1 = GroupNormalization <num_groups = 3> (x, s, b)
            y2 = LRN <size = 3, beta = 0.6> (x)
            y3 = LpNormalization <axis = 1> (x)
            y4 = MeanVarianceNormalization (x)
        }""",
        {"x": numbers(62, 2, 6, 4, 5)},
        s=numbers(63, 6),
        b=numbers(64, 6),
    )


def pooling() -> Golden:
    return made(
        22,
        """g (float[1, 3, 8, 7] x) => (float[1, 3, H, W] y0, float[1, 3, H, W] y1,
            float[1, 3, A, B] y2, float[1, 3, 1, 1] y3, float[1, 3, 1, 1] y4) {
            y0 = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (x)
            y1 = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (x)
            y2 = LpPool <kernel_shape = [2, 2], p = 3> (x)
            y3 = GlobalMaxPool (x)
            y4 = GlobalLpPool (x)
        }""",
        {"x": odd(65, 1, 3, 8, 7)},
    )


def signal() -> Golden:
    return made(
        20,
        """g (float[1, 20, 1] x) => (float[1, 20, 2] y, float[1, F, 5, 2] z, float[8] w) {
            y = DFT (x, , axis)
            w = HannWindow (n)
            z = STFT (x, step, w)
        }""",
        {"x": numbers(66, 1, 20, 1)},
        axis=np.array(1, np.int64),
        n=np.array(8, np.int64),
        step=np.array(4, np.int64),
    )


def movement() -> Golden:
    return made(
        18,
        """g (float[6, 4] x) => (float[6, 4] s, float[6, 2] v, int64[6, 2] i, int32[6, 4] c,
            int64[1, 4] a, float[12, 4] p) {
            s = ScatterElements <axis = 0, reduction = "max"> (x, at, x)
            v, i = TopK (x, k)
            c = Cast <to = 6> (x)
            a = ArgMax (x)
            t = Transpose (w)
            r = Transpose (t)
            p = Concat <axis = 0> (x, r)
        }""",
        {"x": odd(67, 6, 4)},
        at=np.array([[(3 * i + j) % 6 for j in range(4)] for i in range(6)], np.int64),
        k=np.array([2], np.int64),
        w=odd(68, 6, 4),
    )


def deformed() -> Golden:
    return made(
        19,
        """g (float[1, 4, 6, 6] x, float[1, 18, 4, 4] o)
            => (float[1, 2, 4, 4] y, float[1, 4, 2, 2] z) {
            y = DeformConv (x, w, o)
            z = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2> (x, rois, which)
        }""",
        {"x": numbers(69, 1, 4, 6, 6), "o": numbers(70, 1, 18, 4, 4)},
        w=numbers(71, 2, 4, 3, 3),
        rois=np.array([[0.5, 0.25, 4.5, 5]], np.float32),
        which=np.array([0], np.int64),
    )


MODELS: dict[str, Callable[[], Golden]] = {
    function.__name__: function
    for function in (
        perceptron,
        convolutions,
        depthwise,
        transformer,
        recurrent,
        resampling,
        attention,
        quantised,
        elementary,
        binary,
        reductions,
        control_flow,
        half,
        double,
        einsum,
        normalisations,
        pooling,
        signal,
        movement,
        deformed,
        runtime_models.attentions,
        runtime_models.grouped,
        runtime_models.embeddings,
        runtime_models.machines,
        runtime_models.drawn,
    )
}


def outputs(name: str, level: str = "O3", threads: int = 1, runs: int = 1) -> list[Any]:
    """What a model gives in exact mode, in the last of some runs of one session."""
    golden = MODELS[name]()
    options = {"mode": "exact", "oo.level": level}
    session = foldline.compile(golden.model, options=options).session(threads=threads)
    results: list[Any] = []
    for _ in range(runs):
        results = session.run(None, golden.feed)
    return results


def digest(values: Sequence[np.ndarray]) -> str:
    """The sha256 of types, shapes and bytes."""
    found = hashlib.sha256()
    for value in values:
        found.update(f"{value.dtype.name}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    # Run this to see what has changed, or to write exact_bits.txt when a definition does.
    for name in MODELS:
        print(f"{name:16}{digest(outputs(name))}")
