"""Groups of nodes that look like one operator but are not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx

from tests.failures.building import (
    DOUBLE,
    FLOAT,
    HALF,
    Array,
    batch_normalised,
    integers,
    model,
    node,
    random,
    relu,
    statistics,
    statistics_tensors,
    tensor,
    value,
)
from tests.failures.case import Expected, Made, case


@case("gemm", "microsoft/onnxruntime#3764", "onnx/tensorflow-onnx#902")
def gemm_bias_expands() -> Made:
    """MatMul [3,1] + bias [1,4] broadcasts the product; Gemm's C may not."""
    w, b = (random(3, 1), random(1, 4, seed=1))
    m = model(
        [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["y"])],
        [value("x", FLOAT, [3, 3])],
        [value("y", FLOAT, [3, 4])],
        [tensor("w", w), tensor("b", b)],
    )
    x = random(3, 3, seed=2)
    return m, {"x": x}, Expected(outputs=[x @ w + b])


@case("gemm", "inisis/OnnxSlim#210")
def gemm_plus_add_3d() -> Made:
    """Adding [1,M,N] to a Gemm was merged into the [N] bias."""
    w, b, a = (random(3, 4), random(4, seed=1), random(1, 2, 4, seed=2))
    m = model(
        [node("Gemm", ["x", "w", "b"], ["p"]), node("Add", ["p", "a"], ["y"])],
        [value("x", FLOAT, [2, 3])],
        [value("y", FLOAT, [1, 2, 4])],
        [tensor("w", w), tensor("b", b), tensor("a", a)],
    )
    x = random(2, 3, seed=3)
    return m, {"x": x}, Expected(outputs=[x @ w + b + a])


@case("gemm", "microsoft/onnxruntime#32418")
def gemm_identity_transpose_w() -> Made:
    """A Transpose with identity perm on Gemm's weight (constant or live) became an invalid
    transB."""
    w, b = (random(4, 5), random(5, seed=1))
    m = model(
        [
            node("Transpose", ["w"], ["wt"], perm=[0, 1]),
            node("Transpose", ["v"], ["vt"], perm=[0, 1]),
            node("Gemm", ["x", "wt", "b"], ["y"]),
            node("Gemm", ["x", "vt", "b"], ["z"]),
        ],
        [value("x", FLOAT, [3, 4]), value("v", FLOAT, [4, 5])],
        [value("y", FLOAT, [3, 5]), value("z", FLOAT, [3, 5])],
        [tensor("w", w), tensor("b", b)],
    )
    x, v = (random(3, 4, seed=2), random(4, 5, seed=3))
    return m, {"x": x, "v": v}, Expected(outputs=[x @ w + b, x @ v + b])


@case("gemm", "microsoft/onnxruntime#10950")
def matmul_scalar_scale() -> Made:
    """Scalar times [1] gives [1], which MatMul accepts; pushing the scale away exposes the
    rank-0 input to MatMul."""
    k, w = (np.ones(1, np.float32), random(1, 8))
    m = model(
        [node("Mul", ["x", "k"], ["t"]), node("MatMul", ["t", "w"], ["y"])],
        [value("x", FLOAT, [])],
        [value("y", FLOAT, [8])],
        [tensor("k", k), tensor("w", w)],
    )
    x = np.float32(2.5)
    return m, {"x": np.array(x)}, Expected(outputs=[x * w[0]])


@case("gemm", "robertknight/rten#708", "microsoft/onnxruntime#4110")
def matmul_shared_product() -> Made:
    """MatMul+Add+Relu where the product and the sum have other readers: fusing repeats or loses
    work; all values must stay right."""
    w, b = (random(3, 4), random(4, seed=1))
    m = model(
        [
            node("MatMul", ["x", "w"], ["p"]),
            node("Add", ["p", "b"], ["s"]),
            node("Relu", ["s"], ["y"]),
            node("Tanh", ["p"], ["z"]),
        ],
        [value("x", FLOAT, [2, 3])],
        [value("y", FLOAT, [2, 4]), value("s", FLOAT, [2, 4]), value("z", FLOAT, [2, 4])],
        [tensor("w", w), tensor("b", b)],
    )
    x = random(2, 3, seed=2)
    p = x @ w
    return m, {"x": x}, Expected(outputs=[relu(p + b), p + b, np.tanh(p)])


