"""Graphs of nodes with weights, and what folding into weights is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import Array, nodes

Node = tuple[Any, ...]
"""Operator, inputs, outputs, and maybe attributes."""


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    """Seeded random numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def model(
    graph: Sequence[Node],
    weights: Mapping[str, Array],
    inputs: Mapping[str, Sequence[Any]],
    opset: int = 21,
    outputs: Sequence[str] = ("y",),
    element: int = onnx.TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A model of nodes, initializers by name and the shapes of inputs by name."""
    made = [
        helper.make_node(op, given.split(), results.split(), **dict(rest[0] if rest else {}))
        for op, given, results, *rest in graph
    ]
    listed = [helper.make_tensor_value_info(n, element, list(s)) for n, s in inputs.items()]
    ir_version = 8 if opset > 8 else 4
    proto = helper.make_graph(
        made,
        "g",
        listed,
        [helper.make_tensor_value_info(name, element, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    return helper.make_model(
        proto, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version
    )


def module(*given: Any, **keywords: Any) -> ModuleOp:
    """The same, imported and typed."""
    imported = import_model(model(*given, **keywords), [])
    InferShapes().run(PassContext(imported))
    return imported


def only(given: ModuleOp, op_type: str) -> NodeOp:
    """The only node of an operator."""
    (found,) = (op for op in nodes(given) if op.op_type == op_type)
    return found


def operand(op: NodeOp, place: int) -> Array:
    """The value of a constant operand."""
    tensor = constant_tensor(op.operands[place])
    assert tensor is not None
    return tensor.array


def statistics(count: int, seed: int = 7, dtype: Any = np.float32) -> dict[str, Array]:
    """gamma, beta, mean, var of a BatchNormalization."""
    random = np.random.default_rng(seed)
    return {
        "gamma": random.uniform(0.5, 1.5, count).astype(dtype),
        "beta": random.standard_normal(count).astype(dtype),
        "mean": random.standard_normal(count).astype(dtype),
        "var": random.uniform(0.1, 2, count).astype(dtype),
    }


def factor(given: Mapping[str, Array], epsilon: float = 1e-5) -> Array:
    """What a BatchNormalization multiplies by, in float64."""
    wide = {name: array.astype(np.float64) for name, array in given.items()}
    return wide["gamma"] / np.sqrt(wide["var"] + float(np.float32(epsilon)))


def check_bits(found: Array, wanted: Array) -> None:
    """Type, shape and every bit are the same."""
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    stored = [np.ascontiguousarray(array).view(np.uint8) for array in (found, wanted)]
    np.testing.assert_array_equal(*stored)
