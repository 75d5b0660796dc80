"""Casts, element types, old opsets."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.failures.building import (
    BFLOAT16,
    BOOL,
    FLOAT,
    HALF,
    INT32,
    INT64,
    UINT8,
    integers,
    model,
    node,
    random,
    tensor,
    value,
)
from tests.failures.case import Expected, Made, case


@case(
    "cast",
    "microsoft/onnxruntime#28089",
    "microsoft/onnxruntime#11994",
    "microsoft/onnxruntime#4039",
)
def cast_f32_i32_bool() -> Made:
    """float->int32->bool became float->bool, so 0.2 turned true; also float->int->float
    truncates."""
    m = model(
        [
            node("Cast", ["x"], ["i"], to=INT32),
            node("Cast", ["i"], ["y"], to=BOOL),
            node("Cast", ["x"], ["j"], to=INT64),
            node("Cast", ["j"], ["z"], to=FLOAT),
        ],
        [value("x", FLOAT, [5])],
        [value("y", BOOL, [5]), value("z", FLOAT, [5])],
    )
    x = np.array([-0.2, -1.7, 0, 0.9, 2.2], np.float32)
    return (
        m,
        {"x": x},
        Expected(outputs=[x.astype(np.int32).astype(bool), x.astype(np.int64).astype(np.float32)]),
    )


@case("cast", "microsoft/onnxruntime#8787")
def cast_f32_f16_f32() -> Made:
    """float->half->float was removed even with optimisation off; it must give 0 and inf here."""
    m = model(
        [node("Cast", ["x"], ["hf"], to=HALF), node("Cast", ["hf"], ["y"], to=FLOAT)],
        [value("x", FLOAT, [3])],
        [value("y", FLOAT, [3])],
    )
    x = np.array([1e-12, 123456.7, 0.1], np.float32)
    with np.errstate(over="ignore"):
        return (
            m,
            {"x": x},
            Expected(outputs=[x.astype(np.float16).astype(np.float32)], rtol=0, atol=0),
        )


@case("cast", "microsoft/onnxruntime#17953")
def cast_i64_u8_i64() -> Made:
    """Integer round trips through narrower or unsigned types wrap; they are not no-ops."""
    m = model(
        [
            node("Cast", ["x"], ["u"], to=UINT8),
            node("Cast", ["u"], ["y"], to=INT64),
            node("Cast", ["x"], ["v"], to=TensorProto.UINT32),
            node("Cast", ["v"], ["z"], to=INT64),
        ],
        [value("x", INT64, [3])],
        [value("y", INT64, [3]), value("z", INT64, [3])],
    )
    x = np.array([-1, 300, 7], np.int64)
    return (
        m,
        {"x": x},
        Expected(
            outputs=[x.astype(np.uint8).astype(np.int64), x.astype(np.uint32).astype(np.int64)]
        ),
    )


@case("dtype", "microsoft/onnxscript#2187", "onnx/onnx#6991")
def bf16_fold() -> Made:
    """Folding bfloat16 constants produced uint16 initialisers."""
    import ml_dtypes

    a = np.array([1.5, 2.25], np.float32).astype(ml_dtypes.bfloat16)
    b = np.array([[3.0, -4.0]], np.float32).astype(ml_dtypes.bfloat16)
    ta = helper.make_tensor("a", BFLOAT16, [2], a.tobytes(), raw=True)
    tb = helper.make_tensor("b", BFLOAT16, [1, 2], b.tobytes(), raw=True)
    m = model(
        [
            node("Reshape", ["b", "n2"], ["b1"]),
            node("Concat", ["a", "b1"], ["k"], axis=0),
            node("Cast", ["k"], ["kf"], to=FLOAT),
            node("Add", ["x", "kf"], ["y"]),
            node("Cast", ["y"], ["yb"], to=BFLOAT16),
            node("Cast", ["yb"], ["z"], to=FLOAT),
        ],
        [value("x", FLOAT, [4])],
        [value("y", FLOAT, [4]), value("z", FLOAT, [4])],
        [ta, tb, integers("n2", 2)],
    )
    x = np.array([0, 0.1, 0.2, 0.3], np.float32)
    y = x + np.array([1.5, 2.25, 3, -4], np.float32)
    return m, {"x": x}, Expected(outputs=[y, y.astype(ml_dtypes.bfloat16).astype(np.float32)])


@case("opset", "onnx/onnx#4060", "onnx/onnx#2873")
def old_opset_attrs() -> Made:
    """Opset 9/10 style attributes (Slice, Squeeze, Unsqueeze, Clip, Pad, ReduceSum, BN,
    Dropout): folding and fusing must use the version in force, not today's."""
    m = model(
        [
            node("Unsqueeze", ["x"], ["u"], axes=[0]),
            node("Slice", ["u"], ["s"], axes=[2], starts=[1], ends=[3]),
            node("Clip", ["s"], ["cl"], min=-0.5, max=0.5),
            node("Pad", ["cl"], ["p"], pads=[0, 1, 0, 0, 0, 1], value=2.0),
            node("Dropout", ["p"], ["dr"], ratio=0.5),
            node("ReduceSum", ["dr"], ["r"], axes=[1], keepdims=0),
            node("Squeeze", ["r"], ["y"], axes=[0]),
            node("Unsqueeze", ["w"], ["wu"], axes=[1]),
            node("Squeeze", ["wu"], ["ws"], axes=[1]),
            node("Add", ["y", "ws"], ["z"]),
        ],
        [value("x", FLOAT, [3, 4])],
        [value("z", FLOAT, [3])],
        [tensor("w", np.array([1, 2, 3], np.float32))],
        opset=9,
        ir=4,
    )
    x = random(3, 4)
    s = np.clip(x[None, :, 1:3], -0.5, 0.5)
    p = np.pad(s, ((0, 0), (1, 0), (0, 1)), constant_values=2.0)
    return m, {"x": x}, Expected(outputs=[p.sum(1)[0] + np.array([1, 2, 3], np.float32)])
