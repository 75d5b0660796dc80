"""The fused RotaryEmbedding: pairs of elements turned by angles given as cosines and sines.

    Y = X * C + turned(X) * S        turned: (a, b) -> (-b, a) for each pair

A pair is an element of the first half of the last axis and its counterpart in the second, or two
neighbours where `interleaved`. C and S broadcast against X, so that an element of a pair has its
own numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array, Operand, kernel, maker
from foldline.kernels.windows import even_spans

TILE_BYTES = 256 << 10


@kernel("RotaryEmbedding", domain="foldline")
def fused_rotary_reference(
    x: Array, c: Array, s: Array, *, interleaved: int = 0, out: Array | None = None
) -> Array:
    """RotaryEmbedding of the fused dialect, as the operators it stands for compute it."""
    first, second = _pairs(x.shape[-1], interleaved)
    turned = np.empty_like(x)
    turned[..., first], turned[..., second] = -x[..., second], x[..., first]
    return np.asarray(np.add(x * c, turned * s, out=out))


@maker("RotaryEmbedding", domain="foldline")
def fused_rotary(
    x: Operand, c: Operand, s: Operand, *, interleaved: int = 0, out: Array | None = None
) -> Callable[..., Any]:
    """The same without a turned copy, in tiles; to the bit, but for signs of NaN.

    The reference where cosines or sines enlarge X.
    """
    if np.broadcast_shapes(x.shape, c.shape, s.shape) != x.shape or not x.shape:
        return partial(fused_rotary_reference, interleaved=interleaved)
    first, second = _pairs(x.shape[-1], interleaved)
    axis = int(np.argmax(x.shape[:-1])) if len(x.shape) > 1 else None
    size = int(np.prod(x.shape)) * x.dtype.itemsize
    spans = [(0, 1)] if axis is None else even_spans(x.shape[axis], -(-size // TILE_BYTES))

    def run(x: Array, c: Array, s: Array, *, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        arrays = (out, x, np.broadcast_to(c, x.shape), np.broadcast_to(s, x.shape))

        def tile(index: int) -> None:
            part = (*[slice(None)] * (axis or 0), slice(*spans[index]), ...)
            y, x, c, s = arrays if axis is None else (array[part] for array in arrays)
            np.multiply(x, c, out=y)
            y[..., first] -= x[..., second] * s[..., first]
            y[..., second] += x[..., first] * s[..., second]

        parallel_for(len(spans), tile)
        return out

    return run


def _pairs(size: int, interleaved: int) -> tuple[slice, slice]:
    """Where the first and the second elements of the pairs are."""
    if interleaved:
        return slice(0, size, 2), slice(1, size, 2)
    return slice(0, size // 2), slice(size // 2, size)
