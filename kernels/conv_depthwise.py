"""Depthwise convolution of images: one filter a channel, no sum over channels.

With channels innermost, a row of the padded image is one contiguous run, a tap of the kernel a
shift of it by whole pixels. The result is a sum of shifted rows times the filters, which repeat
along the row from pixel to pixel. With a stride along the row, columns that are a stride apart are
put together first, and what the taps on each residue of columns add is summed up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby, product

import numpy as np
from numpy._core.multiarray import c_einsum  # pyright: ignore[reportPrivateUsage]

from foldline.kernels.channels_last import pixels
from foldline.kernels.conv_finish import Finish, add_bias, done
from foldline.kernels.pixel_parts import MakePart, Part, pixel_step
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    scratch_view,
)

RUN_ELEMENTS = 4096
"""Of a row taken at a time: its sums stay in the first-level cache."""
FILTER_ELEMENTS = 36 << 10
"""Of the filters of a run, which should leave room in the second-level cache: 5x5 filters for runs
of 4096 took 5 % longer within a network than for runs of 1536."""
BAND_BYTES = 512 << 10
"""Rows taken at a time: their padded input and sums should stay in the second-level cache."""
LEAST_INSIDE = 0.8
"""Of the products, from which on those with padding are computed like others."""
BAND_WORK = 1 << 21
"""Multiply-adds worth a band of their own: 0.3 ms. A cut into two costs one thread 5 to 9 %."""


@dataclass(frozen=True)
class _Phase:
    """Taps along a row that see columns of one residue modulo the stride."""

    residue: int
    taps: slice
    first: int
    """The column that the first tap sees, counted among those of the residue."""
    step: int
    """From what a tap sees to what the next one sees."""


def depthwise_step(x: Operand, w: Operand, window: Window, finish: Finish = done) -> Step:
    """X `(batch, channels, H, W)`, W `(channels, 1, kh, kw)`; any strides, dilations and pads."""
    dtype, itemsize = x.dtype, x.dtype.itemsize
    batch, channels = x.shape[:2]
    rows, columns = window.output
    phases = _phases(window)
    reach = max(each.first + (_count(each.taps) - 1) * each.step for each in phases)
    width, length = (columns + reach) * channels, columns * channels
    row_elements = len(phases) * width
    spans = even_spans(rows, _bands(batch, rows, row_elements, window, itemsize))
    most = max((stop - start for start, stop in spans), default=0)
    deepest = (most - 1) * window.strides[0] + window.extent[0]
    padded_bytes = aligned_size((deepest, row_elements), itemsize)
    summed_bytes = aligned_size((most, length), itemsize) if len(phases) > 1 else 0
    lane_bytes = padded_bytes + summed_bytes
    items = [(n, *span) for n in range(batch) for span in spans]
    shape = (batch, channels, rows, columns)
    fills = {span: _fills(window, phases, span, columns + reach) for span in spans}
    sharing = {span: _sharing(window, span) for span in spans}
    row = row_elements * itemsize
    down = (window.strides[0] * row, window.dilations[0] * row)
    run_elements = min(RUN_ELEMENTS, FILTER_ELEMENTS // math.prod(window.kernel))
    run_length = max(1, min(columns, run_elements // max(1, channels))) * channels
    runs = [(begin, min(begin + run_length, length)) for begin in range(0, length, run_length or 1)]
    known = None if w.value is None else _repeated(w.value, run_length)

    def parts(x: Array, w: Array, b: Array | None, results: Array, scratch: Array) -> MakePart:
        inputs, filters = pixels(x), _repeated(w, run_length) if known is None else known

        def part(item: int, lane: int) -> Part:
            image, start, stop = items[item]
            base, count = lane * lane_bytes, stop - start
            boxes, deep = fills[start, stop]
            box = scratch_view(
                scratch, base, (deep, len(phases), width // channels, channels), dtype
            )
            steps: list[Part] = [
                fill.bound(inputs[image : image + 1], box[None, :, place])
                for place, fill in enumerate(boxes)
            ]
            result = results[image, start:stop].reshape(count, length)
            added = scratch_view(scratch, base + padded_bytes, (count, length), dtype)
            for place, phase in enumerate(phases):
                total = added if place else result
                begin = base + (place * width + phase.first * channels) * itemsize
                strides = (*down, phase.step * channels * itemsize, itemsize)
                along = filters[:, phase.taps]
                for run, sharers in product(runs, sharing[start, stop]):
                    steps.append(_sum(scratch, begin, strides, along, total, run, sharers))
                if place:
                    steps.append(partial(np.add, result, added, result))
            flat = result.reshape(-1, channels)

            def compute() -> None:
                for step in steps:
                    step()
                if b is not None:
                    add_bias(flat, b)
                finish(flat)

            return compute

        return part

    return pixel_step(shape, dtype, len(items), lane_bytes, parts, known is not None)


def _sum(
    scratch: Array,
    base: int,
    strides: tuple[int, ...],
    filters: Array,
    total: Array,
    run: tuple[int, int],
    sharers: tuple[int, int, int, int],
) -> Part:
    """What sums the taps of a run of some rows."""
    (begin, end), (first, last, low, high) = run, sharers
    place = base + begin * strides[3] + first * strides[0] + low * strides[1]
    along, sums = filters[low:high, :, : end - begin], total[first:last, begin:end]
    taps = (last - first, *along.shape)
    seen = scratch_view(scratch, place, taps, filters.dtype, strides)
    return partial(c_einsum, "hijx,ijx->hx", seen, along, out=sums)


def _phases(window: Window) -> list[_Phase]:
    stride, dilation, taps = window.strides[1], window.dilations[1], window.kernel[1]
    shared = math.gcd(stride, dilation)
    return [
        _Phase(
            tap * dilation % stride,
            slice(tap, taps, stride // shared),
            tap * dilation // stride,
            dilation // shared,
        )
        for tap in range(min(taps, stride // shared))
    ]


def _count(taps: slice) -> int:
    return len(range(taps.start, taps.stop, taps.step))


def _bands(batch: int, rows: int, width: int, window: Window, itemsize: int) -> int:
    work = rows * width * math.prod(window.kernel)
    wanted = min(4, work // BAND_WORK) if batch == 1 else 1
    return max(wanted, -(-rows * window.strides[0] * width * itemsize // BAND_BYTES))


def _sharing(window: Window, span: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Runs of rows that see the same rows of the kernel inside the image: two ranges.

    All rows of the kernel are taken for one run unless that would be much in vain: with three rows
    and a kernel of five, two fifths of the products would be with padding.
    """
    taps = window.kernel[0]
    inside: list[tuple[int, int]] = []
    for row in range(*span):
        first, step = row * window.strides[0] - window.before[0], window.dilations[0]
        low = min(taps, max(0, -(first // step)))
        inside.append((low, max(low, min(taps, -((first - window.spatial[0]) // step)))))
    if sum(high - low for low, high in inside) > LEAST_INSIDE * taps * len(inside):
        return [(0, len(inside), 0, taps)]
    runs = [(seen, len(list(rows))) for seen, rows in groupby(inside)]
    ends = list(accumulate(count for _, count in runs))
    return [(end - n, end, *seen) for (seen, n), end in zip(runs, ends, strict=True)]


def _fills(
    window: Window, phases: list[_Phase], span: tuple[int, int], width: int
) -> tuple[list[PaddedCopy], int]:
    """How the padded rows that some rows of the result see are filled, and how many they are."""
    start, stop = span
    deep = (stop - start - 1) * window.strides[0] + window.extent[0]
    first, steps = start * window.strides[0] - window.before[0], (1, window.strides[1])
    fills = [
        PaddedCopy.of(
            window.spatial, (first, each.residue - window.before[1]), (deep, width), steps
        )
        for each in phases
    ]
    return fills, deep


def _repeated(w: Array, length: int) -> Array:
    """The filters as `(kh, kw, length)`, pixel after pixel."""
    by_tap = w[:, 0].transpose(1, 2, 0)
    return np.tile(by_tap, length // max(1, len(w)))
