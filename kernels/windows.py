"""Geometry of sliding windows, shared by convolution, pooling and their inverses.

Everything here is about shapes: it runs when a kernel is made, never per element. "Spatial" axes
are those after batch and channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array

Index = tuple[slice, ...]

LANES = 4
"""Tiles in flight at most; each has scratch of its own. Fixed, so that plans never depend on the
number of threads."""


@dataclass(frozen=True)
class Window:
    """A window sliding over the spatial axes; every field has one entry an axis."""

    spatial: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    """Padding at the start of each axis."""
    after: tuple[int, ...]
    """Padding at the end, as the node states it; a window may still reach past it (ceil_mode)."""
    output: tuple[int, ...]
    """How many positions the window takes."""

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.spatial)

    @property
    def extent(self) -> tuple[int, ...]:
        """Input elements from the first tap to the last, both included."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def taps(self) -> Iterator[tuple[int, ...]]:
        """Every position inside the kernel, in C order."""
        return product(*map(range, self.kernel))

    def hits(self, axis: int, tap: int) -> tuple[slice, slice]:
        """The outputs along `axis` whose `tap` is inside the input, and the inputs they read."""
        stride = self.strides[axis]
        shift = tap * self.dilations[axis] - self.before[axis]
        first = max(0, -(shift // stride))
        last = min(self.output[axis], (self.spatial[axis] - 1 - shift) // stride + 1)
        if first >= last:
            return slice(0, 0), slice(0, 0)
        start = first * stride + shift
        return slice(first, last), slice(start, (last - 1) * stride + shift + 1, stride)

    def hits_of(self, tap: tuple[int, ...]) -> tuple[Index, Index]:
        """`hits` of every axis, after two full slices for batch and channel."""
        pairs = [self.hits(axis, position) for axis, position in enumerate(tap)]
        both = (slice(None), slice(None))
        return (*both, *(a for a, _ in pairs)), (*both, *(b for _, b in pairs))


def sliding_window(
    spatial: Sequence[int],
    kernel: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Window:
    """Apply ONNX's rules for pads, `auto_pad` and `ceil_mode` (Conv, MaxPool, AveragePool, LpPool).

    A last window that would start in the padding at the end is dropped. VALID means no padding.
    Raises ValueError when an attribute has the wrong length or the window does not fit.
    """
    rank = len(spatial)
    strides = tuple(strides or (1,) * rank)
    dilations = tuple(dilations or (1,) * rank)
    pads = tuple(pads or (0,) * (2 * rank))
    if not rank == len(kernel) == len(strides) == len(dilations) == len(pads) / 2:
        raise ValueError(
            f"the input has {rank} spatial axes, but kernel_shape={tuple(kernel)}, "
            f"strides={strides}, dilations={dilations}, pads={pads}"
        )
    before: list[int] = []
    after: list[int] = []
    output: list[int] = []
    for axis, (size, taps, stride, dilation) in enumerate(
        zip(spatial, kernel, strides, dilations, strict=True)
    ):
        extent = (taps - 1) * dilation + 1
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-size // stride)
            total = max(0, (count - 1) * stride + extent - size)
            start = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            end = total - start
        else:
            start, end = (0, 0) if auto_pad == "VALID" else (pads[axis], pads[axis + rank])
            room = size + start + end - extent
            if room < 0:
                raise ValueError(
                    f"a window of {extent} does not fit {size} elements padded by {start} and {end}"
                )
            count = (-(-room // stride) if ceil_mode else room // stride) + 1
            if ceil_mode and (count - 1) * stride >= size + start:
                count -= 1
        before.append(start)
        after.append(end)
        output.append(count)
    return Window(
        tuple(spatial),
        tuple(kernel),
        strides,
        dilations,
        tuple(before),
        tuple(after),
        tuple(output),
    )


@dataclass(frozen=True)
class PaddedCopy:
    """Copy a box of an array, of which parts may lie outside, into a buffer.

    Both have one leading axis more than the box. Made once per box, used every run.
    """

    target: Index
    source: Index
    borders: tuple[Index, ...]

    @staticmethod
    def of(
        spatial: Sequence[int],
        starts: Sequence[int],
        sizes: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> PaddedCopy:
        """The box begins at `starts` (may be negative) in an array of extents `spatial`.

        Of each axis every `steps`-th element is taken, by default every one.
        """
        target: list[slice] = [slice(None)]
        source: list[slice] = [slice(None)]
        borders: list[Index] = []
        steps = steps or (1,) * len(spatial)
        for extent, start, size, step in zip(spatial, starts, sizes, steps, strict=True):
            low = min(max(0, -(start // step)), size)
            high = max(low, min(size, -((start - extent) // step)))
            if low:
                borders.append((*target, slice(0, low)))
            if high < size:
                borders.append((*target, slice(high, size)))
            target.append(slice(low, high))
            source.append(slice(low * step + start, (high - 1) * step + start + 1, step))
        return PaddedCopy(tuple(target), tuple(source), tuple(borders))

    def __call__(self, source: Array, target: Array, outside: float = 0) -> None:
        """Fill `target` from `source`, and with `outside` where the box lies outside."""
        target[self.target] = source[self.source]
        for border in self.borders:
            target[border] = outside

    def bound(self, source: Array, target: Array) -> Callable[[], None]:
        """The same, with 0 outside, for arrays that will not move."""
        inside, seen = target[self.target], source[self.source]
        borders = [target[border] for border in self.borders]

        def fill() -> None:
            np.copyto(inside, seen)
            for border in borders:
                border.fill(0)

        return fill


def for_lanes(items: int, body: Callable[[int, int], None]) -> None:
    """Run `body(item, lane)` for every item; items of one lane never run at the same time.

    A lane takes the next item whenever it is free, so one thread stays in one lane, whose scratch
    is in its cache.
    """
    queue = iter(range(items))

    def lane_body(lane: int) -> None:
        for item in queue:
            body(item, lane)

    parallel_for(lanes_for(items), lane_body)


def lanes_for(items: int) -> int:
    """How many lanes, and so how many pieces of scratch, `for_lanes` uses."""
    return max(1, min(items, LANES))


def lane_scratch(items: int, lane_bytes: int) -> int:
    """Scratch bytes for `for_lanes`; never zero, so that a kernel is always given some."""
    return max(64, lanes_for(items) * lane_bytes)


def even_spans(size: int, pieces: int) -> list[tuple[int, int]]:
    """Cut `range(size)` into at most `pieces` spans of nearly equal length."""
    step = max(1, -(-size // max(1, pieces)))
    return [(start, min(start + step, size)) for start in range(0, size, step)]


def row_major(shape: Sequence[int], unit: int) -> tuple[int, ...]:
    """Strides of a C-contiguous array whose elements are `unit` apart."""
    strides = [unit]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


def scratch_view(
    scratch: Array, offset: int, shape: Sequence[int], dtype: Any, strides: Any = None
) -> Array:
    """An array over `scratch` from byte `offset` on."""
    return np.ndarray(tuple(shape), dtype, scratch, offset, strides)


def aligned_size(shape: Sequence[int], itemsize: int) -> int:
    """Bytes of such an array, rounded up to whole cache lines."""
    return -(-math.prod(shape) * itemsize // 64) * 64
