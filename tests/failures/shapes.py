"""Shape arithmetic, and nodes that only look as if they did nothing."""

from __future__ import annotations

import numpy as np
import onnx

from tests.failures.building import (
    BOOL,
    FLOAT,
    INT64,
    integers,
    model,
    node,
    random,
    relu,
    subgraph,
    tensor,
    value,
)
from tests.failures.case import Expected, Made, case


@case("dynamic", "onnxsim/onnxsim#101", "onnxsim/onnxsim#182", "inisis/OnnxSlim#102")
def dynamic_output_dims() -> Made:
    """Symbolic batch turned into a number; names of symbolic output dims must survive too."""
    w = random(6, 2)
    m = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"], axis=0),
            node("Unsqueeze", ["n", "ax"], ["nu"]),
            node("Concat", ["nu", "rest"], ["shp"], axis=0),
            node("Reshape", ["x", "shp"], ["xr"]),
            node("MatMul", ["xr", "w"], ["y"]),
        ],
        [value("x", FLOAT, ["batch", 2, 3])],
        [value("y", FLOAT, ["batch", 2])],
        [tensor("zero", np.int64(0)), integers("ax", 0), integers("rest", 6), tensor("w", w)],
    )
    xs = [random(n, 2, 3, seed=n) for n in (1, 3)]
    return (
        m,
        [{"x": x} for x in xs],
        Expected(outputs=[[x.reshape(len(x), 6) @ w] for x in xs], dims_kept=True, rtol=0.001),
    )


@case("dynamic", "onnxsim/onnxsim#526", "onnxsim/onnxsim#532", "inisis/OnnxSlim#95")
def dynamic_reshape_fold() -> Made:
    """Shape-Gather-Concat scaffolding for a Reshape with one unknown dim should fold to [-1,
    ...]."""
    m = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"], axis=0),
            node("Unsqueeze", ["n", "ax"], ["nu"]),
            node("Concat", ["nu", "rest"], ["shp"], axis=0),
            node("Reshape", ["x", "shp"], ["y"]),
        ],
        [value("x", FLOAT, ["batch", 2, 3])],
        [value("y", FLOAT, ["batch", 3, 2])],
        [tensor("zero", np.int64(0)), integers("ax", 0), integers("rest", 3, 2)],
    )
    xs = [random(n, 2, 3, seed=n) for n in (2, 5)]
    return (
        m,
        [{"x": x} for x in xs],
        Expected(outputs=[[x.reshape(len(x), 3, 2)] for x in xs], max_nodes=1, dims_kept=True),
    )


@case("reshape", "microsoft/onnxruntime#32105")
def reshape_as_shape() -> Made:
    """A Reshape feeding the shape input of another is not a data chain."""
    m = model(
        [node("Reshape", ["sv", "m1"], ["shp"]), node("Reshape", ["x", "shp"], ["y"])],
        [value("x", FLOAT, [2, 2]), value("sv", INT64, [1, 1])],
        [value("y", FLOAT, ["n"])],
        [integers("m1", -1)],
        opset=21,
        ir=10,
    )
    x = random(2, 2)
    return m, {"x": x, "sv": np.array([[4]], np.int64)}, Expected(outputs=[x.reshape(4)])


@case("reshape", "inisis/OnnxSlim#305")
def concat_fold_many_readers() -> Made:
    """With shapes already inferred, a foldable Concat read by several Reshapes (one inside a
    branch) was removed while some readers kept its name."""
    then = subgraph([node("Reshape", ["x", "tgt"], ["t0"])], [], [value("t0", FLOAT, [2, 6])])
    els = subgraph([node("Reshape", ["n", "tgt"], ["e0"])], [], [value("e0", FLOAT, [2, 6])])
    m = model(
        [
            node("Constant", [], ["p"], value_ints=[2]),
            node("Constant", [], ["q"], value_ints=[6]),
            node("Concat", ["p", "q"], ["tgt"], axis=0),
            node("Neg", ["x"], ["n"]),
            node("Reshape", ["x", "tgt"], ["y0"]),
            node("Reshape", ["n", "tgt"], ["r1"]),
            node("Relu", ["r1"], ["y1"]),
            node("If", ["cond"], ["y2"], then_branch=then, else_branch=els),
        ],
        [value("x", FLOAT, [2, 2, 3]), value("cond", BOOL, [])],
        [value("y0", FLOAT, [2, 6]), value("y1", FLOAT, [2, 6]), value("y2", FLOAT, [2, 6])],
    )
    m = onnx.shape_inference.infer_shapes(m, data_prop=True)
    x = random(2, 2, 3)
    r = x.reshape(2, 6)
    return (
        m,
        [{"x": x, "cond": np.array(True)}, {"x": x, "cond": np.array(False)}],
        Expected(outputs=[[r, relu(-r), r], [r, relu(-r), -r]]),
    )


