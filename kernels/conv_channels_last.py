"""Convolution of images in one group, as matrix products with channels innermost.

A row of the left matrix holds what one position of the window sees, the right one holds the
weights of all maps, so the product is a part of the result as it lies. A 1x1 window with stride 1
needs no copy: `pointwise_step`. For any other the left matrix is gathered in scratch, some rows of
the result at a time, in runs of as many channels as the window has columns. An input of a few
channels, such as a picture, is gathered channel by channel instead, in runs along its rows; with
a stride, columns that are a stride apart are put together first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from foldline.kernels.block_products import WeightProducts, strip_width
from foldline.kernels.channels_last import contiguous_pixels, deliver, pixels
from foldline.kernels.conv_finish import Finish, add_bias, done
from foldline.kernels.packed_weights import packed
from foldline.kernels.pixel_parts import MakePart, Part, all_parts, pixel_step
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.strips import tiles_worth
from foldline.kernels.tiled_products import flat_product, matrix_product
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    scratch_view,
)

PIECE_BYTES = 2 << 20
"""Of the left matrix and the result: so much is computed at a time, to be in cache when it is
multiplied and finished."""
LEAST_ROWS = 192
"""A product of fewer rows is not cut further: the packing of the weights would dominate."""
BLOCK_ROWS = 24
"""The same where nothing is packed."""
FINISH_WORK = 32
"""Multiply-adds in whose time an element of the result is given its bias and activation."""
FEW_CHANNELS = 8
"""With fewer, runs of them are too short to copy well, unless the window is wide."""
LONG_RUN = 64
"""So many elements that a row of the window sees are copied well whatever they are. By channel, a
window of 256 columns takes 256 calls, which was ten times slower."""


@dataclass(frozen=True)
class _Piece:
    """Some rows of the result of one image, and the box of the input that they see."""

    image: int
    rows: slice
    boxes: tuple[PaddedCopy, ...]
    """By channel there is one for each residue of columns modulo the stride, else one."""
    deep: int
    """Rows of a box."""


@dataclass(frozen=True)
class _Case:
    """The static facts of one convolution."""

    batch: int
    channels: int
    maps: int
    window: Window
    dtype: np.dtype[np.generic]

    @property
    def depth(self) -> int:
        return self.channels * math.prod(self.window.kernel)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.batch, self.maps, *self.window.output)

    @property
    def has_pads(self) -> bool:
        return any(self.window.before) or any(self.window.after)

    @property
    def by_channel(self) -> bool:
        window = self.window
        run = self.channels * (window.kernel[1] if window.dilations[1] == 1 else 1)
        return self.channels < FEW_CHANNELS and run < LONG_RUN

    @property
    def phases(self) -> int:
        return self.window.strides[1] if self.by_channel else 1

    @property
    def width(self) -> int:
        """Columns of the padded input that are seen, or of each phase of it."""
        return -(-_reach(self.window, 1, self.window.output[1]) // self.phases)


def pointwise_step(x: Operand, w: Operand, finish: Finish = done) -> Step:
    """A 1x1 window with stride 1 and no pads: one product, cut along positions or maps."""
    batch, channels, height, width = x.shape
    maps, dtype = w.shape[0], x.dtype
    positions, shape = batch * height * width, (batch, maps, height, width)
    staged = 0 if x.channels_last else aligned_size(x.shape, dtype.itemsize)
    work = positions * (channels + FINISH_WORK) * maps
    columns = strip_width(positions, channels, maps, dtype)
    wanted = -(-positions * (channels + maps) * dtype.itemsize // PIECE_BYTES)
    wanted = max(wanted, tiles_worth(work))
    spans = even_spans(positions, min(wanted, positions // _least_rows(columns)))
    rows = positions if len(spans) == 1 else 1
    matrix = (
        None if columns or w.value is None else packed(w.value, _by_channel.__name__, _by_channel)
    )
    products = WeightProducts(columns, flat_product(rows, channels, maps, dtype, matrix))
    known = products.packed(w.value, _by_channel)

    def product(left: Array, w: Array, b: Array | None, result: Array) -> Part:
        """One product after the other, each finished."""

        def apply(part: Array, row0: int, col0: int, rows: int, cols: int) -> None:
            if b is not None:
                add_bias(part, b if cols == maps else b[col0 : col0 + cols])
            finish(part)

        weights = products.pack(_by_channel(w)) if known is None else known
        parts = [
            products.bound(left[start:stop], weights, result[start:stop], apply)
            for start, stop in spans
        ]
        return parts[0] if len(parts) == 1 else partial(all_parts, parts)

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
        inputs = contiguous_pixels(x, scratch, 0)
        if not pixels(x).flags.c_contiguous:
            np.copyto(inputs, pixels(x))
        product(inputs.reshape(positions, channels), w, b, results.reshape(positions, maps))()
        return deliver(results, out)

    def bind(x: Array, w: Array, b: Array | None = None, *, scratch: Array, out: Array) -> Part:
        inputs, results = pixels(x), pixels(out)
        if not (inputs.flags.c_contiguous and results.flags.c_contiguous):
            return partial(run, x, w, b, scratch=scratch, out=out)
        return product(inputs.reshape(positions, channels), w, b, results.reshape(positions, maps))

    size = max(64, staged + aligned_size(shape, dtype.itemsize))
    return Step(run, size, True, None if w.value is None else bind)


def channels_last_step(x: Operand, w: Operand, window: Window, finish: Finish = done) -> Step:
    """X `(batch, channels, H, W)`, W `(maps, channels, kh, kw)`."""
    case = _Case(x.shape[0], x.shape[1], w.shape[0], window, x.dtype)
    itemsize, positions = case.dtype.itemsize, math.prod(window.output)
    columns = strip_width(positions, case.depth, case.maps, case.dtype)
    pieces = _pieces(case, _least_rows(columns))
    most = max((piece.rows.stop - piece.rows.start for piece in pieces), default=0)
    deepest = max((piece.deep for piece in pieces), default=0)
    box_bytes = aligned_size((deepest, case.phases, case.width, case.channels), itemsize)
    left_bytes = aligned_size((most, window.output[1], case.depth), itemsize)
    lane_bytes = box_bytes + left_bytes
    rows = positions if len(pieces) == 1 else 1
    products = WeightProducts(columns, matrix_product(rows, case.depth, case.maps))
    gathering = _gathering_by_channel if case.by_channel else _gathering
    pack = _by_channel if case.by_channel else _by_pixel
    known = products.packed(w.value, pack)

    def parts(x: Array, w: Array, b: Array | None, results: Array, scratch: Array) -> MakePart:
        inputs, weights = pixels(x), products.pack(pack(w)) if known is None else known
        as_they_lie = inputs.flags.c_contiguous and not case.has_pads and not case.by_channel

        def apply(part: Array, row0: int, col0: int, rows: int, cols: int) -> None:
            if b is not None:
                add_bias(part, b if cols == case.maps else b[col0 : col0 + cols])
            finish(part)

        def part(item: int, lane: int) -> Part:
            piece, base, steps = pieces[item], lane * lane_bytes, list[Part]()
            if as_they_lie:
                box = inputs[(piece.image, *piece.boxes[0].source[1:])]
            else:
                box = _box(case, piece, inputs, scratch, base, steps)
            count = piece.rows.stop - piece.rows.start
            left = gathering(case, box, count, scratch, base + box_bytes, steps)
            result = results[piece.image, piece.rows].reshape(-1, case.maps)
            steps.append(products.bound(left, weights, result, apply))

            def compute() -> None:
                for step in steps:
                    step()

            return compute

        return part

    return pixel_step(case.shape, case.dtype, len(pieces), lane_bytes, parts, known is not None)


def _box(
    case: _Case, piece: _Piece, inputs: Array, scratch: Array, base: int, steps: list[Part]
) -> Array:
    """The input of a piece with its padding: pixels, or planes if gathered by channel.

    What fills it is added to the steps.
    """
    shape = (piece.deep, case.width, case.channels)
    if case.by_channel:
        shape = (case.channels, piece.deep, case.phases, case.width)
        planes = scratch_view(scratch, base, shape, case.dtype)
        seen = inputs[piece.image].transpose(2, 0, 1)
        steps += [fill.bound(seen, planes[:, :, n]) for n, fill in enumerate(piece.boxes)]
        return planes
    box = scratch_view(scratch, base, shape, case.dtype)
    steps.append(piece.boxes[0].bound(inputs[piece.image : piece.image + 1], box[None]))
    return box


def _gathering(
    case: _Case, box: Array, rows: int, scratch: Array, base: int, steps: list[Part]
) -> Array:
    """`(rows, columns, kh, kw, channels)`; what gathers it is added to the steps."""
    window = case.window
    row, pixel, unit = box.strides
    shape = (rows, window.output[1], *window.kernel, case.channels)
    strides = (
        window.strides[0] * row,
        window.strides[1] * pixel,
        window.dilations[0] * row,
        window.dilations[1] * pixel,
        unit,
    )
    left = scratch_view(scratch, base, shape, case.dtype)
    steps.append(partial(np.copyto, left, as_strided(box, shape, strides, writeable=False)))
    return left.reshape(-1, case.depth)


def _gathering_by_channel(
    case: _Case, box: Array, rows: int, scratch: Array, base: int, steps: list[Part]
) -> Array:
    """`(positions, depth)`, of which a column is contiguous; what gathers it is added."""
    window = case.window
    plane, row, _, unit = box.strides
    (down, across), count = window.kernel, window.output[1]
    columns = scratch_view(scratch, base, (case.channels, down, across, rows, count), case.dtype)
    shape = (case.channels, down, rows, count)
    strides = (plane, window.dilations[0] * row, window.strides[0] * row, unit)
    for tap in range(across):
        start, phase = divmod(tap * window.dilations[1], case.phases)
        seen = as_strided(box[:, :, phase, start:], shape, strides, writeable=False)
        steps.append(partial(np.copyto, columns[:, :, tap], seen))
    return columns.reshape(case.depth, -1).T


def _by_pixel(w: Array) -> Array:
    """Weights as a matrix whose rows are ordered by tap, then by channel."""
    return np.ascontiguousarray(w.transpose(2, 3, 1, 0)).reshape(math.prod(w.shape[1:]), len(w))


def _by_channel(w: Array) -> Array:
    """Weights as a matrix whose rows are ordered by channel, then by tap."""
    return np.ascontiguousarray(w.reshape(len(w), math.prod(w.shape[1:])).T)


def _least_rows(columns: int) -> int:
    """Rows of a product, from which on a cut is worth while."""
    return BLOCK_ROWS if columns else LEAST_ROWS


def _pieces(case: _Case, least_rows: int) -> list[_Piece]:
    rows, columns = case.window.output
    row_bytes = columns * (case.depth + case.maps) * case.dtype.itemsize
    bands = -(-rows * row_bytes // PIECE_BYTES)
    if case.batch == 1:
        work = rows * columns * (case.depth + FINISH_WORK) * case.maps
        bands = max(bands, min(tiles_worth(work), rows * columns // least_rows))
    window = case.window
    pieces: list[_Piece] = []
    for start, stop in even_spans(rows, bands):
        first = start * window.strides[0] - window.before[0]
        deep = _reach(window, 0, stop - start)
        size, steps = (deep, case.width), (1, case.phases)
        boxes = tuple(
            PaddedCopy.of(window.spatial, (first, phase - window.before[1]), size, steps)
            for phase in range(case.phases)
        )
        pieces += [_Piece(n, slice(start, stop), boxes, deep) for n in range(case.batch)]
    return pieces


def _reach(window: Window, axis: int, count: int) -> int:
    """Elements along an axis from the first to the last that `count` positions see."""
    return (count - 1) * window.strides[axis] + window.extent[axis] if count else 0
