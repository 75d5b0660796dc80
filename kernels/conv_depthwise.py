"""Depthwise convolution with stride 1: one filter a channel, no sum over channels.

A padded image laid out as one long row turns a tap of the kernel into a shift of that row. The
result at every shift is a sum of shifted rows times a number each, on long contiguous rows; the
few positions that straddle two image rows are computed for nothing and dropped at the end.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from foldline.kernels.conv_finish import Finish, done
from foldline.kernels.registry import Array, Step
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    scratch_view,
)

BLOCK_BYTES = 256 << 10
"""Channels taken at a time: their padded images and sums should stay in the second-level cache."""


def depthwise_step(
    batch: int,
    channels: int,
    window: Window,
    dtype: np.dtype[np.generic],
    finish: Finish = done,
) -> Step:
    """X `(batch, channels, *spatial)`, W `(channels, 1, *kernel)`, two spatial axes or more."""
    itemsize = dtype.itemsize
    padded = tuple(o + e - 1 for o, e in zip(window.output, window.extent, strict=True))
    fill = PaddedCopy.of(window.spatial, [-p for p in window.before], padded)
    steps = [math.prod(padded[axis + 1 :]) for axis in range(window.rank)]
    length = sum((o - 1) * s for o, s in zip(window.output, steps, strict=True)) + 1
    # One spare row of the outermost axis, so that the sums can be seen as whole rows.
    sums = (window.output[0], *padded[1:])
    shifts = [step * d for step, d in zip(steps, window.dilations, strict=True)]
    rest = list(product(*map(range, window.kernel[1:])))
    block = max(1, min(channels, BLOCK_BYTES // max(1, math.prod(padded) * itemsize)))
    spans = even_spans(channels, -(-channels // block))
    padded_bytes = aligned_size((block, *padded), itemsize)
    sum_bytes = aligned_size((block, *sums), itemsize)
    lane_bytes = padded_bytes + 2 * sum_bytes
    items = [(n, start, stop) for n in range(batch) for start, stop in spans]
    kept = (slice(None), slice(None), *(slice(0, o) for o in window.output[1:]))
    plane = math.prod(padded) * itemsize
    sum_plane = math.prod(sums) * itemsize

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        out = np.empty((batch, channels, *window.output), dtype) if out is None else out

        def body(item: int, lane: int) -> None:
            image, start, stop = items[item]
            count = stop - start
            base = lane * lane_bytes
            buffer = scratch_view(scratch, base, (count, *padded), dtype)
            fill(x[image, start:stop], buffer)
            total, part = (
                scratch_view(scratch, base + offset, (count, length), dtype, (sum_plane, itemsize))
                for offset in (padded_bytes, padded_bytes + sum_bytes)
            )
            for tap in rest:
                offset = sum(t * s for t, s in zip(tap, shifts[1:], strict=True)) * itemsize
                rows = scratch_view(
                    scratch,
                    base + offset,
                    (count, window.kernel[0], length),
                    dtype,
                    (plane, shifts[0] * itemsize, itemsize),
                )
                target = total if tap == rest[0] else part
                np.einsum("cip,ci->cp", rows, w[(slice(start, stop), 0, ..., *tap)], out=target)
                if target is part:
                    np.add(total, part, out=total)
            whole = scratch_view(scratch, base + padded_bytes, (count, *sums), dtype)
            result = out[image, start:stop]
            if b is None:
                np.copyto(result, whole[kept])
            else:
                np.add(whole[kept], b[start:stop].reshape(-1, *(1,) * window.rank), out=result)
            finish(result)

        for_lanes(len(items), body)
        return out

    return Step(run, lane_scratch(len(items), lane_bytes))
