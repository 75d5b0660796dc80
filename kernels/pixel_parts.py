"""Steps that compute a result with channels innermost part by part.

What a part reads and writes are views, which take longer to make than a small part takes to
compute: 10 to 25 us of a convolution. So a part is made first, and called in each run; where
nothing moves, all parts are made once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from foldline.kernels.channels_last import contiguous_pixels, deliver, pixels
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array, Step
from foldline.kernels.windows import aligned_size, for_lanes, lane_scratch, lanes_for

Part: TypeAlias = Callable[[], object]
MakePart: TypeAlias = Callable[[int, int], Part]
"""(item, lane) -> what computes that part of the result with the scratch of that lane."""

MOST_BOUND = 16
"""With more parts the views are not worth their memory: the parts are large then."""


class Parts(Protocol):
    """What takes the views of a run that its parts share, and gives what makes the parts."""

    def __call__(
        self, x: Array, w: Array, b: Array | None, results: Array, scratch: Array
    ) -> MakePart:
        """`results` is `(batch, height, width, maps)`, contiguous."""
        ...


def pixel_step(
    shape: tuple[int, ...],
    dtype: np.dtype[np.generic],
    items: int,
    lane_bytes: int,
    parts: Parts,
    has_constant_weights: bool,
) -> Step:
    """The step that computes `items` parts; each lane has `lane_bytes` of the scratch."""
    staged = lane_scratch(items, lane_bytes)

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        out = np.empty(shape, dtype) if out is None else out
        results = contiguous_pixels(out, scratch, staged)
        if out.size:
            make = parts(x, w, b, results, scratch)

            def compute(item: int, lane: int) -> None:
                make(item, lane)()

            for_lanes(items, compute)
        return deliver(results, out)

    def bind(x: Array, w: Array, b: Array | None = None, *, scratch: Array, out: Array) -> Part:
        if not out.size or items > MOST_BOUND or not pixels(out).flags.c_contiguous:
            return lambda: run(x, w, b, scratch=scratch, out=out)
        return bound_parts(items, parts(x, w, b, pixels(out), scratch))

    size = staged + aligned_size(shape, dtype.itemsize)
    return Step(run, size, True, bind if has_constant_weights else None)


def all_parts(parts: list[Part]) -> None:
    """Run parts that share no scratch."""

    def part(index: int) -> None:
        parts[index]()

    parallel_for(len(parts), part)


def bound_parts(items: int, make: MakePart) -> Part:
    """What runs all parts; each is made once for every lane that it has been run in."""
    if items == 1:
        return make(0, 0)
    made: list[list[Part | None]] = [[None] * lanes_for(items) for _ in range(items)]

    def compute(item: int, lane: int) -> None:
        part = made[item][lane]
        if part is None:
            part = made[item][lane] = make(item, lane)
        part()

    return lambda: for_lanes(items, compute)
