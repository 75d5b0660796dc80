"""Col2Im 18, the inverse of gathering windows into columns, and ConvTranspose 1/11/22.

ConvTranspose is a matrix product that gives columns, which are then added up in the image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.conv_finish import Finish, done
from foldline.kernels.precision import widening, widening_maker
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.windows import (
    Window,
    aligned_size,
    for_lanes,
    lane_scratch,
    scratch_view,
    sliding_window,
)

COLUMN_BYTES = 2 << 20


def add_columns(columns: Array, image: Array, window: Window) -> None:
    """Add columns `(batch, channels, *kernel, *output)` to the image `(batch, channels, *spatial)`.

    What falls outside the image is dropped.
    """
    for tap in window.taps():
        positions, seen = window.hits_of(tap)
        part = image[seen]
        np.add(part, columns[(slice(None), slice(None), *tap, *positions[2:])], out=part)


@kernel("Col2Im")
@widening
def col2im(
    columns: Array,
    image_shape: Array,
    block_shape: Array,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Col2Im 18: columns `(batch, channels * taps, positions)` added up in an image."""
    image, block = tuple(image_shape.tolist()), tuple(block_shape.tolist())
    window = sliding_window(image, block, strides=strides, dilations=dilations, pads=pads)
    channels = columns.shape[1] // math.prod(block)
    seen = columns.reshape(columns.shape[0], channels, *block, *window.output)
    out = np.zeros((columns.shape[0], channels, *image), columns.dtype)
    add_columns(seen, out, window)
    return out


@kernel("ConvTranspose")
@widening
def conv_transpose_reference(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """ConvTranspose 1/11/22: each input spreads its weights over the outputs it meets."""
    window = image_window(
        x.shape, w.shape, auto_pad, dilations, output_padding, output_shape, pads, strides
    )
    inputs = x.reshape(x.shape[0], group, x.shape[1] // group, *x.shape[2:])
    weights = w.reshape(group, -1, *w.shape[1:])
    out = np.zeros((x.shape[0], group, w.shape[1], *window.spatial), x.dtype)
    for tap in window.taps():
        positions, seen = window.hits_of(tap)
        out[(slice(None), *seen)] += np.einsum(
            "ngc...,gcm->ngm...", inputs[(slice(None), *positions)], weights[(..., *tap)]
        )
    out = out.reshape(x.shape[0], group * w.shape[1], *window.spatial)
    return out if b is None else out + b.reshape(-1, *(1,) * window.rank)


@maker("ConvTranspose")
@widening_maker
def conv_transpose(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    out: Array | None = None,
) -> Step:
    """ConvTranspose 1/11/22: a matrix product and `add_columns`, some output channels at a time."""
    window = image_window(
        x.shape, w.shape, auto_pad, dilations, output_padding, output_shape, pads, strides
    )
    return conv_transpose_step(x, w, group, window)


def conv_transpose_step(
    x: Operand, w: Operand, group: int, window: Window, finish: Finish = done
) -> Step:
    """How a ConvTranspose is computed, whatever is done to the finished parts of its result."""
    batch, depth, maps = x.shape[0], x.shape[1] // group, w.shape[1]
    taps, positions = math.prod(window.kernel), math.prod(window.output)
    block = max(1, min(maps, COLUMN_BYTES // max(1, taps * positions * x.dtype.itemsize)))
    lane_bytes = aligned_size((block * taps, positions), x.dtype.itemsize)
    items = [
        (n, g, start, min(start + block, maps))
        for n in range(batch)
        for g in range(group)
        for start in range(0, maps, block)
    ]
    shape = (batch, group * maps, *window.spatial)

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        out = np.empty(shape, x.dtype) if out is None else out
        inputs = x.reshape(batch, group, depth, positions)
        weights = w.reshape(group, depth, maps * taps)

        def body(item: int, lane: int) -> None:
            n, g, start, stop = items[item]
            size = ((stop - start) * taps, positions)
            columns = scratch_view(scratch, lane * lane_bytes, size, x.dtype)
            np.matmul(weights[g, :, start * taps : stop * taps].T, inputs[n, g], out=columns)
            first, last = g * maps + start, g * maps + stop
            image = out[n : n + 1, first:last]
            image[...] = 0 if b is None else b[first:last].reshape(-1, *(1,) * window.rank)
            seen = columns.reshape(1, stop - start, *window.kernel, *window.output)
            add_columns(seen, image, window)
            finish(image)

        for_lanes(len(items), body)
        return out

    return Step(run, lane_scratch(len(items), lane_bytes))


def image_window(
    x: tuple[int, ...],
    w: tuple[int, ...],
    auto_pad: str,
    dilations: Sequence[int] | None,
    output_padding: Sequence[int] | None,
    output_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> Window:
    """The window over the *output* that a Conv with these attributes would slide back to X."""
    rank = len(x) - 2
    spatial, kernel = x[2:], w[2:]
    strides = tuple(strides or (1,) * rank)
    dilations = tuple(dilations or (1,) * rank)
    extra = tuple(output_padding or (0,) * rank)
    full = tuple(
        strides[a] * (spatial[a] - 1) + extra[a] + (kernel[a] - 1) * dilations[a] + 1
        for a in range(rank)
    )
    pads = tuple(pads or (0,) * (2 * rank))
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and not output_shape:
        output_shape = tuple(n * s for n, s in zip(spatial, strides, strict=True))
    if output_shape:
        # Some exporters write batch and channels too.
        image = tuple(output_shape)[-rank:]
        totals = [max(0, f - o) for f, o in zip(full, image, strict=True)]
        before = tuple(t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in totals)
        after = tuple(t - p for t, p in zip(totals, before, strict=True))
    else:
        before, after = (
            ((0,) * rank, (0,) * rank) if auto_pad == "VALID" else (pads[:rank], pads[rank:])
        )
        image = tuple(f - p - q for f, p, q in zip(full, before, after, strict=True))
    return Window(image, kernel, strides, dilations, before, after, spatial)
