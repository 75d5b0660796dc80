"""The nine light models inside the onnx wheel, as they are and with random weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
HEAVY = {"bvlc_alexnet", "densenet121", "inception_v2", "resnet50", "vgg19", "zfnet512"}
"""More than a second or two each: left out by `make test-fast`."""

_BIASES = {("Conv", 2), ("Gemm", 2), ("BatchNormalization", 2), ("BatchNormalization", 3)}


def load(name: str) -> onnx.ModelProto:
    """The model as it ships: each weight is a ConstantOfShape, so it computes a constant."""
    return onnx.load(FOLDER / f"light_{name}.onnx")


def with_random_weights(name: str, seed: int = 0) -> onnx.ModelProto:
    """The model with seeded weights as initializers, and the input of its last node an output.

    Matrices and filters are scaled as He does, scales and variances lie in 0.5 … 1.5 and biases
    are small. The last node is mostly a Softmax, which hides errors of what it is given.
    """
    model = load(name)
    graph = model.graph
    random = np.random.default_rng(seed)
    roles = {
        value: (node.op_type, index)
        for node in graph.node
        for index, value in enumerate(node.input)
    }
    for node, shape in _weights(graph):
        weight = _weight(random, shape, roles.get(node.output[0], ("", 0)))
        graph.initializer.append(numpy_helper.from_array(weight, node.output[0]))
        # below IR 4 an initializer is listed among the inputs
        graph.input.append(
            onnx.helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, shape)
        )
        graph.node.remove(node)
    _show_what_the_last_node_reads(model)
    return model


def inputs(model: onnx.ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    """One image of random numbers in 0 … 1."""
    stored = {tensor.name for tensor in model.graph.initializer}
    (image,) = (value for value in model.graph.input if value.name not in stored)
    shape = [dim.dim_value for dim in image.type.tensor_type.shape.dim]
    return {image.name: np.random.default_rng(seed).random(shape, np.float32)}


def _weights(graph: onnx.GraphProto) -> Iterator[tuple[onnx.NodeProto, list[int]]]:
    shapes = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in graph.initializer}
    for node in [node for node in graph.node if node.op_type == "ConstantOfShape"]:
        yield node, shapes[node.input[0]]


def _weight(random: np.random.Generator, shape: list[int], role: tuple[str, int]) -> np.ndarray:
    if len(shape) > 1:
        values = random.standard_normal(shape, np.float32)
        values *= np.sqrt(2.0 / np.prod(shape[1:]))
    elif role in _BIASES:
        values = random.standard_normal(shape, np.float32) * np.float32(0.1)
    else:
        values = random.uniform(0.5, 1.5, shape)
    return values.astype(np.float32)


def _show_what_the_last_node_reads(model: onnx.ModelProto) -> None:
    name = model.graph.node[-1].input[0]
    shown = onnx.shape_inference.infer_shapes(_without_data(model)).graph.value_info
    model.graph.output.extend(value for value in shown if value.name == name)


def _without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy for shape inference, without its weights (hundreds of megabytes)."""
    copy = onnx.ModelProto()
    copy.ir_version = model.ir_version
    copy.opset_import.extend(model.opset_import)
    for field in ("node", "input", "output"):
        getattr(copy.graph, field).extend(getattr(model.graph, field))
    small = (tensor for tensor in model.graph.initializer if len(tensor.dims) < 2)
    copy.graph.initializer.extend(small)
    copy.graph.name = model.graph.name
    return copy
