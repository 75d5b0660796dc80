"""Float32 kernels against ONNX Runtime, unoptimised, special values included."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import foldline.kernels.activation
import foldline.kernels.arithmetic
import foldline.kernels.error_function
import foldline.kernels.unary_math  # noqa: F401
from foldline.kernels.registry import compute, find_kernel

SPECIAL = [-np.inf, np.inf, np.nan, -0.0, 0.0, 0.5, 1.5, -2.5, 88.0, -88.0, 1e-30, -1e-30, 1e30]
X = np.concatenate([SPECIAL, np.linspace(-9, 9, 300)]).astype(np.float32)

CASES = [
    *[
        (name, {})
        for name in ("Abs", "Ceil", "Floor", "Round", "Sign", "Neg", "Sqrt", "Reciprocal")
    ],
    *[(name, {}) for name in ("Exp", "Log", "Sin", "Cos", "Tan", "Tanh", "Atan", "Asinh", "Erf")],
    *[(name, {}) for name in ("Relu", "Sigmoid", "Softplus", "Softsign", "HardSwish")],
    ("Elu", {"alpha": 0.7}),
    ("Celu", {"alpha": 0.7}),
    ("Selu", {"alpha": 1.5, "gamma": 1.25}),
    ("LeakyRelu", {"alpha": 0.01}),
    ("LeakyRelu", {"alpha": -2.0}),
    ("ThresholdedRelu", {"alpha": 0.5}),
    ("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
    ("Shrink", {"lambd": 0.5, "bias": 0.25}),
    ("Gelu", {"approximate": "none"}),
    ("Gelu", {"approximate": "tanh"}),
]


def onnxruntime_result(op_type: str, opset: int, inputs: list, attributes: dict) -> np.ndarray:
    names = [f"x{i}" for i in range(len(inputs))]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)],
        "one_node",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape)
            for name, x in zip(names, inputs, strict=True)
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]


def check(op_type: str, inputs: list, attributes: dict):
    opset = 22
    version = onnx.defs.get_schema(op_type, opset).since_version
    with np.errstate(all="ignore"):
        actual = compute(find_kernel("", op_type, version), inputs, **attributes)
    expected = onnxruntime_result(op_type, opset, inputs, attributes)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(
        actual, expected, rtol=2e-6, atol=1e-6 if op_type == "Gelu" else 2e-7
    )


@pytest.mark.parametrize(("op_type", "attributes"), CASES)
def test_unary(op_type, attributes):
    check(op_type, [X], attributes)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"])
def test_binary(op_type):
    x, y = (np.ascontiguousarray(side) for side in np.meshgrid(X[:40], X[:40]))
    if op_type in ("Max", "Min"):  # the runtime's own answer depends on which operand is NaN
        x, y = np.nan_to_num(x), np.nan_to_num(y)
    check(op_type, [x, y], {})
