"""How models with golden bits are made: text, weights and inputs.

Numbers come from integers by exact operations, so they are the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

Feed = dict[str, Any]
OTHERS = {"ai.onnx.ml": 3, "com.microsoft": 1}


@dataclass(frozen=True)
class Golden:
    """A model and what it is run on."""

    model: onnx.ModelProto
    feed: Feed


def numbers(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Numbers between -1 and 1 with 16 random bits, from a linear congruential generator."""
    state = np.uint64(seed * 2654435761 + 12345)
    count = int(np.prod(shape))
    values = np.empty(count, np.float64)
    for index in range(count):
        state = np.uint64((int(state) * 6364136223846793005 + 1442695040888963407) % (1 << 64))
        values[index] = (int(state) >> 48) / 32768 - 1
    return values.reshape(shape).astype(dtype)


def odd(seed: int, *shape: int) -> np.ndarray:
    """Such numbers with NaN of several payloads, infinities, zeros and subnormals among them."""
    values = numbers(seed, *shape) * np.float32(4)
    bits = values.reshape(-1).view(np.uint32)
    special = (0x7FC00001, 0xFFC00000, 0x7F800000, 0xFF800000, 0x80000000, 0, 1, 0x807FFFFF)
    for index, pattern in enumerate(special):
        bits[(7 * index + 3) % len(bits)] = pattern
    return values


def made(opset: int, graph: str, feed: Feed, **weights: np.ndarray) -> Golden:
    """A model of a graph in ONNX's text, with its weights and what it is run on."""
    imports = ", ".join(f'"{d}" : {v}' for d, v in {"": opset, **OTHERS}.items())
    model = parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]>\n{graph}")
    if opset < 23:
        model.ir_version = 8
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    model.graph.initializer.extend(tensors)
    return Golden(model, feed)
