"""Maximum or sum over a sliding box, one axis after the other, on flat memory.

Planes, padded if need be, are taken as one long vector, in which a step along any axis is a shift.
A pass combines the vector with shifted copies of itself, so that all of it runs on long contiguous
memory; values that mix two rows or planes arise too, and are never read. The last step picks the
values at the window's positions. A window of kh x kw costs kh + kw passes, not kh * kw.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    row_major,
    scratch_view,
)

TILE_BYTES = 128 << 10
"""Planes taken at a time; two vectors of this size should fit the second-level cache."""

Combine = Callable[..., Array]
Map = Callable[[Array, Array], None]
"""Write a function of the first array to the second, which may be the first."""


def copy(source: Array, target: Array) -> None:
    """The map that changes nothing."""
    np.copyto(target, source)


def separable_step(
    x: Operand,
    window: Window,
    combine: Combine,
    identity: float,
    before: Map | None = None,
    after: Map = copy,
) -> Step:
    """`after(combine over the window of before(x))`; x is `(batch, channels, *spatial)`.

    `before` must map 0 to 0 when padding is 0. What padding holds is `identity`.
    """
    dtype, planes = x.dtype, x.shape[0] * x.shape[1]
    reach = tuple(
        (count - 1) * stride + extent
        for count, stride, extent in zip(window.output, window.strides, window.extent, strict=True)
    )
    is_padded = any(window.before) or any(r > s for r, s in zip(reach, window.spatial, strict=True))
    extents = reach if is_padded else window.spatial
    fill = PaddedCopy.of(window.spatial, [-p for p in window.before], extents)
    steps = row_major(extents, 1)
    passes = [
        [tap * dilation * step for tap in range(taps)]
        for taps, dilation, step in zip(window.kernel, window.dilations, steps, strict=True)
        if taps > 1
    ]
    plane = math.prod(extents)
    spans = even_spans(planes, -(-planes * plane * dtype.itemsize // TILE_BYTES))
    most = max((stop - start for start, stop in spans), default=0)
    half = aligned_size((most, plane), dtype.itemsize)
    picked = (plane, *(a * b for a, b in zip(window.strides, steps, strict=True)))
    byte_strides = tuple(stride * dtype.itemsize for stride in picked)
    out_shape = (*x.shape[:2], *window.output)

    def run(x: Array, *, scratch: Array, out: Array | None = None) -> Array:
        out = np.empty(out_shape, dtype) if out is None else out
        if not out.size:
            return out
        inputs = np.ascontiguousarray(x).reshape(planes, *window.spatial)
        results = out.reshape(planes, *window.output)

        def body(item: int, lane: int) -> None:
            start, stop = spans[item]
            size = (stop - start) * plane
            first, second = (
                scratch_view(scratch, (2 * lane + side) * half, (size,), dtype) for side in (0, 1)
            )
            if is_padded:
                fill(inputs[start:stop], first.reshape(-1, *extents), identity)
            if before is not None:
                before(first if is_padded else inputs[start:stop].reshape(-1), first)
            in_scratch = is_padded or before is not None
            source = first if in_scratch else inputs[start:stop].reshape(-1)
            target = second if in_scratch else first
            for shifts in passes:
                size -= shifts[-1]
                total = target[:size]
                combine(source[:size], source[shifts[1] : shifts[1] + size], out=total)
                for shift in shifts[2:]:
                    combine(total, source[shift : shift + size], out=total)
                source, target = target, second if target is first else first
            seen = np.ndarray((stop - start, *window.output), dtype, source, 0, byte_strides)
            after(seen, results[start:stop])

        for_lanes(len(spans), body)
        return out

    return Step(run, lane_scratch(len(spans), 2 * half))
