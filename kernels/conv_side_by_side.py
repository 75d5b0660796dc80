"""Convolution to few maps, with several results side by side in one row of a product.

A product with a few columns takes BLAS as long as one with 16, and where the window is wide, most
of what is gathered for one position is gathered again for the next. So a row of the left matrix
holds what some neighbouring positions see together, and the right one the weights of all maps once
for each of them, moved along, with zeros elsewhere:

    weights a b c, two positions    [a b c 0]
                                    [0 a b c]

The zeros change no sum but one with an infinity or NaN in it: the direct way is taken if any
result is not finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.lib.stride_tricks import as_strided

from foldline.kernels.channels_last import contiguous_pixels, deliver, pixels
from foldline.kernels.conv_finish import Finish
from foldline.kernels.packed_weights import packed
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.tiled_products import BLOCK, matrix_product
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    scratch_view,
)

PIECE_BYTES = 2 << 20
"""Of the left matrix and the result: so much is computed at a time."""
COUNTS = (2, 4, 8, 16, 32)
COPY_COLUMNS = 11
"""To copy an element takes as long as to multiply it with so many columns."""
LEAST_GAIN = 1.5
LEAST_WORK = 1 << 16
"""With fewer elements to gather the calls count more than what they do."""


def positions_together(channels: int, maps: int, window: Window) -> int:
    """How many results side by side take least time; 1 where the direct way is as good."""
    gathered = math.prod(window.output) * channels * math.prod(window.kernel)
    counts = [count for count in COUNTS if count <= window.output[1]]
    if gathered < LEAST_WORK or not counts:
        return 1

    def cost(count: int) -> float:
        seen = _reach(window, count) if count > 1 else window.kernel[1]
        return seen / count * (COPY_COLUMNS + -(-count * maps // BLOCK) * BLOCK)

    best = min(counts, key=cost)
    return best if cost(best) * LEAST_GAIN < cost(1) else 1


@dataclass(frozen=True)
class _Piece:
    """Some rows of the result of one image, and the box of the input that they see."""

    image: int
    rows: slice
    deep: int
    fill: PaddedCopy


@dataclass(frozen=True)
class _Case:
    """The static facts of one convolution."""

    batch: int
    channels: int
    maps: int
    window: Window
    count: int
    """Positions side by side."""
    dtype: np.dtype[np.generic]

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.batch, self.maps, *self.window.output)

    @property
    def groups(self) -> int:
        """Rows of the left matrix for one row of the result."""
        return -(-self.window.output[1] // self.count)

    @property
    def seen(self) -> tuple[int, int, int]:
        """What a row of the left matrix holds: rows of the window, columns, channels."""
        return self.window.kernel[0], _reach(self.window, self.count), self.channels

    @property
    def columns(self) -> int:
        """Of the product."""
        return self.count * self.maps

    @property
    def width(self) -> int:
        """Columns of a box."""
        return _reach(self.window, max(self.groups, 1) * self.count)

    def buffers(self, rows: int, deep: int) -> tuple[tuple[int, ...], ...]:
        """Shapes of the box, the left matrix, and the product with its last group whole."""
        return (
            (deep, self.width, self.channels),
            (rows, self.groups, *self.seen),
            (rows, self.groups * self.count, self.maps),
        )


def side_by_side_step(
    x: Operand, w: Operand, window: Window, count: int, finish: Finish, safe: Step
) -> Step:
    """X `(batch, channels, H, W)`, W `(maps, channels, kh, kw)`; `safe` is the direct way."""
    case = _Case(x.shape[0], x.shape[1], w.shape[0], window, count, x.dtype)
    pieces, itemsize = _pieces(case), x.dtype.itemsize
    most = max((piece.rows.stop - piece.rows.start for piece in pieces), default=0)
    deepest = max((piece.deep for piece in pieces), default=0)
    sizes = [aligned_size(shape, itemsize) for shape in case.buffers(most, deepest)]
    *offsets, lane_bytes = accumulate(sizes, initial=0)
    staged = lane_scratch(len(pieces), lane_bytes)
    depth, whole_groups = math.prod(case.seen), case.groups * count == window.output[1]
    rows = most * case.groups if len(pieces) == 1 else 1
    multiply = matrix_product(rows, depth, case.columns)
    pack = partial(_moved_along, window, count)
    purpose = f"side by side {count} {window.strides[1]} {window.dilations[1]}"
    known = None if w.value is None else packed(w.value, purpose, pack)

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        out = np.empty(case.shape, case.dtype) if out is None else out
        inputs, results = pixels(x), contiguous_pixels(out, scratch, staged)
        weights = pack(w) if known is None else known
        is_finite = [True] * len(pieces)

        def body(item: int, lane: int) -> None:
            piece = pieces[item]
            result = results[piece.image, piece.rows]
            box, left, whole = (
                scratch_view(scratch, lane * lane_bytes + offset, shape, case.dtype)
                for offset, shape in zip(
                    offsets, case.buffers(len(result), piece.deep), strict=True
                )
            )
            piece.fill(inputs[piece.image : piece.image + 1], box[None])
            np.copyto(left, _windows(case, box, left.shape))
            products = result if whole_groups else whole
            multiply(left.reshape(-1, depth), weights, products.reshape(-1, case.columns))
            flat = products.reshape(-1)
            # A square that overflows only means the slow way.
            is_finite[item] = bool(np.isfinite(np.dot(flat, flat)))
            if not whole_groups:
                np.copyto(result, whole[:, : result.shape[1]])
            seen = result.reshape(-1, case.maps)
            if b is not None:
                np.add(seen, b, out=seen)
            finish(seen)

        if out.size:
            for_lanes(len(pieces), body)
        if not all(is_finite):
            return safe.run(x, w, b, scratch=scratch, out=out)
        return deliver(results, out)

    total = max(staged + aligned_size(case.shape, itemsize), safe.scratch_bytes)
    return Step(run, total, channels_last=True)


def _windows(case: _Case, box: Array, shape: tuple[int, ...]) -> Array:
    """What the positions of each group see of a box, `(rows, groups, kh, columns, channels)`."""
    row, pixel, unit = box.strides
    strides = (
        case.window.strides[0] * row,
        case.window.strides[1] * pixel * case.count,
        case.window.dilations[0] * row,
        pixel,
        unit,
    )
    return as_strided(box, shape, strides, writeable=False)


def _moved_along(window: Window, count: int, w: Array) -> Array:
    """Weights as a matrix `(kh * columns * channels, count * maps)`."""
    maps, channels, down, across = w.shape
    reach, step = _reach(window, count), window.dilations[1]
    moved = np.zeros((down, reach, channels, count, maps), w.dtype)
    for place in range(count):
        start = place * window.strides[1]
        taps = slice(start, start + (across - 1) * step + 1, step)
        moved[:, taps, :, place] = w.transpose(2, 3, 1, 0)
    return moved.reshape(down * reach * channels, count * maps)


def _reach(window: Window, count: int) -> int:
    """Columns that `count` positions next to each other see."""
    return (count - 1) * window.strides[1] + window.extent[1]


def _pieces(case: _Case) -> list[_Piece]:
    window, rows = case.window, case.window.output[0]
    row_elements = case.groups * (math.prod(case.seen) + case.columns)
    bands = -(-rows * row_elements * case.dtype.itemsize // PIECE_BYTES)
    pieces: list[_Piece] = []
    for start, stop in even_spans(rows, bands):
        first = start * window.strides[0] - window.before[0]
        deep = (stop - start - 1) * window.strides[0] + window.extent[0]
        fill = PaddedCopy.of(window.spatial, (first, -window.before[1]), (deep, case.width))
        pieces += [_Piece(n, slice(start, stop), deep, fill) for n in range(case.batch)]
    return pieces
