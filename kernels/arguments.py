"""Conversions of operator arguments that kernels of many categories share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.registry import Array


def ints(values: Array | Sequence[int]) -> tuple[int, ...]:
    """Python integers of an INTS attribute or of an integer tensor of any shape, in order."""
    return tuple(np.asarray(values).reshape(-1).tolist())


def zero_of(dtype: np.dtype[Any]) -> Any:
    """What ONNX fills with by default: 0, False, or the empty string."""
    return "" if dtype == np.object_ else dtype.type(0)


def copy_of(data: Array, out: Array | None) -> Array:
    """`data` in memory that may be written: `out` when given (it may be `data`), else a copy."""
    if out is None:
        return data.copy()
    if out is not data:
        np.copyto(out, data)
    return out


def nonnegative(indices: Array, size: int, axis: int) -> npt.NDArray[np.intp]:
    """Indices into an axis of `size`, those below zero counted from its end.

    Raises IndexError with the first offending value, the axis and its bounds.
    """
    if indices.dtype == np.int64 and (indices.view(np.uint64) < size).all():
        # One comparison for both bounds: most indices are right, and looked up one at a time.
        return indices
    wrong = (indices < -size) | (indices >= size)
    if wrong.any():
        raise IndexError(
            f"index {indices[wrong].flat[0]} is out of bounds for axis {axis}, "
            f"which accepts {-size} to {size - 1}"
        )
    return np.where(indices < 0, indices + size, indices).astype(np.intp, copy=False)
