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
TAP_ELEMENTS = 64 << 10
"""Elements of a result that taps are added to at a time, where a group has one input channel."""

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
    return _with_bias(convolved(x, w, group, window), b)


def convolved(x: Array, w: Array, group: int, window: Window) -> Array:
    """The convolution without bias, in the type of `x` and `w`; integers wrap around."""
    if x.shape[1] != group * w.shape[1] or w.shape[0] % group:
        raise ValueError(f"X {x.shape} and W {w.shape} do not fit together with group={group}")
    padded = _padded(x, window)
    if w.shape[1] == 1 and group > 1:
        return canonical(_by_taps(padded, w, window))
    out = np.zeros((x.shape[0], w.shape[0], *window.output), x.dtype)
    if not out.size:
        return out
    _gathered(padded, w, group, window, out)
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


def _seen(padded: Array, window: Window, tap: Sequence[int]) -> Array:
    """What a tap sees, as a view."""
    spans = [
        slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride)
        for at, dilation, count, stride in zip(
            tap, window.dilations, window.output, window.strides, strict=True
        )
    ]
    return padded[(..., *spans)]


def _by_taps(padded: Array, w: Array, window: Window) -> Array:
    """One input channel a group: the tap is the k of the product, and columns are not needed."""
    batch, channels = padded.shape[:2]
    maps = w.shape[0] // channels
    out = np.zeros((batch, channels, maps, *window.output), padded.dtype)
    weights = w.reshape(channels, maps, *window.kernel)
    size = max(1, maps * math.prod(window.output))
    spans = even_spans(channels, -(-channels * size // TAP_ELEMENTS))
    pieces = list(pairs_of(range(batch), spans))

    def piece(index: int) -> None:
        n, span = pieces[index]
        some = slice(*span)
        into = out[n, some]
        terms = np.empty_like(into)
        for tap in window.taps():
            factor = weights[(some, slice(None), *tap)].reshape(-1, maps, *(1,) * window.rank)
            np.multiply(_seen(padded[n, some], window, tap)[:, None], factor, out=terms)
            np.add(into, terms, out=into)

    if out.size:
        parallel_for(len(pieces), piece)
    return out.reshape(batch, channels * maps, *window.output)


def _gathered(padded: Array, w: Array, group: int, window: Window, out: Array) -> None:
    """Fill `out`: gather columns, some rows of the output at a time, and multiply."""
    channels, maps = w.shape[1], w.shape[0] // group
    weights = w.reshape(group, maps, math.prod(w.shape[1:]))
    line = weights.shape[2] * math.prod(window.output[1:])
    spans = even_spans(window.output[0], -(-line * window.output[0] // COLUMN_ELEMENTS))
    for n, g, span in pairs_of(range(len(out)), range(group), spans):
        rows = slice(*span)
        inputs = padded[n, g * channels : (g + 1) * channels]
        positions = (rows.stop - rows.start) * math.prod(window.output[1:])
        columns = _columns(inputs, window, rows).reshape(weights.shape[2], positions)
        into = out[n, g * maps : (g + 1) * maps, rows]
        into[...] = product(weights[g], columns).reshape(into.shape)


def _columns(inputs: Array, window: Window, rows: slice) -> Array:
    """What each tap of each channel sees, `(channels, *kernel, *output)`, as a view of inputs."""
    inputs = inputs[:, rows.start * window.strides[0] :]
    steps = inputs.strides[1:]
    return np.lib.stride_tricks.as_strided(
        inputs,
        (len(inputs), *window.kernel, rows.stop - rows.start, *window.output[1:]),
        (
            inputs.strides[0],
            *(step * dilation for step, dilation in zip(steps, window.dilations, strict=True)),
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