@case("reshape", "onnx/optimizer#267", "microsoft/onnxruntime#3777")
def reshape_concat_zero() -> Made:
    """Concat of [0] and [-1] pieces into a Reshape target: 0 copies from *this* Reshape's
    input, so it cannot survive merging with an earlier Reshape."""
    m = model(
        [
            node("Reshape", ["x", "s1"], ["t"]),
            node("Concat", ["z", "m1"], ["s2"], axis=0),
            node("Reshape", ["t", "s2"], ["y"]),
        ],
        [value("x", FLOAT, [2, 6])],
        [value("y", FLOAT, [3, 4])],
        [integers("s1", 3, 2, 2), integers("z", 0), integers("m1", -1)],
    )
    x = random(2, 6)
    return m, {"x": x}, Expected(outputs=[x.reshape(3, 4)])


@case("noop", "onnx/optimizer#253")
def squeeze_chain() -> Made:
    """Merging Squeezes needs the second's axes mapped back (also negative ones, also none
    given)."""
    m = model(
        [
            node("Squeeze", ["x", "a1"], ["t"]),
            node("Squeeze", ["t", "a2"], ["y0"]),
            node("Squeeze", ["x", "a3"], ["u"]),
            node("Squeeze", ["u", "a4"], ["y1"]),
            node("Squeeze", ["t"], ["y2"]),
        ],
        [value("x", FLOAT, [1, 2, 1, 3, 1])],
        [value("y0", FLOAT, None), value("y1", FLOAT, None), value("y2", FLOAT, None)],
        [integers("a1", 0), integers("a2", 1, 3), integers("a3", -1), integers("a4", -4, -2)],
    )
    x = random(1, 2, 1, 3, 1)
    return m, {"x": x}, Expected(outputs=[x.reshape(2, 3)] * 3)


@case("noop", "onnx/onnx#2446", "onnx/onnx#2471")
def transpose_chain() -> Made:
    """Two Transposes compose in one order only."""
    m = model(
        [
            node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
            node("Transpose", ["t"], ["y"], perm=[0, 2, 1]),
            node("Transpose", ["x"], ["u"]),
            node("Transpose", ["u"], ["z"], perm=[1, 2, 0]),
        ],
        [value("x", FLOAT, [2, 3, 4])],
        [value("y", FLOAT, [3, 4, 2]), value("z", FLOAT, None)],
    )
    x = random(2, 3, 4)
    return m, {"x": x}, Expected(outputs=[x.transpose(1, 2, 0), x.transpose().transpose(1, 2, 0)])


@case("noop", "onnx/optimizer#275")
def expand_smaller_shape() -> Made:
    """Expand broadcasts both ways: a target of ones (or of lower rank) is a no-op, one of
    higher rank is not, even with equal element count."""
    m = model(
        [
            node("Expand", ["x", "s1"], ["y0"]),
            node("Expand", ["x", "s2"], ["y1"]),
            node("Expand", ["x", "s3"], ["y2"]),
        ],
        [value("x", FLOAT, [2, 1])],
        [value("y0", FLOAT, None), value("y1", FLOAT, None), value("y2", FLOAT, None)],
        [integers("s1", 1, 1), integers("s2", 1, 2, 1), integers("s3", 3)],
    )
    x = random(2, 1)
    return m, {"x": x}, Expected(outputs=[x, x[None], np.broadcast_to(x, (2, 3))])


@case("slice", "microsoft/onnxscript#2478")
def slice_reverse_full() -> Made:
    """A Slice with step -1 keeps the shape but reverses the data."""
    m = model(
        [node("Slice", ["x", "st", "en", "ax", "sp"], ["y"])],
        [value("x", FLOAT, ["L", 3])],
        [value("y", FLOAT, ["L", 3])],
        [integers("st", -1), integers("en", -(2**63) + 1), integers("ax", 0), integers("sp", -1)],
    )
    x = random(4, 3)
    return m, {"x": x}, Expected(outputs=[x[::-1]])


@case("slice", "microsoft/onnxruntime#885", "microsoft/onnxruntime#918")
def slice_negative_end() -> Made:
    """start 0, end -1 looked like a whole-axis Slice; -1 cuts the last element."""
    m = model(
        [node("Slice", ["x", "z", "m1"], ["y"]), node("Slice", ["x", "z", "big", "ax"], ["w"])],
        [value("x", FLOAT, [5])],
        [value("y", FLOAT, None), value("w", FLOAT, None)],
        [integers("z", 0), integers("m1", -1), integers("big", 2**31 - 1), integers("ax", -1)],
    )
    x = random(5)
    return m, {"x": x}, Expected(outputs=[x[:-1], x])


