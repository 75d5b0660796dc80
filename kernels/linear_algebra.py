"""Einsum 12/28 and Det 11/22."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels.precision import widening, widening_maker
from foldline.kernels.registry import Array, Operand, kernel, maker


@maker("Einsum", grade="reference")
@widening_maker
def einsum(*operands: Operand, equation: str, out: Array | None = None) -> Callable[..., Array]:
    """Einsum 12/28: NumPy's, with the order of contraction chosen once, from the shapes.

    NumPy and ONNX agree on the notation: spaces are ignored, an output that is not stated has the
    dimensions of the ellipsis first and then, sorted, the labels that occur once.
    """
    shapes = [np.broadcast_to(np.zeros((), x.dtype), x.shape) for x in operands]
    path, _ = np.einsum_path(equation, *shapes, optimize=True)

    def run(*arrays: Array, out: Array | None = None) -> Array:
        result = np.asarray(np.einsum(equation, *arrays, optimize=path))
        if out is not None:
            np.copyto(out, result)
            return out
        return result if result.flags.owndata else result.copy()

    return run


@kernel("Det")
@widening
def det(x: Array) -> Array:
    """Det 11/22: the determinant of each matrix in X `(..., n, n)`."""
    return np.asarray(np.linalg.det(x))
