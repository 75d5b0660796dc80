"""Convolutions in exact mode: products over (channels of a group, kernel positions).

    columns[c, kh, kw; position] = what the tap sees, +0 in the padding
    out = weights[map; c, kh, kw] @ columns + bias

ConvTranspose is the product over the channels of a group, whose columns are added to the image, +0
at first, in the order of the kernel positions; then comes the bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as pairs_of

import numpy as np

from foldline.kernels.arguments import zero_of
from foldline.kernels.col2im import add_columns, col2im, image_window
from foldline.kernels.conv import conv_window
from foldline.kernels.exact_bits import canonical, canonicalised
from foldline.kernels.exact_products import product
from foldline.kernels.exact_quantisation import quantised
from foldline.kernels.integer_products import map_zero
from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.windows import Window, even_spans

COLUMN_ELEMENTS = 1 << 20
"""Elements of columns gathered at a time."""
SHORT_ROW = 512
"""Positions of an image below which columns of several images are put side by side."""
TAP_ELEMENTS = 256 << 10
"""The same where a group has one input channel: they stay in cache, for few rows read them."""

kernel("Col2Im", grade="exact")(canonicalised(col2im))


@kernel("Conv", grade="exact")
@widening
def conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Conv 1/11/22: X `(batch, channels, spatial)`, W `(maps, channels / group, kernel)`."""
    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)
    return canonical(convolved(x, w, group, window, b))


def convolved(x: Array, w: Array, group: int, window: Window, b: Array | None = None) -> Array:
    """The convolution, plus bias, in the type of `x` and `w`; integers wrap around."""
    if x.shape[1] != group * w.shape[1] or w.shape[0] % group:
        raise ValueError(f"X {x.shape} and W {w.shape} do not fit together with group={group}")
    out = np.empty((x.shape[0], w.shape[0], *window.output), x.dtype)
    if out.size:
        _fill(out, _padded(x, window), w, b, group, window)
    return out


def _padded(x: Array, window: Window) -> Array:
    """`x` with zeros for all that any window reaches beyond it."""
    reach = [
        (n - 1) * stride + extent
        for n, stride, extent in zip(window.output, window.strides, window.extent, strict=True)
    ]
    if not any(window.before) and all(r <= s for r, s in zip(reach, window.spatial, strict=True)):
        return x
    sizes = [
        max(r, before + size)
        for r, before, size in zip(reach, window.before, window.spatial, strict=True)
    ]
    padded = np.full((*x.shape[:2], *sizes), zero_of(x.dtype), x.dtype)
    inside = [
        slice(before, before + size)
        for before, size in zip(window.before, window.spatial, strict=True)
    ]
    padded[(slice(None), slice(None), *inside)] = x
    return padded


def _fill(out: Array, padded: Array, w: Array, b: Array | None, group: int, window: Window) -> None:
    """Gather columns, of some images, groups and rows of the output at a time, and multiply."""
    maps, depth = w.shape[0] // group, math.prod(w.shape[1:])
    weights = w.reshape(group, maps, depth)
    positions = math.prod(window.output)
    limit = TAP_ELEMENTS if w.shape[1] == 1 else COLUMN_ELEMENTS
    size = max(1, depth * positions)
    most = max(1, limit // size)
    # Images whose rows would be short in the product go through it side by side.
    images = most if group == 1 and positions < SHORT_ROW else 1
    pieces = list(
        pairs_of(
            even_spans(len(out), -(-len(out) // images)),
            even_spans(group, -(-group // most)),
            even_spans(window.output[0], -(-size // limit)),
        )
    )

    def piece(index: int) -> None:
        some, groups, rows = (slice(*span) for span in pieces[index])
        channels = slice(groups.start * w.shape[1], groups.stop * w.shape[1])
        seen = _columns(padded[some, channels], window, rows)
        result = product(weights[groups], seen.reshape(groups.stop - groups.start, depth, -1))
        filled = slice(groups.start * maps, groups.stop * maps)
        into = out[some, filled, rows]
        by_map = result.reshape(into.shape[1], into.shape[0], *into.shape[2:]).swapaxes(0, 1)
        if b is None:
            into[...] = by_map
        else:
            np.add(by_map, b[filled].reshape(-1, *(1,) * window.rank), out=into)

    if w.shape[1] == 1:
        parallel_for(len(pieces), piece)
    else:  # each product has tiles of its own
        for index in range(len(pieces)):
            piece(index)


def _columns(inputs: Array, window: Window, rows: slice) -> Array:
    """What each tap of each channel sees, `(channels, *kernel, batch, *output)`, as a view."""
    inputs = inputs[:, :, rows.start * window.strides[0] :]
    steps = inputs.strides[2:]
    return np.lib.stride_tricks.as_strided(
        inputs,
        (
            inputs.shape[1],
            *window.kernel,
            len(inputs),
            rows.stop - rows.start,
            *window.output[1:],
        ),
        (
            inputs.strides[1],
            *(step * dilation for step, dilation in zip(steps, window.dilations, strict=True)),
            inputs.strides[0],
            *(step * stride for step, stride in zip(steps, window.strides, strict=True)),
        ),
        writeable=False,
    )


def _with_bias(result: Array, b: Array | None) -> Array:
    if b is None:
        return result
    return canonical(np.add(result, b.reshape(-1, *(1,) * (result.ndim - 2)), out=result))


@kernel("ConvInteger", grade="exact")
def conv_integer(
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """ConvInteger 10: Conv of `x - x_zero_point` and `w - w_zero_point` as int32, which wraps."""
    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)
    zero = map_zero(w_zero_point, w.ndim)
    return convolved(centred(x, x_zero_point), centred(w, zero), group, window)


@kernel("QLinearConv", grade="exact")
def qlinear_conv(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """QLinearConv 10: `saturate(round((Conv + B) x_scale w_scale / y_scale) + y_zero_point)`."""
    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)
    zero = map_zero(w_zero_point, w.ndim)
    total = convolved(centred(x, x_zero_point), centred(w, zero), group, window)
    by_map = (-1, *(1,) * (total.ndim - 2))
    total = total if b is None else total + b.reshape(by_map)
    multiplier = (x_scale * w_scale / y_scale).reshape(-1)
    return quantised(total, multiplier.reshape(by_map), y_zero_point)


def centred(x: Array, zero: Array | None) -> Array:
    """`x - zero` as int32."""
    return x.astype(np.int32) if zero is None else np.subtract(x, zero, dtype=np.int32)


@kernel("ConvTranspose", grade="exact")
@widening
def conv_transpose(
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
    """ConvTranspose 1/11/22: X `(batch, channels, …)`, W `(channels, maps / group, kernel)`."""
    window = image_window(
        x.shape, w.shape, auto_pad, dilations, output_padding, output_shape, pads, strides
    )
    depth, maps = x.shape[1] // group, w.shape[1]
    out = np.zeros((x.shape[0], group * maps, *window.spatial), x.dtype)
    weights = w.reshape(group, depth, maps * math.prod(window.kernel))
    inputs = x.reshape(x.shape[0], group, depth, math.prod(window.output))
    for n, g in pairs_of(range(x.shape[0]), range(group)):
        columns = product(weights[g].T, inputs[n, g])
        image = out[n : n + 1, g * maps : (g + 1) * maps]
        add_columns(columns.reshape(1, maps, *window.kernel, *window.output), image, window)
    return canonical(_with_bias(out, b))