@case("conv-bn", "microsoft/onnxscript#2969", "microsoft/onnxruntime#14185")
def bn_training_mode() -> Made:
    """BatchNormalization with training_mode=1 uses batch statistics: no fusion with running
    ones, and unused running outputs must not be given names while the mode is dropped."""
    w, t = (random(3, 2, 1, 1), statistics(3))
    m = model(
        [
            node("Conv", ["x", "w"], ["cv"]),
            node(
                "BatchNormalization",
                ["cv", "s", "b", "mu", "va"],
                ["y", "rm", "rv"],
                training_mode=1,
                epsilon=0.001,
            ),
        ],
        [value("x", FLOAT, [2, 2, 3, 3])],
        [value("y", FLOAT, [2, 3, 3, 3])],
        [tensor("w", w), *statistics_tensors(t)],
    )
    x = random(2, 2, 3, 3, seed=9)
    cv = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0])
    mu, va = (cv.mean((0, 2, 3)), cv.var((0, 2, 3)))
    return (
        m,
        {"x": x},
        Expected(outputs=[batch_normalised(cv, t[0], t[1], mu, va, 0.001)], rtol=0.001, atol=0.001),
    )


@case("conv-bn", "microsoft/onnxruntime#4110", "onnx/onnx#2401")
def bn_conv_output_used() -> Made:
    """The convolution's own result is also a graph output (or has a second reader); fusing the
    BN into it changes that value."""
    w, t = (random(3, 2, 1, 1), statistics(3))
    m = model(
        [
            node("Conv", ["x", "w"], ["cv"]),
            node("BatchNormalization", ["cv", "s", "b", "mu", "va"], ["y"], epsilon=0.001),
        ],
        [value("x", FLOAT, [1, 2, 3, 3])],
        [value("y", FLOAT, [1, 3, 3, 3]), value("cv", FLOAT, [1, 3, 3, 3])],
        [tensor("w", w), *statistics_tensors(t)],
    )
    x = random(1, 2, 3, 3, seed=9)
    cv = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0])
    return (
        m,
        {"x": x},
        Expected(outputs=[batch_normalised(cv, *t, 0.001), cv], rtol=0.001, atol=0.0001),
    )


@case("conv-bn", "onnx/optimizer#106", "onnx/optimizer#47", "onnx/tensorflow-onnx#2454")
def bn_convtranspose_group() -> Made:
    """ConvTranspose keeps output channels on axis 1 (per group); BN and bias fusion written for
    Conv asserts or scales the wrong axis."""
    w, t = (random(4, 3, 2, 2), statistics(6))
    m = model(
        [
            node("ConvTranspose", ["x", "w"], ["cv"], group=2, strides=[2, 2]),
            node("BatchNormalization", ["cv", "s", "b", "mu", "va"], ["bn"]),
            node("Relu", ["bn"], ["y"]),
        ],
        [value("x", FLOAT, [1, 4, 3, 3])],
        [value("y", FLOAT, [1, 6, 6, 6])],
        [tensor("w", w), *statistics_tensors(t)],
    )
    x = random(1, 4, 3, 3, seed=9)
    cv = np.zeros((1, 6, 6, 6), np.float32)
    for g in range(2):
        for i in range(2):
            for o in range(3):
                cv[0, g * 3 + o] += np.kron(x[0, g * 2 + i], w[g * 2 + i, o])
    return (
        m,
        {"x": x},
        Expected(outputs=[relu(batch_normalised(cv, *t, 1e-05))], rtol=0.001, atol=0.0001),
    )


@case("conv-bn", "microsoft/onnxruntime#12498")
def conv_add_group_tensor() -> Made:
    """A full-size tensor added to a grouped convolution was taken for a per-channel bias."""
    w, k = (random(4, 1, 1, 1), random(1, 4, 3, 3, seed=1))
    m = model(
        [node("Conv", ["x", "w"], ["cv"], group=4), node("Add", ["cv", "k"], ["y"])],
        [value("x", FLOAT, [1, 4, 3, 3])],
        [value("y", FLOAT, [1, 4, 3, 3])],
        [tensor("w", w), tensor("k", k)],
    )
    x = random(1, 4, 3, 3, seed=2)
    return m, {"x": x}, Expected(outputs=[x * w.reshape(1, 4, 1, 1) + k])


