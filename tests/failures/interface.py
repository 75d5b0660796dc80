"""Initializers, names, metadata: what a caller of the model relies on."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.failures.building import (
    BOOL,
    FLOAT,
    INT32,
    STRING,
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


@case(
    "initializer",
    "microsoft/onnxscript#1944",
    "microsoft/onnxruntime#1324",
    "microsoft/onnxruntime#4033",
)
def init_overridable() -> Made:
    """From IR 4 an initialiser that is also a graph input is a default the caller may override:
    neither folded, fused nor removed from the inputs."""
    m = model(
        [node("Mul", ["w", "two"], ["w2"]), node("Add", ["x", "w2"], ["y"])],
        [value("x", FLOAT, [2]), value("w", FLOAT, [2])],
        [value("y", FLOAT, [2])],
        [tensor("w", np.array([1, 2], np.float32)), tensor("two", np.float32(2))],
    )
    x, w = (np.zeros(2, np.float32), np.array([5, 7], np.float32))
    return (
        m,
        [{"x": x}, {"x": x, "w": w}],
        Expected(outputs=[[np.array([2, 4], np.float32)], [2 * w]], inputs_kept=True),
    )


@case("initializer", "onnx/optimizer#325", "onnx/onnx#2198", "onnx/optimizer#133")
def ir3_inits_in_inputs() -> Made:
    """IR 3 models list every weight as an input; they must load, run with defaults and keep the
    same values (whether or not the weights are then treated as constants)."""
    w, t = random(3, 2, 1, 1), statistics(3)
    m = model(
        [
            node("Conv", ["x", "w"], ["cv"]),
            node("BatchNormalization", ["cv", "s", "b", "mu", "va"], ["y"], epsilon=0.001),
        ],
        [
            value("x", FLOAT, [1, 2, 4, 4]),
            value("w", FLOAT, [3, 2, 1, 1]),
            *[value(n, FLOAT, [3]) for n in ("s", "b", "mu", "va")],
        ],
        [value("y", FLOAT, [1, 3, 4, 4])],
        [tensor("w", w), *statistics_tensors(t)],
        opset=9,
        ir=3,
    )
    x = random(1, 2, 4, 4, seed=9)
    return (
        m,
        {"x": x},
        Expected(
            outputs=[batch_normalised(np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]), *t, 0.001)],
            rtol=0.001,
            atol=0.0001,
        ),
    )


@case("initializer", "microsoft/onnxruntime#13425", "microsoft/onnxruntime#2907")
def output_is_initializer() -> Made:
    """A graph output that is an initialiser came back empty after optimisation."""
    m = model(
        [node("Min", ["o2", "x"], ["o1"])],
        [value("x", FLOAT, [2, 2])],
        [value("o1", FLOAT, [2, 2]), value("o2", FLOAT, [1])],
        [tensor("o2", np.array([0.25], np.float32))],
    )
    x = random(2, 2)
    return (
        m,
        {"x": x},
        Expected(outputs=[np.minimum(x, np.float32(0.25)), np.array([0.25], np.float32)]),
    )


@case("dedupe", "onnxsim/onnxsim#265")
def dedupe_raw_vs_typed() -> Made:
    """Scalar constants held in typed fields, not raw bytes, were hashed as equal (2 and 4
    merged)."""
    two = helper.make_tensor("two", FLOAT, [], [2.0])
    four = helper.make_tensor("four", FLOAT, [], [4.0])
    f2 = helper.make_tensor("f2", TensorProto.INT32, [1], [2])
    f4 = helper.make_tensor("f4", TensorProto.INT32, [1], [4])
    m = model(
        [
            node("Div", ["x", "two"], ["a"]),
            node("Mul", ["z", "four"], ["b"]),
            node("Add", ["a", "b"], ["s"]),
            node("Cast", ["f2"], ["g2"], to=FLOAT),
            node("Cast", ["f4"], ["g4"], to=FLOAT),
            node("Mul", ["s", "g2"], ["t"]),
            node("Sub", ["t", "g4"], ["y"]),
        ],
        [value("x", FLOAT, [2]), value("z", FLOAT, [2])],
        [value("y", FLOAT, [2])],
        [two, four, f2, f4],
    )
    x, z = (random(2), random(2, seed=1))
    return m, {"x": x, "z": z}, Expected(outputs=[(x / 2 + z * 4) * 2 - 4])


@case("dedupe", "microsoft/onnxruntime#24340", "onnx/onnx#2401")
def dedupe_same_bytes() -> Made:
    """Constants with equal bytes but another dtype or rank ([1] against scalar, int32 against
    float) are not duplicates."""
    bits = np.array([1.0], np.float32)
    m = model(
        [
            node("Concat", ["x", "f1"], ["a"], axis=0),
            node("Add", ["a", "f0"], ["y"]),
            node("Concat", ["i", "i1"], ["z"], axis=0),
        ],
        [value("x", FLOAT, [2]), value("i", INT32, [1])],
        [value("y", FLOAT, [3]), value("z", INT32, [2])],
        [tensor("f1", bits), tensor("f0", np.float32(1.0)), tensor("i1", bits.view(np.int32))],
    )
    x = random(2)
    return (
        m,
        {"x": x, "i": np.array([7], np.int32)},
        Expected(
            outputs=[np.concatenate([x, bits]) + 1, np.array([7, bits.view(np.int32)[0]], np.int32)]
        ),
    )


@case("dedupe", "inisis/OnnxSlim#308")
def cse_both_outputs() -> Made:
    """Two equal nodes, both graph outputs (one also used inside): one was dropped and its name
    dangled."""
    m = model(
        [node("Relu", ["x"], ["a"]), node("Relu", ["x"], ["b"]), node("Neg", ["b"], ["d"])],
        [value("x", FLOAT, [3])],
        [value("a", FLOAT, [3]), value("b", FLOAT, [3]), value("d", FLOAT, [3])],
    )
    x = random(3)
    return m, {"x": x}, Expected(outputs=[relu(x), relu(x), -relu(x)])


@case("boundary", "microsoft/onnxscript#2180", "microsoft/onnxruntime#7312", "inisis/OnnxSlim#32")
def identity_input_to_output() -> Made:
    """Identity from input straight to output, and one value going to two outputs: names of
    inputs and outputs are the interface and must survive."""
    m = model(
        [
            node("Identity", ["x"], ["y0"]),
            node("Relu", ["x"], ["r"]),
            node("Identity", ["r"], ["y1"]),
            node("Identity", ["r"], ["y2"]),
        ],
        [value("x", FLOAT, [3])],
        [value("y0", FLOAT, [3]), value("y1", FLOAT, [3]), value("y2", FLOAT, [3])],
    )
    x = random(3)
    return m, {"x": x}, Expected(outputs=[x, relu(x), relu(x)], inputs_kept=True)


@case("boundary", "onnx/optimizer#40", "onnx/onnx#1672")
def dropout_mask() -> Made:
    """Removing an inference Dropout replaced its mask output by the data input; the mask is all
    true."""
    m = model(
        [node("Dropout", ["x"], ["d", "mask"]), node("Relu", ["d"], ["y"])],
        [value("x", FLOAT, [2, 3])],
        [value("y", FLOAT, [2, 3]), value("mask", BOOL, [2, 3])],
    )
    x = random(2, 3)
    return m, {"x": x}, Expected(outputs=[relu(x), np.ones((2, 3), bool)])


@case("boundary", "microsoft/onnxruntime#32413")
def identity_mul_one() -> Made:
    """Identity removal together with multiply-by-folded-one removal left a dangling reference."""
    m = model(
        [
            node("Identity", ["x"], ["mid"]),
            node("Div", ["one", "one"], ["k"]),
            node("Mul", ["mid", "k"], ["w"]),
            node("Add", ["w", "zero"], ["y"]),
        ],
        [value("x", FLOAT, [3])],
        [value("y", FLOAT, [3])],
        [tensor("one", np.float32(1)), tensor("zero", np.float32(0))],
    )
    x = random(3)
    return m, {"x": x}, Expected(outputs=[x])


@case("boundary", "microsoft/onnxruntime#32416")
def cast_mul_one() -> Made:
    """Same-type Cast removal together with multiply-by-folded-one removal left a dangling name."""
    m = model(
        [
            node("Cast", ["x"], ["mid"], to=FLOAT),
            node("Div", ["one", "one"], ["k"]),
            node("Mul", ["mid", "k"], ["y"]),
        ],
        [value("x", FLOAT, [3])],
        [value("y", FLOAT, [3])],
        [tensor("one", np.float32(1))],
    )
    x = random(3)
    return m, {"x": x}, Expected(outputs=[x])


@case("boundary", "onnx/optimizer#252", "onnx/optimizer#283")
def nop_concat_split_output() -> Made:
    """One-input Concat and one-output Split are no-ops, but they name graph outputs."""
    m = model(
        [
            node("Concat", ["x"], ["y0"], axis=0),
            node("Split", ["x", "n"], ["y1"], axis=0),
            node("Concat", ["x", "e"], ["y2"], axis=0),
        ],
        [value("x", FLOAT, [3])],
        [value("y0", FLOAT, [3]), value("y1", FLOAT, [3]), value("y2", FLOAT, [3])],
        [integers("n", 3), tensor("e", np.zeros(0, np.float32))],
    )
    x = random(3)
    return m, {"x": x}, Expected(outputs=[x, x, x], inputs_kept=True)


@case("names", "onnxsim/onnxsim#53", "onnx/onnx#2401")
def duplicate_node_names() -> Made:
    """All nodes bear one node name (the checker lets it pass; onnxruntime refuses). A tool may
    refuse or rename, but must not key its tables by node name and lose nodes."""
    m = model(
        [
            node("Add", ["x", "k"], ["a"], name="n"),
            node("Mul", ["a", "k"], ["b"], name="n"),
            node("Identity", ["b"], ["d"], name="n"),
            node("Neg", ["d"], ["y"], name="n"),
        ],
        [value("x", FLOAT, [2])],
        [value("y", FLOAT, [2])],
        [tensor("k", np.float32(3))],
    )
    x = random(2)
    return m, {"x": x}, Expected(outputs=[-(x + 3) * 3], may_be_rejected=True)


@case("boundary", "inisis/OnnxSlim#321")
def input_dead_after_fold() -> Made:
    """When only the static shape of an input matters, folding leaves the input unread. It is
    part of the interface and must stay (callers still feed it), as must a half-used graph
    around it."""
    m = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Cast", ["s"], ["sf"], to=FLOAT),
            node("Add", ["sf", "z"], ["y"]),
        ],
        [value("x", FLOAT, [2, 3]), value("z", FLOAT, [2])],
        [value("y", FLOAT, [2])],
    )
    z = random(2)
    return (
        m,
        {"x": random(2, 3), "z": z},
        Expected(outputs=[z + np.array([2, 3], np.float32)], inputs_kept=True),
    )


@case("metadata", "inisis/OnnxSlim#38", "inisis/OnnxSlim#35")
def metadata_kept() -> Made:
    """Metadata, doc strings, producer and IR version were dropped or bumped."""
    m = model(
        [node("Identity", ["x"], ["t"]), node("Relu", ["t"], ["y"])],
        [value("x", FLOAT, [2])],
        [value("y", FLOAT, [2])],
        opset=13,
        ir=7,
    )
    helper.set_model_props(m, {"labels": "cat,dog", "stride": "32"})
    m.producer_name, m.doc_string, m.graph.doc_string, m.model_version, m.domain = (
        "acme",
        "model doc",
        "graph doc",
        5,
        "ai.acme",
    )
    x = random(2)
    return m, {"x": x}, Expected(outputs=[relu(x)], metadata_kept=True)


@case("string", "microsoft/onnxruntime#28413")
def string_tensor_cse() -> Made:
    """Hashing nodes with string tensor attributes crashed; equal ones may be merged, others not."""

    def k(name, *v):
        return node(
            "Constant",
            [],
            [name],
            value=helper.make_tensor(name, STRING, [len(v)], [s.encode() for s in v]),
        )

    m = model(
        [
            k("a", "cat", "dog"),
            k("b", "cat", "dog"),
            k("d", "cat", "cow"),
            node("Concat", ["x", "a"], ["t"], axis=0),
            node("Concat", ["t", "b"], ["u"], axis=0),
            node("Concat", ["u", "d"], ["y"], axis=0),
        ],
        [value("x", STRING, [1])],
        [value("y", STRING, [7])],
    )
    return (
        m,
        {"x": np.array(["x"], object)},
        Expected(outputs=[np.array(["x", "cat", "dog", "cat", "dog", "cat", "cow"], object)]),
    )


@case("sparse", "onnx/optimizer#5", "onnx/onnx#3009")
def sparse_initializer() -> Made:
    """sparse_initializer was lost in a round trip, leaving its consumer without an input."""
    vals = tensor("w", np.array([2.0, 5.0], np.float32))
    idx = integers("w_idx", 1, 5)
    m = model(
        [node("Identity", ["x"], ["xi"]), node("MatMul", ["xi", "w"], ["y"])],
        [value("x", FLOAT, [1, 3])],
        [value("y", FLOAT, [1, 2])],
    )
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(vals, idx, [3, 2]))
    x = np.array([[1, 2, 3]], np.float32)
    w = np.zeros(6, np.float32)
    w[1], w[5] = (2, 5)
    return m, {"x": x}, Expected(outputs=[x @ w.reshape(3, 2)])
