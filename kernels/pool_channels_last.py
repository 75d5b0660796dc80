"""Maximum or sum over a sliding box of images whose channels are innermost in memory.

As in `foldline.kernels.window_passes` one axis goes after the other, first down the rows, so the
bits are the same. Here only the positions of the window are computed, on runs of channels.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.channels_last import pixels
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.window_passes import Combine, Map, copy
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    scratch_view,
)

BAND_BYTES = 256 << 10
"""Of the input at a time: with what is made of it, it should fit the second-level cache."""


def pool_pixels_step(
    x: Operand,
    window: Window,
    combine: Combine,
    identity: float,
    before: Map | None = None,
    after: Map = copy,
) -> Step:
    """The same as `separable_step` for X `(batch, channels, H, W)`."""
    dtype, (batch, channels) = x.dtype, x.shape[:2]
    rows, columns = window.output
    width = _reach(window, 1, columns)
    row_bytes = width * channels * dtype.itemsize
    spans = even_spans(rows, -(-rows * window.strides[0] * row_bytes // BAND_BYTES))
    boxes = {span: _box(window, span, width) for span in spans}
    is_inside = all(not box.borders for box, _ in boxes.values()) and before is None
    items = [(n, *span) for n in range(batch) for span in spans]
    box_bytes = aligned_size((max((deep for _, deep in boxes.values()), default=0), row_bytes), 1)
    most = max((stop - start for start, stop in spans), default=0)
    lane_bytes = box_bytes + aligned_size((most, row_bytes), 1)

    def run(x: Array, *, scratch: Array, out: Array | None = None) -> Array:
        out = np.empty((batch, channels, rows, columns), dtype) if out is None else out
        inputs, results = pixels(x), pixels(out)

        def body(item: int, lane: int) -> None:
            image, start, stop = items[item]
            box, deep = boxes[start, stop]
            base, count = lane * lane_bytes, stop - start
            if is_inside:
                seen = inputs[(image, *box.source[1:])]
            else:
                seen = scratch_view(scratch, base, (deep, width, channels), dtype)
                box(inputs[image : image + 1], seen[None], identity)
            if before is not None:
                before(seen, seen)
            reduced = scratch_view(scratch, base + box_bytes, (count, width, channels), dtype)
            _combine_taps(combine, seen, window, 0, reduced)
            result = results[image, start:stop]
            _combine_taps(combine, reduced.swapaxes(0, 1), window, 1, result.swapaxes(0, 1))
            after(result, result)

        if out.size:
            for_lanes(len(items), body)
        return out

    return Step(run, lane_scratch(len(items), lane_bytes), channels_last=True)


def _combine_taps(combine: Combine, seen: Array, window: Window, axis: int, out: Array) -> None:
    """Combine what the taps along an axis, here the first, see at each of its positions."""
    stride, dilation = window.strides[axis], window.dilations[axis]
    last = (len(out) - 1) * stride + 1
    first, *others = (
        seen[tap * dilation : tap * dilation + last : stride] for tap in range(window.kernel[axis])
    )
    if not others:
        np.copyto(out, first)
        return
    combine(first, others[0], out=out)
    for other in others[1:]:
        combine(out, other, out=out)


def _box(window: Window, span: tuple[int, int], width: int) -> tuple[PaddedCopy, int]:
    """What some rows of the result see of the padded input, and how many rows that are."""
    first = span[0] * window.strides[0] - window.before[0]
    deep = _reach(window, 0, span[1] - span[0])
    return PaddedCopy.of(window.spatial, (first, -window.before[1]), (deep, width)), deep


def _reach(window: Window, axis: int, count: int) -> int:
    return (count - 1) * window.strides[axis] + window.extent[axis] if count else 0
