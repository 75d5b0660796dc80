"""Models of normalised rows, and how far their results may move."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

KINDS = {"float": np.float32, "double": np.float64, "float16": np.float16}
DIVISIONS = {
    "quotient": "r = Sqrt(a) n = Div({d}, r)",
    "reciprocal": "r = Sqrt(a) i = Reciprocal(r) n = Mul({d}, i)",
    "reversed": "r = Sqrt(a) i = Reciprocal(r) n = Mul(i, {d})",
    "one over": "r = Sqrt(a) i = Div(one, r) n = Mul({d}, i)",
    "power": "r = Pow(a, half) n = Div({d}, r)",
    "negative power": "i = Pow(a, mhalf) n = Mul({d}, i)",
}


def vector(kind: str, name: str, values: Array, shape: str = "") -> str:
    """An initializer in ONNX's text, which has half types as their bits."""
    array = np.asarray(values, KINDS[kind]).reshape(-1)
    if kind == "float16":
        array = array.view(np.uint16)
    return f"{kind}[{shape or array.size}] {name} = {{{', '.join(map(repr, array.tolist()))}}}"


def numbers(kind: str = "float", epsilon: float = 1e-5) -> str:
    """The numbers that the parts read, as initializers."""
    given = {"two": 2, "three": 3, "one": 1, "half": 0.5, "mhalf": -0.5, "zero": 0, "eps": epsilon}
    return ", ".join(vector(kind, k, np.array([v])).replace("[1]", "", 1) for k, v in given.items())


def mean(result: str, value: str, opset: int, axes: str = "-1") -> str:
    """A ReduceMean over `axes`, which are an input from operator set 18 on."""
    if opset >= 18:
        given = f"{result}_axes = Constant<value_ints = [{axes}]>()"
        return f"{given} {result} = ReduceMean({value}, {result}_axes)"
    return f"{result} = ReduceMean<axes = [{axes}]>({value})"


def row_bound(x: Array, y: Array, eps: float, count: int = 1) -> Array:
    """8 eps of the largest result of a row, times 1 + |mean| / deviation of the row."""
    axes = tuple(range(-count, 0))
    x = x.astype(np.float64)
    centre, deviation = x.mean(axes, keepdims=True), x.std(axes, keepdims=True)
    largest = np.abs(y.astype(np.float64)).max(axes, keepdims=True)
    return 8 * eps * largest * (1 + np.abs(centre) / np.maximum(deviation, 1e-6))
