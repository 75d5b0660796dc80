"""RNN, GRU and LSTM against ONNX Runtime, with every attribute the conformance suite leaves out."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import foldline.kernels.lstm
import foldline.kernels.recurrent  # noqa: F401
from foldline.kernels.registry import compute, find_kernel

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, SIZE, HIDDEN = 5, 3, 4, 6


def onnxruntime_results(op_type, inputs, attributes, outputs):
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    feed = {name: x for name, x in zip(names, inputs, strict=True) if name}
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attributes)],
        "one_node",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in feed.items()
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feed)


def layer_inputs(op_type, directions):
    random = np.random.default_rng(7)

    def normal(*shape):
        return (random.standard_normal(shape) * 0.7).astype(np.float32)

    gates = GATES[op_type]
    inputs = [
        normal(STEPS, BATCH, SIZE),
        normal(directions, gates * HIDDEN, SIZE),
        normal(directions, gates * HIDDEN, HIDDEN),
        normal(directions, 2 * gates * HIDDEN),
        np.array([2, 5, 3], np.int32),
        normal(directions, BATCH, HIDDEN),
    ]
    if op_type == "LSTM":
        inputs += [normal(directions, BATCH, HIDDEN), normal(directions, 3 * HIDDEN)]
    return inputs


def check(op_type, inputs, attributes):
    outputs = 3 if op_type == "LSTM" else 2
    expected = onnxruntime_results(op_type, inputs, {"hidden_size": HIDDEN, **attributes}, outputs)
    results = compute(find_kernel("", op_type, 14), inputs, **attributes)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


CASES = [
    (op_type, direction, attributes)
    for op_type in GATES
    for direction in ("forward", "reverse", "bidirectional")
    for attributes in ({}, {"clip": 0.3})
] + [
    ("GRU", direction, {"linear_before_reset": 1, **clip})
    for direction in ("forward", "reverse", "bidirectional")
    for clip in ({}, {"clip": 0.3})
]
CASES += [("LSTM", direction, {"input_forget": 1}) for direction in ("reverse", "bidirectional")]


@pytest.mark.parametrize(("op_type", "direction", "attributes"), CASES)
@pytest.mark.parametrize("optional", ["all", "none", "lengths"])
def test_attributes_and_optional_inputs(op_type, direction, attributes, optional):
    inputs = layer_inputs(op_type, 2 if direction == "bidirectional" else 1)
    if optional == "none":
        inputs = inputs[:3]
    if optional == "lengths":
        inputs = inputs[:5]
    check(op_type, inputs, {"direction": direction, **attributes})


LISTS = {
    "RNN": [["Affine"], ["ScaledTanh"], ["LeakyRelu"], ["ThresholdedRelu"], ["HardSigmoid"],
            ["Elu"], ["Softsign"], ["Softplus"], ["Relu"], ["Sigmoid"]],
    "GRU": [["HardSigmoid", "LeakyRelu"], ["Sigmoid", "ScaledTanh"], ["Affine", "Elu"]],
    "LSTM": [["HardSigmoid", "Softsign", "ScaledTanh"], ["Sigmoid", "Elu", "Affine"]],
}  # fmt: skip
TAKES_ALPHA = {"Affine", "ScaledTanh", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu"}
TAKES_BETA = {"Affine", "ScaledTanh", "HardSigmoid"}


@pytest.mark.parametrize(
    ("op_type", "names"), [(op_type, names) for op_type in LISTS for names in LISTS[op_type]]
)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_activations_take_their_alphas_and_betas_in_order(op_type, names, direction):
    directions = 2 if direction == "bidirectional" else 1
    names = names * directions
    alphas = [0.3 + 0.1 * i for i in range(sum(n in TAKES_ALPHA for n in names))]
    betas = [0.4 + 0.1 * i for i in range(sum(n in TAKES_BETA for n in names))]
    attributes = {"direction": direction, "activations": names}
    if alphas:
        attributes["activation_alpha"] = alphas
    if betas:
        attributes["activation_beta"] = betas
    check(op_type, layer_inputs(op_type, directions), attributes)
