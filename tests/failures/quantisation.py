"""QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np

from tests.failures.building import (
    FLOAT,
    Array,
    model,
    node,
    quantised,
    random,
    relu,
    tensor,
    value,
)
from tests.failures.case import Expected, Made, case


@case(
    "qdq",
    "microsoft/onnxruntime#11660",
    "microsoft/onnxruntime#9425",
    "microsoft/onnxruntime#22580",
)
def qdq_relu_int8() -> Made:
    """Relu (and Clip) before a signed, symmetric QuantizeLinear does real work; only with a
    zero point at the range's low end is it redundant."""
    m = model(
        [
            node("Relu", ["x"], ["r"]),
            node("QuantizeLinear", ["r", "s", "z"], ["q"]),
            node("DequantizeLinear", ["q", "s", "z"], ["y"]),
            node("Clip", ["x", "lo", "hi"], ["cl"]),
            node("QuantizeLinear", ["cl", "s", "zu"], ["q2"]),
            node("DequantizeLinear", ["q2", "s", "zu"], ["y2"]),
        ],
        [value("x", FLOAT, [5])],
        [value("y", FLOAT, [5]), value("y2", FLOAT, [5])],
        [
            tensor("s", np.float32(0.1)),
            tensor("z", np.int8(0)),
            tensor("zu", np.uint8(10)),
            tensor("lo", np.float32(0)),
            tensor("hi", np.float32(6)),
        ],
    )
    x = np.array([-3, -0.05, 0, 2.04, 9], np.float32)
    q2 = (
        quantised(np.clip(x, 0, 6), 0.1, 10, 0, 255, np.uint8).astype(np.float32) - 10
    ) * np.float32(0.1)
    return (
        m,
        {"x": x},
        Expected(outputs=[quantised(relu(x), 0.1, 0, -128, 127, np.int8) * np.float32(0.1), q2]),
    )


@case("qdq", "microsoft/onnxruntime#20187")
def qdq_relu_int16() -> Made:
    """The Relu test looked at 8-bit zero points only; int16 was dropped wrongly."""
    m = model(
        [
            node("Relu", ["x"], ["r"]),
            node("QuantizeLinear", ["r", "s", "z"], ["q"]),
            node("DequantizeLinear", ["q", "s", "z"], ["y"]),
        ],
        [value("x", FLOAT, [4])],
        [value("y", FLOAT, [4])],
        [tensor("s", np.float32(0.01)), tensor("z", np.int16(0))],
        opset=21,
        ir=10,
    )
    x = np.array([-3, -0.05, 1.5, 9], np.float32)
    return (
        m,
        {"x": x},
        Expected(outputs=[quantised(relu(x), 0.01, 0, -32768, 32767, np.int16) * np.float32(0.01)]),
    )


@case("qdq", "microsoft/onnxruntime#25259")
def qdq_double_pair() -> Made:
    """Q-DQ-Q-DQ with different scales requantises; the inner pair is not redundant."""
    m = model(
        [
            node("QuantizeLinear", ["x", "s1", "z"], ["q1"]),
            node("DequantizeLinear", ["q1", "s1", "z"], ["d1"]),
            node("QuantizeLinear", ["d1", "s2", "z2"], ["q2"]),
            node("DequantizeLinear", ["q2", "s2", "z2"], ["y"]),
        ],
        [value("x", FLOAT, [6])],
        [value("y", FLOAT, [6])],
        [
            tensor("s1", np.float32(0.5)),
            tensor("z", np.int8(0)),
            tensor("s2", np.float32(0.25)),
            tensor("z2", np.int8(3)),
        ],
    )
    x = np.array([-80, -1.1, -0.3, 0.24, 0.9, 40], np.float32)
    d1 = quantised(x, 0.5, 0, -128, 127, np.int8) * np.float32(0.5)
    return (
        m,
        {"x": x},
        Expected(
            outputs=[
                (quantised(d1, 0.25, 3, -128, 127, np.int8).astype(np.float32) - 3)
                * np.float32(0.25)
            ]
        ),
    )


@case("qdq", "microsoft/onnxruntime#32132")
def qdq_add_one_step() -> Made:
    """Fused integer add or average pool may differ by at most one quantisation step; more is
    wrong."""
    s = np.float32(0.1)
    m = model(
        [
            node("QuantizeLinear", ["a", "s", "z"], ["qa"]),
            node("DequantizeLinear", ["qa", "s", "z"], ["da"]),
            node("QuantizeLinear", ["b", "s", "z"], ["qb"]),
            node("DequantizeLinear", ["qb", "s", "z"], ["db"]),
            node("Add", ["da", "db"], ["f"]),
            node("QuantizeLinear", ["f", "so", "z"], ["qo"]),
            node("DequantizeLinear", ["qo", "so", "z"], ["y"]),
        ],
        [value("a", FLOAT, [64]), value("b", FLOAT, [64])],
        [value("y", FLOAT, [64])],
        [tensor("s", s), tensor("so", np.float32(0.3)), tensor("z", np.uint8(128))],
    )
    a, b = (random(64) * 4, random(64, seed=1) * 4)

    def rounded(v: Array, scale: np.float32) -> Array:
        return (quantised(v, scale, 128, 0, 255, np.uint8).astype(np.float32) - 128) * scale

    y = rounded(rounded(a, s) + rounded(b, s), np.float32(0.3))
    return m, {"a": a, "b": b}, Expected(outputs=[y], atol=0.301)


@case("qdq", "onnx/onnx#3744")
def qlinear_empty_zero_point() -> Made:
    """Trailing optional input given as an empty name: QuantizeLinear then means uint8 with zero
    0."""
    m = model(
        [
            node("QuantizeLinear", ["x", "s", ""], ["q"]),
            node("DequantizeLinear", ["q", "s", ""], ["y"]),
        ],
        [value("x", FLOAT, [4])],
        [value("y", FLOAT, [4])],
        [tensor("s", np.float32(0.5))],
        opset=13,
    )
    x = np.array([-1, 0.3, 2.2, 200], np.float32)
    return m, {"x": x}, Expected(outputs=[quantised(x, 0.5, 0, 0, 255, np.uint8) * np.float32(0.5)])
