"""Models made for the bench, beside those of the zoo: what no model of the zoo shows by itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from benchmarks.common import RESULTS, selected_models
from benchmarks.zoo import model_path
from benchmarks.zoo_inputs import make_inputs

SMALL_OPERATORS = (
    *("Add", "Relu", "Mul", "Sub", "Add"),
    *("Sigmoid", "Mul", "Relu", "Sub", "Mul"),
)
"""One round of the chain; Sigmoid is what takes NumPy more than one call."""


def chain_500() -> tuple[ModelProto, dict[str, Any]]:
    """500 small operators in a row, half of them on 16 elements and half on 256; with inputs."""
    nodes = 500
    random = np.random.default_rng(0)
    graph = onnx.GraphProto(name="chain_500")
    graph.input.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, [16]))
    value, shape = "v", [16]
    for index, op_type in enumerate(islice(cycle(SMALL_OPERATORS), nodes)):
        shape = [16] if index < nodes // 2 else [16, 16]
        operands = [value]
        if op_type in ("Add", "Sub", "Mul"):
            constant = random.uniform(0.5, 1.5, shape).astype(np.float32)
            graph.initializer.append(numpy_helper.from_array(constant, f"c{index}"))
            operands.append(f"c{index}")
        value = f"v{index}"
        graph.node.append(helper.make_node(op_type, operands, [value]))
    graph.output.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, shape))
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return model, {"v": random.standard_normal(16).astype(np.float32)}


SYNTHETIC: dict[str, Callable[[], tuple[ModelProto, dict[str, Any]]]] = {"chain_500": chain_500}


def bench_models(only: str) -> list[str]:
    """The models to time: those named with commas between, by default all there are."""
    wanted = [name for name in only.split(",") if name]
    made = [name for name in SYNTHETIC if name in wanted or not wanted]
    fetched = ",".join(name for name in wanted if name not in SYNTHETIC)
    return [*(selected_models(fetched) if fetched or not wanted else []), *made]


def bench_path(model_id: str) -> Path:
    """The file of a model; a synthetic one is written first."""
    if model_id not in SYNTHETIC:
        return model_path(model_id)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{model_id}.onnx"
    path.write_bytes(SYNTHETIC[model_id]()[0].SerializeToString())
    return path


def bench_inputs(model_id: str, **dims: int) -> dict[str, Any]:
    """The inputs of a model, by name; `dims` are sizes for those of the zoo that have them."""
    return SYNTHETIC[model_id]()[1] if model_id in SYNTHETIC else make_inputs(model_id, **dims)
