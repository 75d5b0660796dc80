"""Weights that are held in a half type while a model runs, and widened whenever they are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from foldline.dialects.onnx.tensor import TensorAttr

COMPACT = "fold.compact"
"""A constant that will be held in a half type."""

STORAGE: Mapping[str, np.dtype[Any]] = {
    "Binary16": np.dtype(np.float16),
    "BFloat16": np.dtype(ml_dtypes.bfloat16),
}
"""What the option `weightStorage` can say beside Float32."""

LEAST_ELEMENTS = 1024
"""Smaller weights are left as they are."""

WEIGHTS: Mapping[tuple[str, str], int] = {
    ("", "Conv"): 1,
    ("", "Gemm"): 1,
    ("", "MatMul"): 1,
    ("foldline", "Conv"): 1,
}
"""Operators that take weights, and the input that is them."""


def rounded_weights(tensor: TensorAttr, storage: np.dtype[Any]) -> TensorAttr | None:
    """The tensor rounded to a half type; None for one that is not worth it or does not stay finite.

    A weight is worth it if it has 1024 elements of float32 or more and is no splat.
    """
    array = tensor.array
    if array.dtype != np.float32 or array.size < LEAST_ELEMENTS or tensor.data.is_splat:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = array.astype(storage)
    return TensorAttr.of(rounded) if np.isfinite(rounded).all() else None


def mark_compact(op: Operation) -> None:
    """Note that a constant will be held in a half type."""
    op.attributes[COMPACT] = UnitAttr()


def clear_compact(op: Operation) -> None:
    """Take the note back."""
    op.attributes.pop(COMPACT, None)


def is_compact(value: SSAValue) -> bool:
    """Whether a value is a constant that will be held in a half type."""
    return isinstance(value.owner, Operation) and COMPACT in value.owner.attributes