@case("slice", "onnx/onnx-mlir#2123", "onnx/onnx-mlir#2586", "onnx/onnx-mlir#1610")
def slice_empty() -> Made:
    """A Slice of a shape that yields nothing (int64[0]) and its Concat must fold cleanly."""
    m = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Slice", ["s", "z", "z", "z"], ["emp"]),
            node("Concat", ["emp", "m1"], ["shp"], axis=0),
            node("Reshape", ["x", "shp"], ["y"]),
            node("Slice", ["s", "four", "big"], ["emp2"]),
            node("Concat", ["s", "emp2"], ["sh2"], axis=0),
        ],
        [value("x", FLOAT, [1, 1, 2, 3])],
        [value("y", FLOAT, [6]), value("sh2", INT64, [4])],
        [integers("z", 0), integers("m1", -1), integers("four", 4), integers("big", 2**63 - 1)],
    )
    x = random(1, 1, 2, 3)
    return m, {"x": x}, Expected(outputs=[x.reshape(-1), np.array([1, 1, 2, 3])])


@case("shape", "tsingmicro-toolchain/OnnxSlim#38", "onnx/optimizer#263")
def shape_start_end() -> Made:
    """Shape's start and end attributes (negative too) were ignored by folding."""
    m = model(
        [
            node("Shape", ["x"], ["hw"], start=2, end=-1),
            node("Shape", ["x"], ["last"], start=-1),
            node("Concat", ["last", "hw"], ["y"], axis=0),
            node("Slice", ["hw", "z", "big"], ["w"]),
        ],
        [value("x", FLOAT, [2, 3, 4, 5])],
        [value("y", INT64, [2]), value("w", INT64, [1])],
        [integers("z", 0), integers("big", 99)],
    )
    return m, {"x": random(2, 3, 4, 5)}, Expected(outputs=[np.array([5, 4]), np.array([4])])


@case("shape", "inisis/OnnxSlim#133")
def einsum_shape() -> Made:
    """Symbolic inference mapped an Einsum output dim to the wrong input dim; the shape feeds a
    Reshape."""
    m = model(
        [
            node("Einsum", ["a", "b"], ["e"], equation="bhid,bhjd->bhij"),
            node("Shape", ["e"], ["s"], start=2),
            node("Concat", ["m1", "s"], ["shp"], axis=0),
            node("Reshape", ["e", "shp"], ["y"]),
        ],
        [value("a", FLOAT, ["b", 2, "i", 4]), value("b", FLOAT, ["b", 2, "j", 4])],
        [value("y", FLOAT, ["p", "i", "j"])],
        [integers("m1", -1)],
    )
    a, b = (random(2, 2, 3, 4), random(2, 2, 5, 4, seed=1))
    return (
        m,
        {"a": a, "b": b},
        Expected(
            outputs=[np.einsum("bhid,bhjd->bhij", a, b).reshape(-1, 3, 5)],
            rtol=0.001,
            dims_kept=True,
        ),
    )


@case("shape", "apache/tvm#20001", "tracel-ai/burn#3548", "tinygrad/tinygrad#1076")
def cos_scalar_and_zero() -> Made:
    """ConstantOfShape of an empty shape is a scalar (default float 0), with a 0 dim it is empty."""
    m = model(
        [
            node("ConstantOfShape", ["e"], ["k0"]),
            node("Add", ["x", "k0"], ["y"]),
            node("ConstantOfShape", ["z"], ["k1"], value=tensor("v", np.array([7], np.int64))),
            node("Concat", ["k1", "i"], ["w"], axis=0),
        ],
        [value("x", FLOAT, []), value("i", INT64, [1, 2])],
        [value("y", FLOAT, []), value("w", INT64, [1, 2])],
        [tensor("e", np.zeros(0, np.int64)), integers("z", 0, 2)],
    )
    return (
        m,
        {"x": np.array(3, np.float32), "i": np.array([[1, 2]], np.int64)},
        Expected(outputs=[np.float32(3), np.array([[1, 2]])]),
    )


@case("shape", "tracel-ai/burn#2926", "microsoft/onnxruntime#24340")
def gather_scalar_rank() -> Made:
    """Gather with a scalar index lowers the rank, with [1] it does not; negative indices count
    from the end."""
    m = model(
        [
            node("Gather", ["x", "i0"], ["y0"], axis=1),
            node("Gather", ["x", "i1"], ["y1"], axis=1),
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "i0"], ["d0"]),
            node("Gather", ["s", "i1"], ["d1"]),
            node("Unsqueeze", ["d0", "z"], ["d0u"]),
            node("Concat", ["d0u", "d1"], ["d"], axis=0),
        ],
        [value("x", FLOAT, [2, 3])],
        [value("y0", FLOAT, [2]), value("y1", FLOAT, [2, 1]), value("d", INT64, [2])],
        [tensor("i0", np.int64(-1)), integers("i1", -2), integers("z", 0)],
    )
    x = random(2, 3)
    return m, {"x": x}, Expected(outputs=[x[:, -1], x[:, [-2]], np.array([3, 2])])