@case("pad", "microsoft/onnxruntime#22177", "microsoft/onnxruntime#21556")
def pad_avgpool() -> Made:
    """Zero Pad then AveragePool (count_include_pad=0) averages the zeros too; folding the pads
    into the pool drops them from the count."""
    m = model(
        [
            node("Pad", ["x", "p"], ["t"]),
            node("AveragePool", ["t"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
        ],
        [value("x", FLOAT, [1, 1, 4, 4])],
        [value("y", FLOAT, [1, 1, 3, 3])],
        [integers("p", 0, 0, 1, 1, 0, 0, 1, 1)],
    )
    x = np.abs(random(1, 1, 4, 4)) + 1
    q = np.pad(x[0, 0], 1)
    return m, {"x": x}, Expected(outputs=[q.reshape(3, 2, 3, 2).mean((1, 3))[None, None]])


@case("pad", "onnx/optimizer#251", "onnx/onnx#3260")
def pad_autopad_conv() -> Made:
    """Pad before a Conv with auto_pad=SAME_UPPER: explicit pads and auto_pad exclude each other."""
    w = random(1, 1, 3, 3)
    m = model(
        [
            node("Pad", ["x", "p"], ["t"]),
            node(
                "Conv",
                ["t", "w"],
                ["y"],
                auto_pad="SAME_UPPER",
                kernel_shape=[3, 3],
                strides=[2, 2],
            ),
        ],
        [value("x", FLOAT, [1, 1, 4, 4])],
        [value("y", FLOAT, [1, 1, 3, 3])],
        [integers("p", 0, 0, 1, 1, 0, 0, 1, 1), tensor("w", w)],
    )
    x = random(1, 1, 4, 4, seed=1)
    q = np.pad(x[0, 0], ((1, 1), (1, 1)))
    q = np.pad(q, ((0, 1), (0, 1)))
    y = np.array(
        [[(q[i : i + 3, j : j + 3] * w[0, 0]).sum() for j in (0, 2, 4)] for i in (0, 2, 4)],
        np.float32,
    )
    return m, {"x": x}, Expected(outputs=[y[None, None]], rtol=0.001, atol=0.0001)


@case("pad", "inisis/OnnxSlim#212", "microsoft/onnxruntime#18136")
def pad_value_mode_conv() -> Made:
    """Pad with a non-zero value, or in reflect mode, or on channels, cannot move into a Conv."""
    w = random(2, 1, 3, 3)
    w3 = random(2, 2, 1, 1, seed=4)
    m = model(
        [
            node("Pad", ["x", "p", "one"], ["t"]),
            node("Conv", ["t", "w"], ["y0"]),
            node("Pad", ["x", "p"], ["u"], mode="reflect"),
            node("Conv", ["u", "w"], ["y1"]),
            node("Pad", ["x", "pc"], ["v"]),
            node("Conv", ["v", "w3"], ["y2"]),
        ],
        [value("x", FLOAT, [1, 1, 4, 4])],
        [
            value("y0", FLOAT, [1, 2, 4, 4]),
            value("y1", FLOAT, [1, 2, 4, 4]),
            value("y2", FLOAT, [1, 2, 4, 4]),
        ],
        [
            integers("p", 0, 0, 1, 1, 0, 0, 1, 1),
            tensor("one", np.float32(1)),
            tensor("w", w),
            integers("pc", 0, 1, 0, 0, 0, 0, 0, 0),
            tensor("w3", w3),
        ],
    )
    return m, {"x": random(1, 1, 4, 4, seed=1)}, Expected(same_as_reference=True, rtol=0.001)


def _normalised_nodes(axes: Sequence[int] = (-1,)) -> list[onnx.NodeProto]:
    """`nm`: what LayerNormalization computes before its scale, in separate nodes."""
    return [
        node("ReduceMean", ["x"], ["mn"], axes=list(axes)),
        node("Sub", ["x", "mn"], ["ct"]),
        node("Pow", ["ct", "two"], ["sq"]),
        node("ReduceMean", ["sq"], ["vr"], axes=list(axes)),
        node("Add", ["vr", "eps"], ["ve"]),
        node("Sqrt", ["ve"], ["sd"]),
        node("Div", ["ct", "sd"], ["nm"]),
    ]


_CONSTANTS = [tensor("eps", np.float32(1e-5)), tensor("two", np.float32(2))]


def _normalised(x: Array, axis: int = -1) -> Array:
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis, keepdims=True) + np.float32(1e-5))


@case("layernorm", "microsoft/onnxruntime#31980", "microsoft/onnxruntime#32603", "onnx/onnx#8203")
def ln_scale_expands() -> Made:
    """Scale and bias that enlarge the normalised tensor ([3,1] by [2]) are not LayerNorm's."""
    sc, bi = (np.array([2, 3], np.float32), np.array([0.5, -1], np.float32))
    m = model(
        [*_normalised_nodes(), node("Mul", ["sc", "nm"], ["t"]), node("Add", ["t", "bi"], ["y"])],
        [value("x", FLOAT, [3, 1])],
        [value("y", FLOAT, [3, 2])],
        [*_CONSTANTS, tensor("sc", sc), tensor("bi", bi)],
    )
    x = random(3, 1)
    return m, {"x": x}, Expected(outputs=[_normalised(x) * sc + bi])


@case("layernorm", "microsoft/onnxruntime#25855", "apple/coremltools#2807")
def ln_scalar_gamma() -> Made:
    """Gamma and beta of shape [1] broadcast over the axis; the fused op needs the full shape."""
    m = model(
        [*_normalised_nodes(), node("Mul", ["nm", "sc"], ["t"]), node("Add", ["t", "bi"], ["y"])],
        [value("x", FLOAT, [2, 5])],
        [value("y", FLOAT, [2, 5])],
        [
            *_CONSTANTS,
            tensor("sc", np.array([2], np.float32)),
            tensor("bi", np.array([0.5], np.float32)),
        ],
    )
    x = random(2, 5)
    return m, {"x": x}, Expected(outputs=[_normalised(x) * 2 + np.float32(0.5)], rtol=0.001)


