"""3x3 convolution with stride 1 by Winograd's F(2x2, 3x3): 16 products where there were 36.

Each 2x2 tile of the result comes from a 4x4 tile d of the padded input and the 3x3 weights g as
`A' [(G g G') * (B' d B)] A`. The 16 elementwise products, summed over channels, are 16 matrix
products over all tiles of some rows, with channels innermost.

Even and odd columns of the padded input are kept apart, so that one column of all tiles in a row
is a contiguous run.

The sums differ from the direct ones by rounding only. An infinity in the input, though, makes NaN
of all results whose tile sees it: the direct way is taken if any result is not finite.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from foldline.kernels.block_products import block_product, in_strips, strip_width
from foldline.kernels.channels_last import contiguous_pixels, deliver, pixels
from foldline.kernels.conv_finish import Finish, add_bias
from foldline.kernels.packed_weights import packed
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

BAND_BYTES = 2 << 20
"""Transformed input and products held at a time."""
LEAST_CHANNELS, LEAST_WIDE = 32, 64
"""With fewer on either side, or on both, the transforms cost more than the products they save."""
LEAST_TILES = 48
"""With fewer, the products are too narrow to be fast."""
LEAST_BAND_TILES = 96
"""A band with fewer would make the products narrow."""

_G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_WEIGHTS_TO_PRODUCTS = np.kron(_G, _G).T


def suits_winograd(channels: int, maps: int, window: Window) -> bool:
    """Whether `winograd_step` can compute it and is likely to be the fastest way."""
    if window.kernel != (3, 3) or {*window.strides, *window.dilations} != {1}:
        return False
    tiles = -(-window.output[0] // 2) * -(-window.output[1] // 2)
    is_wide = min(channels, maps) >= LEAST_CHANNELS and max(channels, maps) >= LEAST_WIDE
    return is_wide and tiles >= LEAST_TILES


def winograd_step(x: Operand, w: Operand, window: Window, finish: Finish, safe: Step) -> Step:
    """X `(batch, channels, H, W)`, W `(maps, channels, 3, 3)`; `safe` is the direct way.

    Constant weights are transformed once.
    """
    dtype, itemsize = x.dtype, x.dtype.itemsize
    batch, channels, maps = x.shape[0], x.shape[1], w.shape[0]
    height, width = window.output
    tile_rows, across = -(-height // 2), -(-width // 2)
    spans = even_spans(tile_rows, _bands(batch, channels, maps, tile_rows, across, itemsize))
    most = max((stop - start for start, stop in spans), default=0)
    items = [(n, *span) for n in range(batch) for span in spans]
    fills = {span: [_columns(window, span, across, odd) for odd in (0, 1)] for span in spans}
    # Three buffers a lane: the input, then by turns what transforms and products read and write.
    cells = most * across
    sizes = [
        aligned_size(buffer, itemsize)
        for buffer in (
            (2 * most + 2, 2, across + 1, channels),
            (16, cells, max(channels, maps // 2 + 1)),
            (16, cells + most, max(maps, channels // 2 + 1)),
        )
    ]
    lane_bytes = sum(sizes)
    shape, staged = (batch, maps, height, width), lane_scratch(len(items), lane_bytes)
    columns = strip_width(cells, channels, maps, dtype)
    pack = partial(_transformed_weights, columns)
    known = None if w.value is None else packed(w.value, f"winograd in strips of {columns}", pack)

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        out = np.empty(shape, dtype) if out is None else out
        inputs, results = pixels(x), contiguous_pixels(out, scratch, staged)
        weights = pack(w) if known is None else known
        is_finite = [True] * len(items)

        def body(item: int, lane: int) -> None:
            image, start, stop = items[item]
            rows = stop - start
            places = [lane * lane_bytes + sum(sizes[:index]) for index in range(3)]
            box = scratch_view(scratch, places[0], (2 * rows + 2, 2, across + 1, channels), dtype)
            for odd, fill in enumerate(fills[start, stop]):
                fill(inputs[image : image + 1], box[None, :, odd])
            half = scratch_view(scratch, places[2], (4, rows, 2, across + 1, channels), dtype)
            whole = scratch_view(scratch, places[1], (4, 4, rows, across, channels), dtype)
            _transform_input(box, half, whole)
            left = whole.reshape(4, 4, rows * across, channels)
            products = scratch_view(scratch, places[2], (4, 4, rows * across, maps), dtype)
            multiply = _multiplied if columns else _multiplied_whole
            if len(items) > 1:
                multiply(left, weights, products)
            else:
                parallel_for(4, lambda u: multiply(left[u], weights[u], products[u]))
            sums = scratch_view(scratch, places[1], (2, 4, rows, across, maps), dtype)
            result = results[image, 2 * start : 2 * stop]
            _transform_output(products.reshape(4, 4, rows, across, maps), sums, result)
            flat = result.reshape(-1)
            # A square that overflows only means the slow way.
            is_finite[item] = bool(np.isfinite(np.dot(flat, flat)))
            seen = result.reshape(-1, maps)
            if b is not None:
                add_bias(seen, b)
            finish(seen)

        if out.size:
            for_lanes(len(items), body)
        if not all(is_finite):
            return safe.run(x, w, b, scratch=scratch, out=out)
        return deliver(results, out)

    size = max(staged + aligned_size(shape, itemsize), safe.scratch_bytes)
    return Step(run, size, channels_last=True)


def _multiplied(left: Array, strips: Array, products: Array) -> None:
    for call in block_product(left, strips, products):
        call()


def _multiplied_whole(left: Array, weights: Array, products: Array) -> None:
    np.matmul(left, weights, out=products)


def _bands(batch: int, channels: int, maps: int, tile_rows: int, across: int, itemsize: int) -> int:
    held = 16 * (channels + maps) * tile_rows * across * itemsize
    bands = -(-held // BAND_BYTES)
    wanted = 4 if batch == 1 else 1
    return max(1, min(max(bands, wanted), tile_rows * across // LEAST_BAND_TILES))


def _columns(window: Window, span: tuple[int, int], across: int, odd: int) -> PaddedCopy:
    starts = (2 * span[0] - window.before[0], odd - window.before[1])
    sizes = (2 * (span[1] - span[0]) + 2, across + 1)
    return PaddedCopy.of(window.spatial, starts, sizes, (1, 2))


def _transformed_weights(width: int, w: Array) -> Array:
    """`G g G'` as `(4, 4, channels, maps)`, or that in strips, rounded once."""
    products = w.reshape(-1, 9).astype(np.float64) @ _WEIGHTS_TO_PRODUCTS
    by_product = products.astype(w.dtype).reshape(*w.shape[:2], 4, 4)
    matrices = by_product.transpose(2, 3, 1, 0)
    return in_strips(matrices, width) if width else np.ascontiguousarray(matrices)


def _transform_input(box: Array, half: Array, whole: Array) -> None:
    """`B' d B`: box `(row, odd, column, channel)` to whole `(4, 4, row, column, channel)`."""
    even, odd, next_even, next_odd = box[:-2:2], box[1:-1:2], box[2::2], box[3::2]
    np.subtract(even, next_even, out=half[0])
    np.add(odd, next_even, out=half[1])
    np.subtract(next_even, odd, out=half[2])
    np.subtract(odd, next_odd, out=half[3])
    even, odd = half[:, :, 0, :-1], half[:, :, 1, :-1]
    next_even, next_odd = half[:, :, 0, 1:], half[:, :, 1, 1:]
    np.subtract(even, next_even, out=whole[:, 0])
    np.add(odd, next_even, out=whole[:, 1])
    np.subtract(next_even, odd, out=whole[:, 2])
    np.subtract(odd, next_odd, out=whole[:, 3])


def _transform_output(products: Array, sums: Array, out: Array) -> None:
    """`A' m A`: products `(4, 4, row, column, map)` to the pixels of the result they make."""
    for row, sign in ((0, np.add), (1, np.subtract)):
        first, second, third = products[row : row + 3]
        sign(first, second, out=sums[row])
        sign(sums[row], third, out=sums[row])
    for column, sign in ((0, np.add), (1, np.subtract)):
        # In place where that sum is not needed again.
        total = sums[:, 0] if column == 0 else sums[:, 1]
        sign(total, sums[:, column + 1], out=total)
        for row in (0, 1):
            target = out[row::2, column::2]
            rows, columns = target.shape[:2]
            seen = np.s_[row, :rows, :columns]
            sign(total[seen], sums[:, column + 2][seen], out=target)
