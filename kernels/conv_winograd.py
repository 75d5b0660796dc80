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

from foldline.kernels.block_products import strip_width
from foldline.kernels.channels_last import contiguous_pixels, deliver, pixels
from foldline.kernels.conv_finish import Finish, add_bias
from foldline.kernels.packed_weights import packed
from foldline.kernels.pixel_parts import MOST_BOUND, MakePart, Part, all_parts, bound_parts
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.small_products import Call, block_product, in_strips
from foldline.kernels.strips import tiles_worth
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
LEAST_BAND_TILES = 72
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
    is_cut = len(items) == 1 < tiles_worth(16 * cells * channels * maps)
    columns = strip_width(cells, channels, maps, dtype)
    pack = partial(_transformed_weights, columns)
    known = None if w.value is None else packed(w.value, f"winograd in strips of {columns}", pack)

    def parts(
        x: Array, w: Array, b: Array | None, results: Array, scratch: Array, finite: list[bool]
    ) -> MakePart:
        inputs, weights = pixels(x), pack(w) if known is None else known

        def part(item: int, lane: int) -> Part:
            image, start, stop = items[item]
            rows = stop - start

            def view(buffer: int, *shape: int) -> Array:
                place = lane * lane_bytes + sum(sizes[:buffer])
                return scratch_view(scratch, place, shape, dtype)

            box = view(0, 2 * rows + 2, 2, across + 1, channels)
            half = view(2, 4, rows, 2, across + 1, channels)
            whole = view(1, 4, 4, rows, across, channels)
            products = view(2, 4, 4, rows, across, maps)
            sums = view(1, 2, 4, rows, across, maps)
            result = results[image, 2 * start : 2 * stop]
            flat, seen = result.reshape(-1), result.reshape(-1, maps)
            left = whole.reshape(4, 4, -1, channels)
            multiply = _products(columns, left, weights, products.reshape(4, 4, -1, maps))
            steps = [
                fill.bound(inputs[image : image + 1], box[None, :, odd])
                for odd, fill in enumerate(fills[start, stop])
            ]
            steps += _input_transform(box, half, whole)
            steps += [partial(all_parts, multiply)] if is_cut else multiply
            steps += _output_transform(products, sums, result)

            def compute() -> None:
                for step in steps:
                    step()
                # A square that overflows only means the slow way.
                finite[item] = bool(np.isfinite(np.dot(flat, flat)))
                if b is not None:
                    add_bias(seen, b)
                finish(seen)

            return compute

        return part

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        out = np.empty(shape, dtype) if out is None else out
        results, finite = contiguous_pixels(out, scratch, staged), [True] * len(items)
        if out.size:
            make = parts(x, w, b, results, scratch, finite)

            def compute(item: int, lane: int) -> None:
                make(item, lane)()

            for_lanes(len(items), compute)
        if not all(finite):
            return safe.run(x, w, b, scratch=scratch, out=out)
        return deliver(results, out)

    def bind(x: Array, w: Array, b: Array | None = None, *, scratch: Array, out: Array) -> Call:
        results, finite = pixels(out), [True] * len(items)
        if not out.size or len(items) > MOST_BOUND or not results.flags.c_contiguous:
            return partial(run, x, w, b, scratch=scratch, out=out)
        compute = bound_parts(len(items), parts(x, w, b, results, scratch, finite))

        def computed() -> None:
            compute()
            if not all(finite):
                safe.run(x, w, b, scratch=scratch, out=out)

        return computed

    size = max(staged + aligned_size(shape, itemsize), safe.scratch_bytes)
    return Step(run, size, True, None if known is None else bind)


def _products(width: int, left: Array, weights: Array, products: Array) -> list[Call]:
    """The calls that compute `(4, 4, tiles, maps)`, four for each row of transformed tiles."""
    rows = zip(left, weights, products, strict=True)
    if not width:
        return [partial(np.matmul, *each) for each in rows]
    return [partial(_all, block_product(*each)) for each in rows]


def _all(calls: list[Call]) -> None:
    for call in calls:
        call()


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


def _input_transform(box: Array, half: Array, whole: Array) -> list[Call]:
    """`B' d B`: box `(row, odd, column, channel)` to whole `(4, 4, row, column, channel)`."""
    even, odd, next_even, next_odd = box[:-2:2], box[1:-1:2], box[2::2], box[3::2]
    calls = _differences((even, odd, next_even, next_odd), tuple(half))
    even, odd = half[:, :, 0, :-1], half[:, :, 1, :-1]
    next_even, next_odd = half[:, :, 0, 1:], half[:, :, 1, 1:]
    columns = tuple(whole[:, column] for column in range(4))
    return calls + _differences((even, odd, next_even, next_odd), columns)


def _differences(d: tuple[Array, ...], into: tuple[Array, ...]) -> list[Call]:
    """`B' d` for four rows d."""
    return [
        partial(np.subtract, d[0], d[2], into[0]),
        partial(np.add, d[1], d[2], into[1]),
        partial(np.subtract, d[2], d[1], into[2]),
        partial(np.subtract, d[1], d[3], into[3]),
    ]


def _output_transform(products: Array, sums: Array, out: Array) -> list[Call]:
    """`A' m A`: products `(4, 4, row, column, map)` to the pixels of the result they make."""
    calls = list[Call]()
    for row, sign in ((0, np.add), (1, np.subtract)):
        first, second, third = products[row : row + 3]
        calls.append(partial(sign, first, second, sums[row]))
        calls.append(partial(sign, sums[row], third, sums[row]))
    for column, sign in ((0, np.add), (1, np.subtract)):
        # In place where that sum is not needed again.
        total = sums[:, column]
        calls.append(partial(sign, total, sums[:, column + 1], total))
        for row in (0, 1):
            target = out[row::2, column::2]
            rows, columns = target.shape[:2]
            seen = np.s_[row, :rows, :columns]
            calls.append(partial(sign, total[seen], sums[:, column + 2][seen], target))
    return calls
