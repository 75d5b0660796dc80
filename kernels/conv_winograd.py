"""3x3 convolution with stride 1 by Winograd's F(2x2, 3x3): 16 products where there were 36.

Each 2x2 tile of the result comes from a 4x4 tile d of the padded input and the 3x3 weights g as
`A' [(G g G') * (B' d B)] A`. The 16 elementwise products, summed over channels, are 16 matrix
products over all tiles at once.

The padded input is kept as four images, of even and odd rows and columns, each one long row a
channel: an element of all the tiles is then a shift of such a row. One position at the end of
each row of tiles is computed for nothing.

The sums differ from the direct ones by rounding only. An infinity in the input, though, makes NaN
of all results whose tile sees it: the caller looks for that and computes such a result directly.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    scratch_view,
)

BAND_BYTES = 4 << 20
"""Transformed input and products held at a time."""
LEAST_CHANNELS = 128
"""With fewer, the transforms cost more than the products they save."""
LEAST_TILES = 48
"""With fewer, the products are too narrow to be fast."""
LEAST_BAND_TILES = 200
"""A band with fewer would make the products narrow."""

_G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_WEIGHTS_TO_PRODUCTS = np.kron(_G, _G).T


def suits_winograd(channels: int, maps: int, group: int, window: Window) -> bool:
    """Whether `winograd_step` can compute it and is likely to be the fastest way."""
    if window.kernel != (3, 3) or {*window.strides, *window.dilations} != {1} or group > 1:
        return False
    tiles = -(-window.output[0] // 2) * -(-window.output[1] // 2)
    return min(channels, maps) >= LEAST_CHANNELS and tiles >= LEAST_TILES


def winograd_step(x: Operand, w: Operand, window: Window) -> Step:
    """X `(batch, channels, H, W)`, W `(maps, channels, 3, 3)`, no bias.

    Constant weights are transformed once.
    """
    dtype, itemsize = x.dtype, x.dtype.itemsize
    batch, channels, maps = x.shape[0], x.shape[1], w.shape[0]
    height, width = window.output
    tile_rows, across = -(-height // 2), -(-width // 2) + 1
    spans = even_spans(tile_rows, _bands(batch, channels, maps, tile_rows, across, itemsize))
    most = max((stop - start for start, stop in spans), default=0)
    items = [(n, *span) for n in range(batch) for span in spans]
    fills = {
        span: [_phase(window, span, across, row, column) for row in (0, 1) for column in (0, 1)]
        for span in spans
    }
    # Three buffers a lane: the phases, then by turns what transforms and products read and write.
    cells = most * across
    sizes = [
        aligned_size(shape, itemsize)
        for shape in (
            (4, channels, cells + across),
            (16, max(channels, maps // 2 + 1), cells),
            (16, max(maps, channels // 2 + 1), cells),
        )
    ]
    lane_bytes = sum(sizes)
    known = None if w.value is None else _transformed_weights(w.value)

    def run(x: Array, w: Array, *, scratch: Array, out: Array | None = None) -> Array:
        out = np.empty((batch, maps, height, width), dtype) if out is None else out
        weights = _transformed_weights(w) if known is None else known

        def body(item: int, lane: int) -> None:
            image, start, stop = items[item]
            rows, length = stop - start, (stop - start) * across - 1
            places = [lane * lane_bytes + sum(sizes[:index]) for index in range(3)]
            phases = scratch_view(scratch, places[0], (4, channels, rows + 1, across), dtype)
            for fill, phase in zip(fills[start, stop], phases, strict=True):
                fill(x[image], phase)
            half = scratch_view(scratch, places[2], (4, 2, channels, length + 1), dtype)
            whole = scratch_view(scratch, places[1], (4, 4, channels, length), dtype)
            _transform_input(phases.reshape(2, 2, channels, -1), across, half, whole)
            products = scratch_view(scratch, places[2], (4, 4, maps, length), dtype)
            if len(items) > 1:
                np.matmul(weights, whole, out=products)
            else:
                parallel_for(4, lambda u: np.matmul(weights[u], whole[u], out=products[u]))
            sums = scratch_view(scratch, places[1], (2, 4, maps, rows * across), dtype)
            _transform_output(products, sums, out[image, :, 2 * start : 2 * stop], across)

        for_lanes(len(items), body)
        return out

    return Step(run, lane_scratch(len(items), lane_bytes))


def _bands(batch: int, channels: int, maps: int, tile_rows: int, across: int, itemsize: int) -> int:
    held = 16 * (channels + maps) * tile_rows * across * itemsize
    bands = -(-held // BAND_BYTES)
    wanted = 4 if batch == 1 else 1
    return max(1, min(max(bands, wanted), tile_rows * across // LEAST_BAND_TILES))


def _phase(window: Window, span: tuple[int, int], across: int, row: int, column: int) -> PaddedCopy:
    starts = (2 * span[0] + row - window.before[0], column - window.before[1])
    sizes = (span[1] - span[0] + 1, across)
    return PaddedCopy.of(window.spatial, starts, sizes, (2, 2))


def _transformed_weights(w: Array) -> Array:
    """`G g G'` as `(4, 4, maps, channels)`, rounded once."""
    products = w.reshape(-1, 9).astype(np.float64) @ _WEIGHTS_TO_PRODUCTS
    return np.ascontiguousarray(products.T, w.dtype).reshape(4, 4, *w.shape[:2])


def _transform_input(phases: Array, across: int, half: Array, whole: Array) -> None:
    """`B' d B`: phases `(row, column, channels, cells)` to whole `(4, 4, channels, tiles)`."""
    count, length = half.shape[-1], whole.shape[-1]
    even, odd = phases[0, ..., :count], phases[1, ..., :count]
    next_even, next_odd = (phases[row, ..., across : across + count] for row in (0, 1))
    np.subtract(even, next_even, out=half[0])
    np.add(odd, next_even, out=half[1])
    np.subtract(next_even, odd, out=half[2])
    np.subtract(odd, next_odd, out=half[3])
    even, odd = half[:, 0, :, :length], half[:, 1, :, :length]
    next_even, next_odd = half[:, 0, :, 1 : length + 1], half[:, 1, :, 1 : length + 1]
    np.subtract(even, next_even, out=whole[:, 0])
    np.add(odd, next_even, out=whole[:, 1])
    np.subtract(next_even, odd, out=whole[:, 2])
    np.subtract(odd, next_odd, out=whole[:, 3])


def _transform_output(products: Array, sums: Array, out: Array, across: int) -> None:
    """`A' m A`: products `(4, 4, maps, tiles)` to the rows of the result they make."""
    length = products.shape[-1]
    for row, sign in ((0, np.add), (1, np.subtract)):
        total = sums[row, ..., :length]
        first, second, third = (0, 1, 2) if row == 0 else (1, 2, 3)
        sign(products[first], products[second], out=total)
        sign(total, products[third], out=total)
    cells = sums.reshape(2, 4, out.shape[0], -1, across)
    for column, sign in ((0, np.add), (1, np.subtract)):
        first, second, third = (0, 1, 2) if column == 0 else (1, 2, 3)
        total = sums[:, first, :, :length]
        # In place where that sum is not needed again.
        sign(total, sums[:, second, :, :length], out=total)
        for row in (0, 1):
            target = out[:, row::2, column::2]
            rows, columns = target.shape[1:]
            sign(
                cells[row, first, :, :rows, :columns],
                cells[row, third, :, :rows, :columns],
                out=target,
            )
