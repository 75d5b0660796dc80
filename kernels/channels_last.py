"""Arrays `(batch, channels, height, width)` whose channels are innermost in memory.

Such an array has the shape that ONNX says and other strides: only who allocates it and who
computes on it need to know. Convolutions and pools read and write a pixel's channels as one
contiguous run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from mmap import mmap
from typing import Any

import numpy as np

from foldline.kernels.registry import Array

RANK = 4
LEAST_MAPPED = 128 << 10
"""Bytes of an array that is worth memory of its own from the system."""


def pixels(array: Array) -> Array:
    """The array seen as `(batch, height, width, channels)`."""
    return array.transpose(0, 2, 3, 1)


def is_channels_last(array: Array) -> bool:
    """Whether channels are innermost, and not in C order as well (a single pixel or channel)."""
    return (
        array.ndim == RANK
        and not array.flags.c_contiguous
        and bool(pixels(array).flags.c_contiguous)
    )


def channels_last(memory: Array, shape: Sequence[int]) -> Array:
    """`memory`, a contiguous array of as many elements, as an array of `shape`."""
    batch, channels, height, width = shape
    return memory.reshape(batch, height, width, channels).transpose(0, 3, 1, 2)


def contiguous_pixels(array: Array, scratch: Array, start: int) -> Array:
    """`pixels(array)` where that is contiguous, else scratch of that shape from byte `start` on."""
    seen = pixels(array)
    if seen.flags.c_contiguous:
        return seen
    return np.ndarray(seen.shape, seen.dtype, scratch, start)


def deliver(result: Array, out: Array) -> Array:
    """`out`, after what `contiguous_pixels` gave was copied there if need be."""
    seen = pixels(out)
    if not seen.flags.c_contiguous:
        np.copyto(seen, result)
    return out


def zeros(shape: Sequence[int], dtype: np.dtype[Any], is_last: bool) -> Array:
    """Zeros of a shape, in channels-last or in C order; untouched they take no memory."""
    size = math.prod(shape) * dtype.itemsize
    if size < LEAST_MAPPED:
        memory = np.zeros(math.prod(shape), dtype)
    else:
        # An allocator clears memory that it has had before, and what is cleared is in use.
        memory = np.frombuffer(mmap(-1, size), np.uint8).view(dtype)
    return channels_last(memory, shape) if is_last else memory.reshape(shape)
