"""What is constant, what must not be taken for it, and how large a result may be."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.failures.building import (
    BOOL,
    FLOAT,
    INT32,
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


@case(
    "fold-random", "onnxsim/onnxsim#440", "apple/coremltools#2732", "openvinotoolkit/openvino#5816"
)
def fold_random_normal() -> Made:
    """Random op with a constant shape and no data input was taken for a constant and frozen; it
    has to stay in the graph and draw anew on each run."""
    m = model(
        [node("RandomNormal", [], ["r"], shape=[64], dtype=FLOAT), node("Add", ["x", "r"], ["y"])],
        [value("x", FLOAT, [64])],
        [value("y", FLOAT, [64])],
    )
    return (
        m,
        {"x": np.zeros(64, np.float32)},
        Expected(random={"distinct_runs": True, "shape": [64]}, operators_kept=["RandomNormal"]),
    )


@case("fold-random", "spcl/daceml#5", "microsoft/onnxscript#1937")
def dropout_training_const() -> Made:
    """Dropout in training mode over a constant is random too: neither a no-op nor foldable."""
    m = model(
        [node("Dropout", ["w", "ratio", "tm"], ["d"]), node("Add", ["x", "d"], ["y"])],
        [value("x", FLOAT, [256])],
        [value("y", FLOAT, [256])],
        [
            tensor("w", np.ones(256, np.float32)),
            tensor("ratio", np.float32(0.5)),
            tensor("tm", np.array(True)),
        ],
    )
    return (
        m,
        {"x": np.zeros(256, np.float32)},
        Expected(random={"distinct_runs": True, "shape": [256]}, operators_kept=["Dropout"]),
    )


@case("fold-size", "onnxsim/onnxsim#178", "onnxsim/onnxsim#291")
def fold_tile_bloat() -> Made:
    """Tile of a tiny constant folded into a huge initialiser (models grew past 2 GB). Leave it,
    or fold only when the result is small."""
    m = model(
        [node("Tile", ["w", "reps"], ["t"]), node("Add", ["x", "t"], ["y"])],
        [value("x", FLOAT, [1, 1024])],
        [value("y", FLOAT, [2048, 1024])],
        [tensor("w", np.array([[1.5]], np.float32)), integers("reps", 2048, 1024)],
    )
    x = random(1, 1024)
    return (
        m,
        {"x": x},
        Expected(outputs=[np.broadcast_to(x + np.float32(1.5), (2048, 1024))], max_bytes=1 << 20),
    )


@case("fold-size", "microsoft/onnxruntime#28730")
def cos_huge_untaken() -> Made:
    """A ConstantOfShape of petabytes in a branch that is not taken made the folder allocate it
    while loading. Size must be checked before evaluating."""
    then = subgraph(
        [node("ConstantOfShape", ["hs"], ["big"]), node("ReduceMax", ["big"], ["t0"], keepdims=0)],
        [],
        [value("t0", FLOAT, [])],
        [integers("hs", 1 << 22, 1 << 22)],
    )
    els = subgraph([node("ReduceSum", ["x"], ["e0"], keepdims=0)], [], [value("e0", FLOAT, [])])
    m = model(
        [node("If", ["cond"], ["y"], then_branch=then, else_branch=els)],
        [value("cond", BOOL, []), value("x", FLOAT, [3])],
        [value("y", FLOAT, [])],
    )
    return (
        m,
        {"cond": np.array(False), "x": np.array([1, 2, 4], np.float32)},
        Expected(outputs=[np.float32(7)], max_seconds=10),
    )


@case("fold", "onnxsim/onnxsim#281")
def fold_clip_optional_empty() -> Made:
    """A constant Clip whose max input is the empty name was not recognised as constant. The
    empty name means absent; only the convolution should be left."""
    w, k = (np.abs(random(4, 1)), random(4, 8, seed=1))
    m = model(
        [
            node("Clip", ["w", "lo", ""], ["cw"]),
            node("Expand", ["cw", "es"], ["ew"]),
            node("Div", ["ew", "k"], ["dw"]),
            node("Reshape", ["dw", "rsh"], ["fw"]),
            node("Conv", ["x", "fw"], ["y"]),
        ],
        [value("x", FLOAT, [1, 8, 5, 5])],
        [value("y", FLOAT, [1, 4, 5, 5])],
        [
            tensor("w", w),
            tensor("lo", np.float32(1e-12)),
            integers("es", 4, 8),
            tensor("k", k),
            integers("rsh", 4, 8, 1, 1),
        ],
    )
    return (
        m,
        {"x": random(1, 8, 5, 5, seed=2)},
        Expected(same_as_reference=True, max_nodes=1, rtol=0.001),
    )


@case("fold-external", "onnxsim/onnxsim#262", "onnx/onnx#3275", "inisis/OnnxSlim#125")
def big_over_2gb() -> Made:
    """A model whose weights exceed 2 GB cannot be one protobuf; tools must keep external data.
    (The weight file is a sparse file of zeros with three marked values.)"""
    m = model(
        [
            node("Identity", ["x"], ["xi"]),
            node("Gather", ["big", "xi"], ["g0"]),
            node("Mul", ["g0", "one"], ["y"]),
        ],
        [value("x", INT64, [3])],
        [value("y", FLOAT, [3])],
        [tensor("one", np.float32(1))],
    )
    return (
        m,
        {"x": np.array([1, 300000000, 549999999], np.int64)},
        Expected(outputs=[np.array([1, 2, 3], np.float32)], big=550000000),
    )


@case("fold-custom", "onnxsim/onnxsim#159", "onnxsim/onnxsim#160", "onnx/optimizer#61")
def custom_op_const_inputs() -> Made:
    """A node of an unknown domain with only constant inputs was dropped as if folded. It must
    be kept, its inputs too, and folding must go on elsewhere."""
    m = model(
        [
            node("Foo", ["w"], ["f"], domain="acme.ops"),
            node("Add", ["a", "b"], ["ab"]),
            node("Mul", ["x", "ab"], ["xm"]),
            node("Add", ["xm", "f"], ["y"]),
        ],
        [value("x", FLOAT, [4])],
        [value("y", FLOAT, [4])],
        [tensor("w", random(4)), tensor("a", random(4, seed=1)), tensor("b", random(4, seed=2))],
        opsets=[helper.make_opsetid("acme.ops", 1)],
    )
    return m, {"x": random(4)}, Expected(not_run=True, operators_kept=["Foo"], max_nodes=3)


@case("fold", "onnxsim/onnxsim#525")
def range_fold() -> Made:
    """Range is defined by a function body, so a determinism test called it unfoldable and whole
    static index chains were stranded."""
    m = model(
        [
            node("Range", ["z", "n", "one"], ["r"]),
            node("Unsqueeze", ["r", "ax"], ["ru"]),
            node("Gather", ["x", "ru"], ["y"], axis=0),
        ],
        [value("x", FLOAT, [6, 2])],
        [value("y", FLOAT, [1, 4, 2])],
        [
            tensor("z", np.int64(0)),
            tensor("n", np.int64(4)),
            tensor("one", np.int64(1)),
            integers("ax", 0),
        ],
    )
    x = random(6, 2)
    return m, {"x": x}, Expected(outputs=[x[None, :4]], operators_gone=["Range", "Unsqueeze"])


@case("fold-int", "apache/tvm#20281")
def fold_int64_beyond_2p53() -> Made:
    """int64 folding through float64 is off by one above 2**53."""
    big = (1 << 53) + 1
    m = model(
        [
            node("Div", ["a", "b"], ["q"]),
            node("Sub", ["q", "d"], ["r"]),
            node("Add", ["x", "r"], ["y"]),
        ],
        [value("x", INT64, [2])],
        [value("y", INT64, [2])],
        [integers("a", big * 3, -big), integers("b", 3, 1), integers("d", 1, 1)],
    )
    return (
        m,
        {"x": np.array([0, 0], np.int64)},
        Expected(outputs=[np.array([big - 1, -big - 1], np.int64)], max_nodes=1),
    )


@case("malformed", "microsoft/onnxruntime#18648", "Xilinx/onnx-mlir#105", "apache/tvm#17745")
def div_zero_reject() -> Made:
    """Unconditional constant integer division by zero: an error, or the node left alone; never
    a crash, never an invented number."""
    m = model(
        [node("Div", ["k", "z"], ["q"]), node("Add", ["x", "q"], ["y"])],
        [value("x", INT32, [2])],
        [value("y", INT32, [2])],
        [tensor("k", np.array([7, 8], np.int32)), tensor("z", np.array([0, 2], np.int32))],
    )
    return m, {"x": np.array([3, 4], np.int32)}, Expected(rejected="integer division by zero")


@case("fold-float", "PINTO0309/onnx2tf#686")
def reassoc_sub() -> Made:
    """(200 - x) - 200 was merged as if both constants had the same sign."""
    m = model(
        [node("Sub", ["k", "x"], ["t"]), node("Sub", ["t", "k"], ["y"])],
        [value("x", FLOAT, [3])],
        [value("y", FLOAT, [3])],
        [tensor("k", np.float32(200))],
    )
    x = np.array([1, -2, 3.5], np.float32)
    return m, {"x": x}, Expected(outputs=[-x], atol=0.001)


@case("fold-float", "microsoft/onnxruntime#29788", "onnx/optimizer#262")
def fold_nan_inf_consts() -> Made:
    """NaN and infinities must pass through folding unharmed: x*0 is not 0, Max keeps NaN, x - x
    is not 0."""
    m = model(
        [
            node("Mul", ["x", "zero"], ["a"]),
            node("Sub", ["x", "x"], ["b"]),
            node("Div", ["one", "zero"], ["inf"]),
            node("Add", ["x", "inf"], ["d"]),
            node("Mul", ["nan", "x"], ["e"]),
        ],
        [value("x", FLOAT, [4])],
        [value(n, FLOAT, [4]) for n in "abde"],
        [
            tensor("zero", np.float32(0)),
            tensor("one", np.float32(1)),
            tensor("nan", np.float32(np.nan)),
        ],
    )
    x = np.array([1, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        o = [x * np.float32(0), x - x, x + np.float32(np.inf), x * np.float32(np.nan)]
    return m, {"x": x}, Expected(outputs=o)


@case("fold-size", "onnxsim/onnxsim#174", "microsoft/onnxscript#1614")
def orphan_weights() -> Made:
    """Transposing a weight by folding left the old copy behind, doubling the model."""
    w = random(256, 256)
    m = model(
        [node("Transpose", ["w"], ["wt"], perm=[1, 0]), node("MatMul", ["x", "wt"], ["y"])],
        [value("x", FLOAT, [2, 256])],
        [value("y", FLOAT, [2, 256])],
        [tensor("w", w)],
    )
    x = random(2, 256, seed=1)
    return (
        m,
        {"x": x},
        Expected(outputs=[x @ w.T], rtol=0.001, atol=0.001, max_bytes=int(256 * 256 * 4 * 1.2)),
    )


@case("scale", "inisis/OnnxSlim#88", "onnxsim/onnxsim#651")
def long_chain() -> Made:
    """Node-pair comparisons over the whole graph made large graphs take hours; 6000 nodes with
    many look-alikes should take seconds."""
    nodes, cur = ([], "x")
    for i in range(2000):
        nodes += [
            node("Relu", ["x"], [f"r{i}"]),
            node("Add", [cur, f"r{i}"], [f"a{i}"]),
            node("Identity", [f"a{i}"], [f"b{i}"]),
        ]
        cur = f"b{i}"
    nodes.append(node("Neg", [cur], ["y"]))
    m = model(nodes, [value("x", FLOAT, [2])], [value("y", FLOAT, [2])])
    x = np.array([1, -1], np.float32)
    return m, {"x": x}, Expected(outputs=[-(x + 2000 * relu(x))], rtol=0.001, max_seconds=40)


@case("malformed", "onnxsim/onnxsim#274", "inisis/OnnxSlim#321", "onnx/optimizer#133")
def unsorted_nodes() -> Made:
    """Nodes out of topological order: either a plain error or a sorted, right graph."""
    m = model(
        [node("Neg", ["r"], ["y"]), node("Relu", ["x"], ["r"])],
        [value("x", FLOAT, [2])],
        [value("y", FLOAT, [2])],
    )
    x = random(2)
    return m, {"x": x}, Expected(outputs=[-relu(x)], may_be_rejected=True)


@case("malformed", "onnxsim/onnxsim#53", "onnx/onnx#2401")
def duplicate_output_name() -> Made:
    """Two nodes writing one name break SSA: must be refused, not silently resolved."""
    m = model(
        [node("Relu", ["x"], ["t"]), node("Neg", ["x"], ["t"]), node("Abs", ["t"], ["y"])],
        [value("x", FLOAT, [2])],
        [value("y", FLOAT, [2])],
    )
    return m, {"x": random(2)}, Expected(rejected="value defined twice")


@case("op", "microsoft/onnxscript#2859", "microsoft/onnxruntime#12302")
def resize_empty_roi() -> Made:
    """Folding a constant Resize (empty roi, float scales, cubic) hung; it must end and be
    right, with the neighbouring live Resize unharmed."""
    w = random(1, 1, 3, 3)
    m = model(
        [
            node(
                "Resize",
                ["w", "roi", "sc"],
                ["k"],
                mode="cubic",
                coordinate_transformation_mode="half_pixel",
            ),
            node(
                "Resize",
                ["x", "", "", "sz"],
                ["r"],
                mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            ),
            node("Add", ["r", "k"], ["y"]),
        ],
        [value("x", FLOAT, [1, 1, 2, 2])],
        [value("y", FLOAT, [1, 1, 6, 6])],
        [
            tensor("w", w),
            tensor("roi", np.zeros(0, np.float32)),
            tensor("sc", np.array([1, 1, 2, 2], np.float32)),
            integers("sz", 1, 1, 6, 6),
        ],
    )
    return (
        m,
        {"x": random(1, 1, 2, 2, seed=1)},
        Expected(same_as_reference=True, rtol=0.001, atol=0.0001, max_seconds=15),
    )


@case("op", "apache/tvm#18135")
def cumsum_reverse_fold() -> Made:
    """CumSum with reverse and exclusive, constant operand, int axis input."""
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    m = model(
        [
            node("CumSum", ["w", "ax"], ["k"], reverse=1, exclusive=1),
            node("Add", ["x", "k"], ["y"]),
        ],
        [value("x", FLOAT, [2, 3])],
        [value("y", FLOAT, [2, 3])],
        [tensor("w", w), tensor("ax", np.int32(-1))],
    )
    x = random(2, 3)
    return (
        m,
        {"x": x},
        Expected(outputs=[x + np.array([[3, 2, 0], [9, 5, 0]], np.float32)], max_nodes=1),
    )


@case("op", "apache/tvm#18592")
def minmax_variadic_broadcast() -> Made:
    """Min and Max take any number of inputs and broadcast; a one-input Max is an identity."""
    m = model(
        [
            node("Min", ["a", "b", "k"], ["t"]),
            node("Max", ["t"], ["u"]),
            node("Max", ["u", "k2"], ["y"]),
        ],
        [value("a", FLOAT, [2, 3]), value("b", FLOAT, [1])],
        [value("y", FLOAT, [4, 2, 3])],
        [tensor("k", np.float32(0.3)), tensor("k2", random(4, 1, 1) - 1)],
    )
    a, b = (random(2, 3), np.array([0.1], np.float32))
    return (
        m,
        {"a": a, "b": b},
        Expected(
            outputs=[np.maximum(np.minimum(np.minimum(a, b), np.float32(0.3)), random(4, 1, 1) - 1)]
        ),
    )
