"""Operators that accumulate along an axis: CumSum, CumProd."""

from __future__ import annotations

import numpy as np

from foldline.kernels.precision import working_dtype
from foldline.kernels.registry import Array, kernel


@kernel("CumSum")
def cum_sum(
    x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0, out: Array | None = None
) -> Array:
    """CumSum 11+: sums of the elements up to each one, without it if `exclusive`.

    Integers wrap around, half types accumulate in float32; `reverse` starts at the end.
    """
    return _accumulated(np.add, x, axis, exclusive, reverse, out)


@kernel("CumProd")
def cum_prod(
    x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0, out: Array | None = None
) -> Array:
    """CumProd 26: products of the elements up to each one, otherwise as CumSum."""
    return _accumulated(np.multiply, x, axis, exclusive, reverse, out)


def _accumulated(
    ufunc: np.ufunc, x: Array, axis: Array, exclusive: int, reverse: int, out: Array | None
) -> Array:
    result = np.empty(x.shape, x.dtype) if out is None else out
    along = int(axis.item())
    source, target = np.moveaxis(x, along, 0), np.moveaxis(result, along, 0)
    if reverse:
        source, target = source[::-1], target[::-1]
    if exclusive:
        target[:1] = ufunc.identity
        source, target = source[:-1], target[1:]
    wide = working_dtype(x.dtype)
    if wide == x.dtype:
        ufunc.accumulate(source, 0, wide, target)
    else:
        target[...] = ufunc.accumulate(source, 0, wide)
    return result
