"""Depthwise convolution of images: one filter a channel, no sum over channels.

With channels innermost, a row of the padded image is one contiguous run, a tap of the kernel a
shift of it by whole pixels. The result is a sum of shifted rows times the filters, which repeat
along the row from pixel to pixel. With a stride along the row, all of its positions are computed
and some kept: still faster than runs of one pixel.
"""

from __future__ import annotations

import math
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

RUN_ELEMENTS = 2048
"""Of a row taken at a time: its sums stay in the first-level cache, its filters in the second."""
BAND_BYTES = 512 << 10
"""Rows taken at a time: their padded input and sums should stay in the second-level cache."""
LEAST_INSIDE = 0.8
"""Of the products, from which on those with padding are computed like others."""
BAND_WORK = 1 << 19
"""Multiply-adds worth a band of their own: a tenth of a millisecond."""


def depthwise_step(x: Operand, w: Operand, window: Window, finish: Finish = done) -> Step:
    """X `(batch, channels, H, W)`, W `(channels, 1, kh, kw)`; any strides, dilations and pads."""
    dtype, itemsize = x.dtype, x.dtype.itemsize
    batch, channels = x.shape[:2]
    rows, columns = window.output
    stride = window.strides[1]
    summed = (columns - 1) * stride + 1 if columns else 0
    width = (summed + window.extent[1] - 1) * channels
    length = summed * channels
    spans = even_spans(rows, _bands(batch, rows, width, window, itemsize))
    most = max((stop - start for start, stop in spans), default=0)
    deepest = (most - 1) * window.strides[0] + window.extent[0]
    padded_bytes = aligned_size((deepest, width), itemsize)
    lane_bytes = padded_bytes + (aligned_size((most, length), itemsize) if stride > 1 else 0)
    items = [(n, *span) for n in range(batch) for span in spans]
    shape = (batch, channels, rows, columns)
    fills = {span: _fill(window, span, width // max(1, channels)) for span in spans}
    sharing = {span: _sharing(window, span) for span in spans}
    row = width * itemsize
    strides = (
        window.strides[0] * row,
        window.dilations[0] * row,
        window.dilations[1] * channels * itemsize,
        itemsize,
    )
    run_length = max(1, min(summed, RUN_ELEMENTS // max(1, channels))) * channels
    runs = [(begin, min(begin + run_length, length)) for begin in range(0, length, run_length or 1)]
    known = None if w.value is None else _repeated(w.value, run_length)

    def parts(x: Array, w: Array, b: Array | None, results: Array, scratch: Array) -> MakePart:
        inputs, filters = pixels(x), _repeated(w, run_length) if known is None else known

        def part(item: int, lane: int) -> Part:
            image, start, stop = items[item]
            fill, deep = fills[start, stop]
            base, count = lane * lane_bytes, stop - start
            box = (1, deep, width // channels, channels)
            filled = fill.bound(inputs[image : image + 1], scratch_view(scratch, base, box, dtype))
            result = results[image, start:stop]
            if stride > 1:
                sums = scratch_view(scratch, base + padded_bytes, (count, length), dtype)
            else:
                sums = result.reshape(count, length)
            summing: list[Part] = []
            for (begin, end), (first, last, low, high) in product(runs, sharing[start, stop]):
                place = base + begin * itemsize + first * strides[0] + low * strides[1]
                taps = (last - first, high - low, window.kernel[1], end - begin)
                seen = scratch_view(scratch, place, taps, dtype, strides)
                along, total = filters[low:high, :, : end - begin], sums[first:last, begin:end]
                summing.append(partial(c_einsum, "hijx,ijx->hx", seen, along, out=total))
            kept = sums.reshape(count, summed, channels)[:, ::stride]
            flat = result.reshape(-1, channels)

            def compute() -> None:
                filled()
                for summed_up in summing:
                    summed_up()
                if b is not None and stride > 1:
                    np.add(kept, b, result)
                elif b is not None:
                    add_bias(flat, b)
                elif stride > 1:
                    np.copyto(result, kept)
                finish(flat)

            return compute

        return part

    return pixel_step(shape, dtype, len(items), lane_bytes, parts, known is not None)


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


def _fill(window: Window, span: tuple[int, int], width: int) -> tuple[PaddedCopy, int]:
    """How the padded rows that some rows of the result see are filled, and how many they are."""
    start, stop = span
    deep = (stop - start - 1) * window.strides[0] + window.extent[0]
    starts = (start * window.strides[0] - window.before[0], -window.before[1])
    return PaddedCopy.of(window.spatial, starts, (deep, width)), deep


def _repeated(w: Array, length: int) -> Array:
    """The filters as `(kh, kw, length)`, pixel after pixel."""
    by_tap = w[:, 0].transpose(1, 2, 0)
    return np.tile(by_tap, length // max(1, len(w)))
