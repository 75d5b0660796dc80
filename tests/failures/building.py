"""Short ways to write small models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]

FLOAT, DOUBLE, HALF = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16
BFLOAT16 = TensorProto.BFLOAT16
INT8, UINT8, INT16 = TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16
INT32, INT64 = TensorProto.INT32, TensorProto.INT64
BOOL, STRING = TensorProto.BOOL, TensorProto.STRING


def random(*shape: int, seed: int = 0, dtype: npt.DTypeLike = np.float32) -> Array:
    """Normally distributed numbers."""
    return np.random.RandomState(seed).randn(*shape).astype(dtype)


def relu(x: Array) -> Array:
    """Nothing below zero; NaN stays."""
    return np.maximum(x, 0)


def quantised(x: Array, scale: Any, zero: int, low: int, high: int, dtype: npt.DTypeLike) -> Array:
    """QuantizeLinear of one scale."""
    return np.clip(np.rint(x / scale) + zero, low, high).astype(dtype)


def statistics(channels: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Scale, bias, mean and variance of a BatchNormalization."""
    scale, bias, mean, variance = (random(channels, seed=seed + i) for i in range(1, 5))
    return scale, bias, mean, np.abs(variance) + 0.5


def batch_normalised(
    x: Array, scale: Array, bias: Array, mean: Array, variance: Array, epsilon: float
) -> Array:
    """BatchNormalization over axis 1, at inference."""
    shape = [1, -1, *[1] * (x.ndim - 2)]
    s, b, m, v = (array.reshape(shape) for array in (scale, bias, mean, variance))
    return s * (x - m) / np.sqrt(v + epsilon) + b


def statistics_tensors(arrays: Sequence[Array]) -> list[onnx.TensorProto]:
    """Initializers `s`, `b`, `mu`, `va`."""
    return [tensor(name, array) for name, array in zip(("s", "b", "mu", "va"), arrays, strict=True)]


def tensor(name: str, values: npt.ArrayLike) -> onnx.TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(values), name)


def integers(name: str, *values: int) -> onnx.TensorProto:
    """An initializer of int64."""
    return tensor(name, np.array(values, np.int64))


def value(name: str, element: int, dims: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    """A declaration of an input or output; without dims the rank is open."""
    return helper.make_tensor_value_info(name, element, dims)


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any
) -> onnx.NodeProto:
    """A node."""
    return helper.make_node(op_type, inputs, outputs, name=name, **attributes)


def subgraph(
    nodes: Iterable[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Iterable[onnx.ValueInfoProto],
    initializers: Iterable[onnx.TensorProto] = (),
) -> onnx.GraphProto:
    """A body of control flow."""
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs), list(initializers))


def model(
    nodes: Iterable[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Iterable[onnx.ValueInfoProto],
    initializers: Iterable[onnx.TensorProto] = (),
    *,
    opset: int = 17,
    ir: int = 8,
    functions: Sequence[onnx.FunctionProto] = (),
    opsets: Sequence[onnx.OperatorSetIdProto] = (),
    value_info: Sequence[onnx.ValueInfoProto] = (),
) -> onnx.ModelProto:
    """A model; outputs whose dims were left open get the inferred ones."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        list(inputs),
        list(outputs),
        list(initializers),
        value_info=value_info,
    )
    imports = [helper.make_opsetid("", opset), *opsets]
    made = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=ir)
    if any(not output.type.tensor_type.HasField("shape") for output in graph.output):
        inferred = onnx.shape_inference.infer_shapes(made).graph.output
        for output, found in zip(made.graph.output, inferred, strict=True):
            output.CopyFrom(found)
    return made
