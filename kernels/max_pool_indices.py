"""MaxPool's second output, and MaxUnpool 9/11/22 which reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.registry import Array, kernel
from foldline.kernels.windows import Window


def max_pool_with_indices(
    x: Array, window: Window, storage_order: int = 0, out: Array | None = None
) -> tuple[Array, Array]:
    """The maxima of X `(batch, channels, *spatial)` and where each was found, as int64.

    An index counts elements of the whole of X; inside a plane in row-major order, or column-major
    if `storage_order` is 1. The first of equal maxima wins, and NaN over everything. A window that
    lies in the padding entirely has index -1.
    """
    shape = (*x.shape[:2], *window.output)
    best = np.empty(shape, x.dtype) if out is None else out
    best.fill(-math.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min))
    indices = np.full(shape, -1, np.int64)
    where = _positions(x.shape, storage_order)
    for tap in window.taps():
        into, seen = window.hits_of(tap)
        values, held = x[seen], best[into]
        # Not (values <= held) is also true for a NaN among the values.
        better = (~(values <= held) & (held == held)) | (indices[into] < 0)
        np.copyto(held, values, where=better)
        np.copyto(indices[into], where[seen], where=better)
    return best, indices


def _positions(shape: tuple[int, ...], storage_order: int) -> Array:
    spatial = shape[2:]
    size = math.prod(spatial)
    plane = np.arange(size, dtype=np.int64).reshape(spatial, order="F" if storage_order else "C")
    planes = np.arange(shape[0] * shape[1], dtype=np.int64) * size
    return planes.reshape(*shape[:2], *(1,) * len(spatial)) + plane


@kernel("MaxUnpool", exact=True)
def max_unpool(
    x: Array,
    indices: Array,
    output_shape: Array | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """MaxUnpool 9/11/22: put each value of X back where MaxPool found it, zero elsewhere.

    The indices count elements of the smallest tensor the pooling could have read; `output_shape`
    may ask for a larger one, whose start that tensor then is.
    """
    rank = len(kernel_shape)
    pads = tuple(pads or (0,) * (2 * rank))
    strides = tuple(strides or (1,) * rank)
    inferred = (
        *x.shape[:2],
        *(
            (x.shape[a + 2] - 1) * strides[a] + kernel_shape[a] - pads[a] - pads[a + rank]
            for a in range(rank)
        ),
    )
    flat = np.zeros(math.prod(inferred), x.dtype)
    flat[indices.reshape(-1)] = x.reshape(-1)
    result = flat.reshape(inferred)
    if output_shape is None:
        return result
    full = np.zeros(tuple(output_shape.tolist()), x.dtype)
    full[tuple(map(slice, inferred))] = result
    return full
