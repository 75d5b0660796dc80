"""Conv 1/11/22: any rank, groups, strides, dilations and pads, channels first.

A 1x1 window with stride 1 is one matrix product on the input as it lies. Any other window is
gathered into columns (im2col) in scratch, a piece at a time, and multiplied by the weights seen as
a matrix. A piece is some groups, some rows of the output, or all of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foldline.kernels.conv_depthwise import depthwise_step
from foldline.kernels.conv_finish import Finish, done, finish_all
from foldline.kernels.conv_winograd import suits_winograd, winograd_step
from foldline.kernels.matmul import TILE_WORK, matrix_product
from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import widening, widening_maker
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    row_major,
    scratch_view,
    sliding_window,
)

COLUMN_BYTES = 2 << 20
"""Columns gathered at a time: they should still be in cache when they are multiplied."""
GROUP_COLUMN_BYTES = 1 << 20
"""The same when each group has one input channel and is read once, so that copies dominate."""
LEAST_COLUMNS = 192
"""A product with fewer columns is not cut further: the packing of the weights would dominate."""


@kernel("Conv")
@widening
def conv_reference(
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
    """Conv 1/11/22: for every tap of the kernel, add its weights times the inputs it sees."""
    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)
    weights = w.reshape(group, -1, *w.shape[1:])
    out = np.zeros((x.shape[0], *weights.shape[:2], *window.output), x.dtype)
    for tap in window.taps():
        into, seen = window.hits_of(tap)
        inputs = x[seen]
        inputs = inputs.reshape(x.shape[0], group, weights.shape[2], *inputs.shape[2:])
        out[(slice(None), *into)] += np.einsum(
            "ngc...,gmc->ngm...", inputs, weights[(..., *tap)], optimize=True
        )
    out = out.reshape(x.shape[0], w.shape[0], *window.output)
    return out if b is None else out + b.reshape(-1, *(1,) * window.rank)


@maker("Conv")
@widening_maker
def conv(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    out: Array | None = None,
) -> Step:
    """Conv 1/11/22 as matrix products, if need be of transformed or gathered inputs."""
    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)
    return conv_step(x, w, group, window)


def conv_step(
    x: Operand,
    w: Operand,
    group: int,
    window: Window,
    finish: Finish = done,
    direct: bool = False,
) -> Step:
    """How a convolution is computed, whatever is done to the finished parts of its result.

    `direct`: only as sums of products, which are exact for integers where the sums are.
    """
    case = _Case.of(x, w, group, window)
    if case.is_pointwise:
        return _pointwise_step(case, finish)
    if not direct and suits_winograd(case.channels, case.maps, group, window):
        return _finite_or(winograd_step(x, w, window), _gathering_step(case, done), finish)
    if case.group == case.channels == case.maps and window.rank > 1 and case.has_unit_strides:
        return depthwise_step(case.batch, case.channels, window, case.dtype, finish)
    return _gathering_step(case, finish)


def _finite_or(fast: Step, safe: Step, finish: Finish) -> Step:
    """`fast`, or `safe` where an infinity, a NaN or an overflow reaches its result.

    Winograd's transforms mix what a tile sees: one infinity would make NaN of its neighbours too.
    The bias is added last, as an Add after a convolution without bias would: the bits are the same.
    """

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        result = fast.run(x, w, scratch=scratch, out=out)
        if not np.isfinite(result).all():
            result = safe.run(x, w, scratch=scratch, out=out)
        if b is not None:
            np.add(result, b.reshape(-1, *(1,) * (result.ndim - 2)), out=result)
        finish_all(result, finish)
        return result

    return Step(run, max(fast.scratch_bytes, safe.scratch_bytes))


def conv_window(
    x: tuple[int, ...],
    w: tuple[int, ...],
    kernel_shape: Sequence[int] | None,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
) -> Window:
    if kernel_shape and tuple(kernel_shape) != w[2:]:
        raise ValueError(f"kernel_shape={tuple(kernel_shape)} but the weights have shape {w}")
    return sliding_window(
        x[2:], w[2:], strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad
    )


@dataclass(frozen=True)
class _Case:
    """The static facts of one convolution."""

    batch: int
    channels: int
    maps: int
    group: int
    window: Window
    dtype: np.dtype[np.generic]

    @staticmethod
    def of(x: Operand, w: Operand, group: int, window: Window) -> _Case:
        if x.shape[1] != group * w.shape[1] or w.shape[0] % group:
            raise ValueError(f"X {x.shape} and W {w.shape} do not fit together with group={group}")
        return _Case(x.shape[0], x.shape[1], w.shape[0], group, window, x.dtype)

    @property
    def depth(self) -> int:
        """Rows of the column matrix of one group, and columns of its weights."""
        return self.channels // self.group * math.prod(self.window.kernel)

    @property
    def positions(self) -> int:
        return math.prod(self.window.output)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.batch, self.maps, *self.window.output)

    @property
    def has_unit_strides(self) -> bool:
        return max(self.window.strides) == 1

    @property
    def has_pads(self) -> bool:
        return any(self.window.before) or any(self.window.after)

    @property
    def is_pointwise(self) -> bool:
        return max(self.window.kernel) == 1 and self.has_unit_strides and not self.has_pads


def _pointwise_step(case: _Case, finish: Finish) -> Step:
    """`out[n, g] = weights[g] @ x[n, g]` without any copy."""
    by_group = (case.group, case.maps // case.group)
    multiply = matrix_product(by_group[1], case.depth, case.positions)
    is_single = case.batch == case.group == 1

    def run(x: Array, w: Array, b: Array | None = None, *, out: Array | None = None) -> Array:
        out = np.empty(case.shape, case.dtype) if out is None else out
        inputs = x.reshape(case.batch, case.group, case.depth, case.positions)
        weights = w.reshape(*by_group, case.depth)
        results = out.reshape(case.batch, *by_group, case.positions)
        bias = None if b is None else b.reshape(*by_group, 1)

        def image(n: int) -> None:
            if is_single:
                multiply(weights[0], inputs[0, 0], results[0, 0])
            else:
                np.matmul(weights, inputs[n], out=results[n])
            if bias is not None:
                np.add(results[n], bias, out=results[n])

        parallel_for(case.batch, image)
        finish_all(out, finish)
        return out

    return Step(run)


@dataclass(frozen=True)
class _Piece:
    """A part of the result: one image, some groups, some positions; and where its input lies."""

    image: int
    groups: slice
    channels: slice
    positions: slice
    rows: int
    first_row: int
    fill: PaddedCopy


def _gathering_step(case: _Case, finish: Finish) -> Step:
    window, itemsize = case.window, case.dtype.itemsize
    pieces, groups, rows, padded = _pieces(case)
    per_group = case.channels // case.group
    rest = window.output[1:]
    column_shape = (groups, case.depth, rows * math.prod(rest))
    padded_bytes = aligned_size((groups * per_group, *padded), itemsize) if case.has_pads else 0
    lane_bytes = padded_bytes + aligned_size(column_shape, itemsize)
    by_group = (case.group, case.maps // case.group)
    multiply = matrix_product(by_group[1], case.depth, case.positions)
    strides = row_major((case.channels, *(padded if case.has_pads else window.spatial)), itemsize)
    view_strides = (
        strides[0],
        *(d * s for d, s in zip(window.dilations, strides[1:], strict=True)),
        *(t * s for t, s in zip(window.strides, strides[1:], strict=True)),
    )

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        *,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        out = np.empty(case.shape, case.dtype) if out is None else out
        x = np.ascontiguousarray(x)
        weights = w.reshape(*by_group, case.depth)
        results = out.reshape(case.batch, *by_group, case.positions)
        bias = None if b is None else b.reshape(*by_group, 1)

        def body(item: int, lane: int) -> None:
            piece = pieces[item]
            start = lane * lane_bytes
            channels = piece.channels.stop - piece.channels.start
            seen = (channels, *window.kernel, piece.rows, *rest)
            if case.has_pads:
                buffer = scratch_view(scratch, start, (channels, *padded), case.dtype)
                piece.fill(x[piece.image, piece.channels], buffer)
                source = scratch_view(scratch, start, seen, case.dtype, view_strides)
            else:
                begin = (piece.image * case.channels + piece.channels.start) * strides[0]
                begin += piece.first_row * view_strides[window.rank + 1]
                source = scratch_view(x, begin, seen, case.dtype, view_strides)
            gathered = scratch_view(scratch, start + padded_bytes, seen, case.dtype)
            np.copyto(gathered, source)
            columns = gathered.reshape(channels // per_group, case.depth, -1)
            result = results[piece.image, piece.groups, :, piece.positions]
            if len(pieces) == 1 and case.group == 1:
                multiply(weights[0], columns[0], result[0])
            else:
                np.matmul(weights[piece.groups], columns, out=result)
            if bias is not None:
                np.add(result, bias[piece.groups], out=result)
            finish(result)

        for_lanes(len(pieces), body)
        return out

    return Step(run, lane_scratch(len(pieces), lane_bytes))


def _pieces(case: _Case) -> tuple[list[_Piece], int, int, tuple[int, ...]]:
    """The pieces; the most groups and rows in one; the extents of its padded input."""
    window = case.window
    rows = window.output[0]
    row_positions = math.prod(window.output[1:])
    group_bytes = case.depth * case.positions * case.dtype.itemsize
    budget = GROUP_COLUMN_BYTES if case.depth < 64 else COLUMN_BYTES
    groups_at_once = max(1, min(case.group, budget // max(1, group_bytes)))
    bands = -(-group_bytes // COLUMN_BYTES)
    if case.batch == case.group == 1:
        work = case.maps * case.depth * case.positions
        bands = max(bands, min(work // (2 * TILE_WORK), case.positions // LEAST_COLUMNS))
    row_spans = even_spans(rows, bands)
    group_spans = even_spans(case.group, -(-case.group // groups_at_once))
    most_rows = max((stop - start for start, stop in row_spans), default=0)
    padded = tuple(
        (count - 1) * stride + extent
        for count, stride, extent in zip(
            (most_rows, *window.output[1:]), window.strides, window.extent, strict=True
        )
    )
    per_group = case.channels // case.group
    pieces = [
        _Piece(
            image,
            slice(*groups),
            slice(groups[0] * per_group, groups[1] * per_group),
            slice(start * row_positions, stop * row_positions),
            stop - start,
            start,
            PaddedCopy.of(
                window.spatial,
                (start * window.strides[0] - window.before[0], *(-p for p in window.before[1:])),
                padded,
            ),
        )
        for image in range(case.batch)
        for groups in group_spans
        for start, stop in row_spans
    ]
    most_groups = max((stop - start for start, stop in group_spans), default=0)
    return pieces, most_groups, most_rows, padded
