"""How far a result may be from ONNX Runtime's with optimisation off: the only such limits.

Error is e = max|actual - expected| / max(max|expected|, 1e-3), over one output.

* float32 models: e <= 1e-4;
* half models (float16 inside): e <= 2e-3;
* quantised models: e <= 1.5 times the spread of ONNX Runtime's own optimisation levels, since a
  last bit before a rounding moves a whole step after it; never less than the limit of float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

Kind: TypeAlias = Literal["float32", "half", "quantised"]

FLOAT32 = 1e-4
HALF = 2e-3
SPREAD_FACTOR = 1.5


def limit(kind: Kind, spread: float = 0.0) -> float:
    """The largest error allowed; `spread` is the largest error among ONNX Runtime's own levels."""
    if kind == "quantised":
        return max(FLOAT32, SPREAD_FACTOR * spread)
    return HALF if kind == "half" else FLOAT32


def error(actual: Any, expected: Any) -> float:
    """The error e of one output: tensor, sequence or map. What cannot be compared is infinite."""
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(actual) != set(expected):
            return math.inf
        return worst_error([actual[key] for key in expected], list(expected.values()))
    if isinstance(expected, list):
        return worst_error(actual, expected) if isinstance(actual, list) else math.inf
    return _tensor_error(np.asarray(actual), np.asarray(expected))


def worst_error(actual: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest error of several outputs."""
    if len(actual) != len(expected):
        return math.inf
    return max((error(a, b) for a, b in zip(actual, expected, strict=True)), default=0.0)


def _tensor_error(actual: np.ndarray, expected: np.ndarray) -> float:
    if actual.shape != expected.shape or actual.dtype.kind != expected.dtype.kind:
        return math.inf
    if expected.dtype.kind in "OUS":
        return 0.0 if np.array_equal(actual, expected) else math.inf
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return math.inf
    if not finite.any():
        return 0.0
    difference = float(np.abs(actual[finite] - expected[finite]).max())
    worst = difference / max(float(np.abs(expected[finite]).max()), 1e-3)
    return worst if math.isfinite(worst) else math.inf
