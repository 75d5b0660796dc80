"""Resize whose taps are found when the plan is made, where its sizes or scales are constant.

An axis with weighted taps is then a product with a matrix, most of it zeros, which costs less than
gathering the taps unless the axis is long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from foldline.kernels.interpolation import Indices, Taps, resample
from foldline.kernels.registry import Array, Operand, Step, maker
from foldline.kernels.resize import Filter, fill_outside, lines_of, resample_all, taps_of
from foldline.kernels.windows import aligned_size, scratch_view

_WORTH = 32
"""Multiplications in a product that take as long as gathering one tap."""


@maker("Resize", since=11)
def resize(
    x: Operand,
    roi: Operand | None = None,
    scales: Operand | None = None,
    sizes: Operand | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
    out: Array | None = None,
) -> Callable[..., Array] | Step:
    """Resize 11+: same results as the reference kernel; other inputs are read at run time."""
    chosen = Filter(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(antialias),
        bool(exclude_outside),
        extrapolation_value,
    )
    policy = keep_aspect_ratio_policy
    if all(_is_known(given) for given in (roi, scales, sizes)):
        lines = lines_of(x.shape, _value(roi), _value(scales), _value(sizes), axes, chosen, policy)
        taps = taps_of(lines, chosen)
        along = _Products(x, taps)
        if taps and (mode == "nearest" or np.result_type(x.dtype, np.float32) == x.dtype):
            return _in_place(x, taps, along, chosen)

        def run_planned(x: Array, *_: Array | None, out: Array | None = None) -> Array:
            return _given(resample_all(x, taps, chosen, along), out)

        return run_planned

    def run(
        x: Array,
        roi: Array | None = None,
        scales: Array | None = None,
        sizes: Array | None = None,
        *,
        out: Array | None = None,
    ) -> Array:
        lines = lines_of(x.shape, roi, scales, sizes, axes, chosen, policy)
        return _given(resample_all(x, taps_of(lines, chosen), chosen), out)

    return run


def _given(result: Array, out: Array | None) -> Array:
    if out is None:
        return result
    np.copyto(out, result)
    return out


class _Products:
    """`resample` by a product with the matrix of the taps, one made for every axis that pays."""

    def __init__(self, x: Operand, taps: dict[int, Taps]) -> None:
        dtype = np.result_type(x.dtype, np.float32)
        self.matrices = {
            axis: _matrix(tap.index, tap.weights, x.shape[axis]).astype(dtype)
            for axis, tap in taps.items()
            if tap.weights is not None
            and dtype.kind == "f"
            and x.shape[axis] <= _WORTH * tap.weights.shape[1]
        }

    def gathers(self, axis: int, taps: Taps) -> bool:
        """Whether the taps of an axis are gathered one after another."""
        return taps.weights is not None and axis not in self.matrices

    def __call__(
        self,
        x: Array,
        axis: int,
        taps: Taps,
        out: Array | None = None,
        work: Array | None = None,
    ) -> Array:
        matrix = self.matrices.get(axis)
        if matrix is None or not x.size:
            return resample(x, axis, taps, out, work)
        if out is None:
            out = np.empty((*x.shape[:axis], len(matrix), *x.shape[axis + 1 :]), x.dtype)
        if axis == x.ndim - 1:
            np.matmul(x, matrix.T, out=out)
        else:
            count = math.prod(x.shape[:axis])
            planes = x.reshape(count, x.shape[axis], -1)
            np.matmul(matrix, planes, out=out.reshape(count, len(matrix), -1))
        # Zeros times an infinity have made NaN, where taps without weight are not read.
        return resample(x, axis, taps, out) if np.isnan(out.sum()) else out


def _in_place(x: Operand, taps: dict[int, Taps], along: _Products, chosen: Filter) -> Step:
    """Axis by axis, the last one to the result, in the dtype of the input."""
    shapes: list[tuple[int, ...]] = []
    for axis, tap in taps.items():
        before = shapes[-1] if shapes else x.shape
        shapes.append((*before[:axis], len(tap.index), *before[axis + 1 :]))
    sizes = [aligned_size(shape, x.dtype.itemsize) for shape in shapes]
    # What each axis but the last gives, then memory for the taps of any.
    offsets = list(accumulate(sizes[:-1], initial=0))
    gathers = [along.gathers(axis, tap) for axis, tap in taps.items()]
    most = max(size if has_taps else 0 for size, has_taps in zip(sizes, gathers, strict=True))

    def run(
        x: Array, *_: Array | None, out: Array | None = None, scratch: Array | None = None
    ) -> Array:
        y = np.empty(shapes[-1], x.dtype) if out is None else out

        def memory(place: int, shape: Sequence[int]) -> Array:
            assert scratch is not None, "asked for"
            return scratch_view(scratch, place, shape, x.dtype)

        result = x
        for turn, (axis, tap) in enumerate(taps.items()):
            shape = shapes[turn]
            into = y if shape is shapes[-1] else memory(offsets[turn], shape)
            work = memory(offsets[-1], shape) if gathers[turn] else None
            result = along(result, axis, tap, into, work)
        fill_outside(y, taps, chosen)
        return y

    return Step(run, offsets[-1] + most)


def _matrix(index: Indices, weights: Array, size: int) -> Array:
    matrix = np.zeros((len(index), size))
    np.add.at(matrix, (np.arange(len(index), dtype=np.intp)[:, None], index), weights)
    return matrix


def _is_known(given: Operand | None) -> bool:
    return given is None or given.value is not None or 0 in given.shape


def _value(given: Operand | None) -> Array | None:
    return None if given is None else given.value
