"""Convolutions channels first: as one product on the input as it lies, or on gathered columns.

A 1x1 window with stride 1 needs no copy. Any other one is gathered into columns (im2col) in
scratch, a piece at a time, and multiplied by the weights seen as a matrix. A piece is some groups,
some rows of the output, or all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from foldline.kernels.conv_finish import SPAN_ELEMENTS, Finish, finish_all
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.strips import tiles_worth
from foldline.kernels.tiled_products import Product, matrix_product
from foldline.kernels.windows import (
    PaddedCopy,
    Window,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    row_major,
    scratch_view,
)

COLUMN_BYTES = 2 << 20
"""Columns gathered at a time: they should still be in cache when they are multiplied."""
GROUP_COLUMN_BYTES = 1 << 20
"""The same when each group has one input channel and is read once, so that copies dominate."""
LEAST_COLUMNS = 192
"""A product with fewer columns is not cut further: the packing of the weights would dominate."""


@dataclass(frozen=True)
class Case:
    """The static facts of one convolution."""

    batch: int
    channels: int
    maps: int
    group: int
    window: Window
    dtype: np.dtype[np.generic]

    @staticmethod
    def of(x: Operand, w: Operand, group: int, window: Window) -> Case:
        if x.shape[1] != group * w.shape[1] or w.shape[0] % group:
            raise ValueError(f"X {x.shape} and W {w.shape} do not fit together with group={group}")
        return Case(x.shape[0], x.shape[1], w.shape[0], group, window, x.dtype)

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


def flat_step(case: Case, finish: Finish) -> Step:
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

    def bind(x: Array, w: Array, b: Array | None = None, *, out: Array) -> Callable[[], object]:
        if not is_single or not _can_bind(x, w, out):
            return partial(run, x, w, b, out=out)
        matrices = (w.reshape(case.maps, -1), x.reshape(case.depth, -1), out.reshape(case.maps, -1))
        return _bound_product(multiply, *matrices, b, finish)

    return Step(run, bind=bind)


def _can_bind(x: Array, w: Array, out: Array) -> bool:
    """Whether views can be taken once, and the result is one part when it is finished."""
    are_plain = x.flags.c_contiguous and w.flags.c_contiguous and out.flags.c_contiguous
    return are_plain and out.size <= SPAN_ELEMENTS


def _bound_product(
    multiply: Product, w: Array, columns: Array, out: Array, b: Array | None, finish: Finish
) -> Callable[[], None]:
    bias = None if b is None else b.reshape(-1, 1)

    def compute() -> None:
        multiply(w, columns, out)
        if bias is not None:
            np.add(out, bias, out)
        finish(out)

    return compute


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


def gathering_step(case: Case, finish: Finish) -> Step:
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

    def gathering(
        x: Array, piece: _Piece, scratch: Array, start: int
    ) -> tuple[Callable[[], None], Array]:
        """What gathers the columns of a piece, and where they will be."""
        channels = piece.channels.stop - piece.channels.start
        seen = (channels, *window.kernel, piece.rows, *rest)
        fill = None
        if case.has_pads:
            buffer = scratch_view(scratch, start, (channels, *padded), case.dtype)
            fill = piece.fill.bound(x[piece.image, piece.channels], buffer)
            source = scratch_view(scratch, start, seen, case.dtype, view_strides)
        else:
            begin = (piece.image * case.channels + piece.channels.start) * strides[0]
            begin += piece.first_row * view_strides[window.rank + 1]
            source = scratch_view(x, begin, seen, case.dtype, view_strides)
        gathered = scratch_view(scratch, start + padded_bytes, seen, case.dtype)

        def gather() -> None:
            if fill is not None:
                fill()
            np.copyto(gathered, source)

        return gather, gathered.reshape(channels // per_group, case.depth, -1)

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
            gather, columns = gathering(x, piece, scratch, lane * lane_bytes)
            gather()
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

    def bind(
        x: Array, w: Array, b: Array | None = None, *, scratch: Array, out: Array
    ) -> Callable[[], object]:
        if len(pieces) != 1 or case.group != 1 or not _can_bind(x, w, out):
            return partial(run, x, w, b, scratch=scratch, out=out)
        gather, columns = gathering(x, pieces[0], scratch, 0)
        matrices = (w.reshape(case.maps, -1), columns[0], out.reshape(case.maps, -1))
        multiplied = _bound_product(multiply, *matrices, b, finish)

        def compute() -> None:
            gather()
            multiplied()

        return compute

    return Step(run, lane_scratch(len(pieces), lane_bytes), bind=bind)


def _pieces(case: Case) -> tuple[list[_Piece], int, int, tuple[int, ...]]:
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
        bands = max(bands, min(tiles_worth(work), case.positions // LEAST_COLUMNS))
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