@case("layernorm", "microsoft/onnxruntime#15844", "microsoft/onnxruntime#4293")
def ln_other_axis() -> Made:
    """Normalising over axis 1 of 3, and with different axes in the two means, is not the last-
    axis LayerNorm the matcher assumes."""
    sc, bi = (random(3, 1, seed=1), random(3, 1, seed=2))
    n = [
        *_normalised_nodes(axes=(1,)),
        node("Mul", ["nm", "sc"], ["t"]),
        node("Add", ["t", "bi"], ["y"]),
    ]
    n += [
        node("ReduceMean", ["x"], ["m2"], axes=[2]),
        node("Sub", ["x", "m2"], ["c2"]),
        node("Pow", ["c2", "two"], ["s2"]),
        node("ReduceMean", ["s2"], ["v2"], axes=[1]),
        node("Add", ["v2", "eps"], ["e2"]),
        node("Sqrt", ["e2"], ["d2"]),
        node("Div", ["c2", "d2"], ["z"]),
    ]
    m = model(
        n,
        [value("x", FLOAT, [2, 3, 4])],
        [value("y", FLOAT, [2, 3, 4]), value("z", FLOAT, [2, 3, 4])],
        [*_CONSTANTS, tensor("sc", sc), tensor("bi", bi)],
    )
    x = random(2, 3, 4)
    c2 = x - x.mean(2, keepdims=True)
    return (
        m,
        {"x": x},
        Expected(
            outputs=[
                _normalised(x, 1) * sc + bi,
                c2 / np.sqrt((c2**2).mean(1, keepdims=True) + np.float32(1e-05)),
            ],
            rtol=0.001,
            atol=0.0001,
        ),
    )


@case("gelu", "microsoft/onnxruntime#32421", "microsoft/onnxruntime#32386")
def quickgelu_double() -> Made:
    """A fused op must exist for the dtype: double has no QuickGelu kernel."""
    m = model(
        [
            node("Mul", ["x", "k"], ["t2"]),
            node("Sigmoid", ["t2"], ["t3"]),
            node("Mul", ["x", "t3"], ["y"]),
        ],
        [value("x", DOUBLE, [5])],
        [value("y", DOUBLE, [5])],
        [tensor("k", np.float64(1.702))],
    )
    x = random(5, dtype=np.float64)
    return m, {"x": x}, Expected(outputs=[x / (1 + np.exp(-1.702 * x))])


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


@case("gelu", "microsoft/onnxruntime#32386", "microsoft/onnxruntime#15021")
def gelu_fp16() -> Made:
    """Erf Gelu in float16: the fused form must run and keep half precision."""
    m = model(
        [
            node("Div", ["x", "rt2"], ["d"]),
            node("Erf", ["d"], ["e"]),
            node("Add", ["e", "one"], ["a"]),
            node("Mul", ["x", "a"], ["mm"]),
            node("Mul", ["mm", "half"], ["y"]),
        ],
        [value("x", HALF, [6])],
        [value("y", HALF, [6])],
        [
            tensor("rt2", np.float16(2**0.5)),
            tensor("one", np.float16(1)),
            tensor("half", np.float16(0.5)),
        ],
    )
    x = random(6).astype(np.float16)
    xf = x.astype(np.float64)
    return (
        m,
        {"x": x},
        Expected(
            outputs=[(xf * 0.5 * (1 + _erf(xf / 2**0.5))).astype(np.float16)], rtol=0.01, atol=0.004
        ),
    )


@case("attention", "microsoft/onnxruntime#14333", "microsoft/onnxruntime#17689")
def attention_softmax_axis() -> Made:
    """Attention-like block with the softmax over the query axis and K not transposed by the
    usual perm: must not be fused."""
    m = model(
        [
            node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
            node("MatMul", ["q", "kt"], ["s0"]),
            node("Div", ["s0", "sc"], ["s1"]),
            node("Softmax", ["s1"], ["p"], axis=1),
            node("MatMul", ["p", "v"], ["y"]),
        ],
        [value(n, FLOAT, [2, 3, 3]) for n in "qkv"],
        [value("y", FLOAT, [2, 3, 3])],
        [tensor("sc", np.float32(3**0.5))],
    )
    q, k, v = (random(2, 3, 3, seed=i) for i in range(3))
    s = q @ k.transpose(0, 2, 1) / np.float32(3**0.5)
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return m, {"q": q, "k": k, "v": v}, Expected(outputs=[p @ v], rtol=0.001)
