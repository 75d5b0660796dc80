"""Convolution along one axis in one group, as one product for many short images.

A row of the left matrix holds what one position of the window sees, with channels innermost; the
right one holds the weights of all maps. With few positions an image, BLAS would pack the weights
for each image anew: 16 images of 4 positions take a third of the time together. For that the
input is copied with its channels innermost, and the result is copied back.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.lib.stride_tricks import as_strided

from foldline.kernels.conv_columns import Case
from foldline.kernels.conv_finish import Finish, add_bias
from foldline.kernels.packed_weights import packed
from foldline.kernels.pixel_parts import MakePart, Part, bound_parts
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.strips import tiles_worth
from foldline.kernels.tiled_products import matrix_product
from foldline.kernels.windows import (
    PaddedCopy,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    scratch_view,
)

MOST_COPIED = 16 << 10
"""So many elements of an image, its input and its result, are copied sooner than the calls of its
own product are made."""
WEIGHTS_PER_COPY = 8
"""So many weights are packed in the time in which an element is copied."""
PIECE_BYTES = 2 << 20
"""Of the left matrix and the result: so much is computed at a time."""
FEW_POSITIONS = 4
"""With so many, one image takes a fifth less time like that, too."""
LEAST_ROWS = 192
"""A product of fewer rows is not cut further: the packing of the weights would dominate."""


def suits_rows(case: Case) -> bool:
    """Whether to compute the images together takes less time than one after the other."""
    copied = case.positions * (case.channels + case.maps)
    most = MOST_COPIED + case.depth * case.maps // WEIGHTS_PER_COPY
    if case.window.rank != 1 or case.group != 1 or not 0 < copied <= most:
        return False
    return case.batch > 1 or (case.positions <= FEW_POSITIONS and not case.is_pointwise)


def rows_step(case: Case, w: Operand, finish: Finish) -> Step:
    """X `(batch, channels, size)`, W `(maps, channels, taps)`."""
    case, taps = _that_hit(case)
    window, count, depth, maps = case.window, case.positions, case.depth, case.maps
    spans = _spans(case)
    most = max((stop - start for start, stop in spans), default=0)
    seen_size = (count - 1) * window.strides[0] + window.extent[0]
    shapes = ((most, seen_size, case.channels), (most, count, depth), (most, count, maps))
    *offsets, lane_bytes = accumulate(
        (aligned_size(shape, case.dtype.itemsize) for shape in shapes), initial=0
    )
    fill = PaddedCopy.of(window.spatial, (-window.before[0],), (seen_size,))
    is_copied = case.has_pads or case.channels > 1 < window.kernel[0]
    multiply = matrix_product(most * count if len(spans) == 1 else 1, depth, maps)
    pack = partial(_by_tap, taps)
    known = None if w.value is None else packed(w.value, f"by tap {taps.start} {taps.stop}", pack)

    def parts(x: Array, w: Array, b: Array | None, out: Array, scratch: Array) -> MakePart:
        inputs, results = x.transpose(0, 2, 1), out.transpose(0, 2, 1)
        weights = pack(w) if known is None else known

        def apply(part: Array, row0: int, col0: int, rows: int, cols: int) -> None:
            if b is not None:
                add_bias(part, b if cols == maps else b[col0 : col0 + cols])
            finish(part)

        def part(item: int, lane: int) -> Part:
            images = slice(*spans[item])
            source, result, steps = inputs[images], results[images], list[Part]()
            box, left, rows = (
                scratch_view(scratch, lane * lane_bytes + offset, shape, case.dtype)[: len(source)]
                for offset, shape in zip(offsets, shapes, strict=True)
            )
            if is_copied:
                steps.append(fill.bound(source, box))
                source = box
            windows = _windows(case, source)
            steps.append(partial(np.copyto, left.reshape(windows.shape), windows))
            in_place = result.flags.c_contiguous
            seen = left.reshape(len(left) * count, depth)
            product = (result if in_place else rows).reshape(len(left) * count, maps)
            steps.append(partial(multiply, seen, weights, product, apply))
            if not in_place:
                steps.append(partial(np.copyto, result, rows))

            def compute() -> None:
                for step in steps:
                    step()

            return compute

        return part

    def run(
        x: Array, w: Array, b: Array | None = None, *, scratch: Array, out: Array | None = None
    ) -> Array:
        out = np.empty(case.shape, case.dtype) if out is None else out
        make = parts(x, w, b, out, scratch)

        def compute(item: int, lane: int) -> None:
            make(item, lane)()

        for_lanes(len(spans), compute)
        return out

    def bind(x: Array, w: Array, b: Array | None = None, *, scratch: Array, out: Array) -> Part:
        return bound_parts(len(spans), parts(x, w, b, out, scratch))

    scratch_bytes = lane_scratch(len(spans), lane_bytes)
    return Step(run, scratch_bytes, bind=None if known is None else bind)


def _windows(case: Case, source: Array) -> Array:
    """What each position sees, `(images, positions, taps, channels)`."""
    image, element, channel = source.strides
    (stride,), (dilation,) = case.window.strides, case.window.dilations
    shape = (len(source), case.positions, *case.window.kernel, case.channels)
    strides = (image, stride * element, dilation * element, channel)
    return as_strided(source, shape, strides, writeable=False)


def _by_tap(taps: slice, w: Array) -> Array:
    """Weights as a matrix whose rows are ordered by tap, then by channel."""
    seen = np.ascontiguousarray(w[:, :, taps].transpose(2, 1, 0))
    return seen.reshape(seen.shape[0] * seen.shape[1], len(w))


def _that_hit(case: Case) -> tuple[Case, slice]:
    """The convolution without the taps at its ends that see nothing but padding, and the others.

    Of a window of three on an image of one element two do.
    """
    window, (dilation,) = case.window, case.window.dilations
    hits = [tap for tap in range(window.kernel[0]) if window.hits(0, tap)[0].stop]
    if len(hits) in (0, window.kernel[0]):
        return case, slice(None)
    taps = slice(hits[0], hits[-1] + 1)
    before = window.before[0] - taps.start * dilation
    kernel = (taps.stop - taps.start,)
    end = (case.positions - 1) * window.strides[0] + (kernel[0] - 1) * dilation + 1
    after = max(0, end - before - window.spatial[0])
    window = replace(window, kernel=kernel, before=(before,), after=(after,))
    return replace(case, window=window), taps


def _spans(case: Case) -> list[tuple[int, int]]:
    """Which images are computed together."""
    rows = case.batch * case.positions
    pieces = -(-rows * (case.depth + case.maps) * case.dtype.itemsize // PIECE_BYTES)
    worth = min(tiles_worth(rows * case.depth * case.maps), rows // LEAST_ROWS)
    return even_spans(case.batch, max(pieces, worth))
