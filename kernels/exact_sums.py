"""Sums and products of floats over axes in exact mode: one binary tree, whatever the layout.

    n elements, h the largest power of two below n:  x[0] + x[h], x[1] + x[h + 1] …   leaves h

and so on to one element. The elements are those of a C-ordered copy with the reduced axes last.
Integers are added as NumPy does it: they wrap around, in whatever order.
"""

from __future__ import annotations

import math

import numpy as np

from foldline.kernels.exact_bits import canonical
from foldline.kernels.registry import Array

SHORT = 16
"""Groups of more elements side by side are first added as they lie: to turn them round is slow."""


def tree_sum(x: Array, axes: tuple[int, ...] | None, keepdims: bool = False) -> Array:
    """The sum over axes (None: all) in the dtype of `x`; 0 over no elements."""
    return _tree(np.add, x, axes, keepdims)


def tree_product(x: Array, axes: tuple[int, ...] | None, keepdims: bool = False) -> Array:
    """The product over axes (None: all) in the dtype of `x`; 1 over no elements."""
    return _tree(np.multiply, x, axes, keepdims)


def tree_mean(x: Array, axes: tuple[int, ...] | None, keepdims: bool = False) -> Array:
    """The sum divided by the number of elements; NaN over none."""
    total = tree_sum(x, axes, keepdims)
    count = math.prod(x.shape[axis] for axis in _axes(x, axes))
    return canonical(np.asarray(np.divide(total, np.array(count, x.dtype))))


def _axes(x: Array, axes: tuple[int, ...] | None) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(x.ndim))
    return tuple(sorted({axis % x.ndim for axis in axes}))


def _tree(ufunc: np.ufunc, x: Array, axes: tuple[int, ...] | None, keepdims: bool) -> Array:
    reduced = _axes(x, axes)
    kept = tuple(axis for axis in range(x.ndim) if axis not in reduced)
    shape = tuple(x.shape[axis] for axis in kept)
    final = tuple(1 if a in reduced else s for a, s in enumerate(x.shape)) if keepdims else shape
    count = math.prod(x.shape[axis] for axis in reduced)
    if not count:
        return np.full(final, ufunc.identity, x.dtype)
    # Whether the elements or the groups lie side by side is of no account to the result.
    if count > SHORT and reduced == tuple(range(len(kept), x.ndim)):
        x, count = _shortened(ufunc, x.reshape(*shape, count)), SHORT
        rows = np.ascontiguousarray(x.reshape(-1, SHORT).T)
    else:
        rows = x.transpose(*reduced, *kept).reshape(count, math.prod(shape))
    if count == 1:
        return canonical(rows[0].reshape(final).copy())
    half = 1 << ((count - 1).bit_length() - 1)
    total = rows[:half].copy()
    ufunc(total[: count - half], rows[half:], out=total[: count - half])
    while half > 1:
        half //= 2
        ufunc(total[:half], total[half : 2 * half], out=total[:half])
    return canonical(total[0].reshape(final).copy())


def _shortened(ufunc: np.ufunc, x: Array) -> Array:
    """The last axis brought to SHORT elements by the first steps of the tree."""
    count = x.shape[-1]
    half = 1 << ((count - 1).bit_length() - 1)
    total = x[..., :half].copy()
    ufunc(total[..., : count - half], x[..., half:], out=total[..., : count - half])
    while half > SHORT:
        half //= 2
        ufunc(total[..., :half], total[..., half : 2 * half], out=total[..., :half])
    return total[..., :SHORT]
