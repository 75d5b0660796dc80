"""A model for each pass of the specification of runtime rewrites, and its digests in both modes.

Sizes are such that kernels cut them into tiles. Run it to see the digests of this process.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

import foldline
from tests.stages.passes.fusion.graphs import Node, model, normal

Array = np.ndarray
MODES = ("fast", "exact")


@dataclass(frozen=True)
class Sample:
    """A model that a pass has something to do in, and what it is fed."""

    proto: onnx.ModelProto
    feed: Mapping[str, Array]


def _sample(
    graph: list[Node],
    weights: Mapping[str, Array],
    feed: Mapping[str, Array],
    opset: int = 20,
    element: int = onnx.TensorProto.FLOAT,
) -> Sample:
    shapes = {name: value.shape for name, value in feed.items()}
    return Sample(model(graph, weights, shapes, opset, ("y",), element), feed)


def _codes(*shape: int, dtype: Any, seed: int = 0) -> Array:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def qdq() -> Sample:
    scales = {"s": 0.02, "ws": 0.004, "ys": 0.05}
    weights = {name: np.float32(value) for name, value in scales.items()}
    weights |= {"z": np.uint8(120), "wz": np.int8(0), "yz": np.uint8(100)}
    weights["w"] = _codes(24, 8, 3, 3, dtype=np.int8)
    graph: list[Node] = [
        ("QuantizeLinear", "x s z", "q"),
        ("DequantizeLinear", "q s z", "d"),
        ("DequantizeLinear", "w ws wz", "v"),
        ("Conv", "d v", "c", {"pads": [1, 1, 1, 1]}),
        ("QuantizeLinear", "c ys yz", "r"),
        ("DequantizeLinear", "r ys yz", "y"),
    ]
    return _sample(graph, weights, {"x": normal(1, 8, 20, 20)}, 13)


def matmul_integer_fusion() -> Sample:
    graph: list[Node] = [
        ("DynamicQuantizeLinear", "x", "q s z"),
        ("MatMulInteger", "q w z", "i"),
        ("Cast", "i", "f", {"to": 1}),
        ("Mul", "s ws", "scale"),
        ("Mul", "f scale", "p"),
        ("Add", "b p", "y"),
    ]
    weights = {"w": _codes(256, 160, dtype=np.int8), "ws": np.float32(0.01), "b": normal(160)}
    return _sample(graph, weights, {"x": normal(96, 256)})


def constant_folding() -> Sample:
    graph: list[Node] = [("Exp", "w", "e"), ("Erf", "e", "f"), ("Mul", "x f", "y")]
    return _sample(graph, {"w": normal(64, 64)}, {"x": normal(64, 64, seed=1)})


def conv_batchnorm_fold() -> Sample:
    graph: list[Node] = [
        ("Conv", "x w", "c", {"pads": [1, 1, 1, 1]}),
        ("BatchNormalization", "c g b m v", "y"),
    ]
    weights = {"w": normal(24, 16, 3, 3), "v": np.abs(normal(24, seed=5)) + np.float32(0.5)}
    weights |= {name: normal(24, seed=i) for i, name in enumerate("gbm", 1)}
    return _sample(graph, weights, {"x": normal(1, 16, 40, 40)})


def gelu() -> Sample:
    graph: list[Node] = [
        ("Div", "x root", "d"),
        ("Erf", "d", "e"),
        ("Add", "e one", "a"),
        ("Mul", "x a", "m"),
        ("Mul", "m half", "y"),
    ]
    weights = {"root": np.float32(np.sqrt(2)), "one": np.float32(1), "half": np.float32(0.5)}
    return _sample(graph, weights, {"x": normal(300, 400) * np.float32(2)}, 17)


def attention() -> Sample:
    graph: list[Node] = [
        ("Transpose", "k", "t", {"perm": [0, 1, 3, 2]}),
        ("MatMul", "q t", "p"),
        ("Mul", "p scale", "s"),
        ("Add", "s mask", "a"),
        ("Softmax", "a", "w", {"axis": -1}),
        ("MatMul", "w v", "y"),
    ]
    feed = {name: normal(2, 4, 96, 32, seed=i) for i, name in enumerate("qkv")}
    weights = {"scale": np.float32(0.18), "mask": normal(96, 96, seed=9)}
    return _sample(graph, weights, feed, 17)


def linear_pack_fuse() -> Sample:
    graph: list[Node] = [("MatMul", "x w", "p"), ("Add", "p b", "a"), ("Relu", "a", "y")]
    return _sample(graph, {"w": normal(300, 400), "b": normal(400)}, {"x": normal(200, 300)})


def conv_activation() -> Sample:
    graph: list[Node] = [
        ("Conv", "x w b", "c", {"pads": [1, 1, 1, 1]}),
        ("HardSwish", "c", "y"),
    ]
    weights = {"w": normal(24, 16, 3, 3), "b": normal(24)}
    return _sample(graph, weights, {"x": normal(1, 16, 40, 40)})


SAMPLES: dict[str, Callable[[], Sample]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        qdq,
        matmul_integer_fusion,
        constant_folding,
        conv_batchnorm_fold,
        gelu,
        attention,
        linear_pack_fuse,
        conv_activation,
    )
}
"""In the order in which the passes run."""


def outputs(sample: Sample, runs: int = 1, threads: int = 1, **options: Any) -> list[list[Array]]:
    """What each of some runs of one session gives."""
    given = {name.replace("_", "."): value for name, value in options.items()}
    session = foldline.compile(sample.proto, options=given).session(threads=threads)
    return [session.run(None, dict(sample.feed)) for _ in range(runs)]


def digest(results: list[Array]) -> str:
    """The sha256 of the bytes of arrays."""
    return hashlib.sha256(b"".join(x.tobytes() for x in results)).hexdigest()


def digests() -> dict[str, str]:
    """Of the first run of each model, in each mode."""
    return {
        f"{name} {mode}": digest(outputs(make(), mode=mode)[0])
        for name, make in SAMPLES.items()
        for mode in MODES
    }


if __name__ == "__main__":
    print(json.dumps(digests()))
