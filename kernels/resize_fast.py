"""Resize whose taps are found when the plan is made, where its sizes or scales are constant.

An axis with weighted taps is then a product with a matrix, most of it zeros, which costs less than
gathering the taps unless the axis is long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.interpolation import Indices, Taps, resample
from foldline.kernels.registry import Array, Operand, maker
from foldline.kernels.resize import Filter, lines_of, resample_all, taps_of

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
) -> Callable[..., Array]:
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

        def run_planned(x: Array, *_: Array | None) -> Array:
            return resample_all(x, taps, chosen, along)

        return run_planned

    def run(
        x: Array,
        roi: Array | None = None,
        scales: Array | None = None,
        sizes: Array | None = None,
    ) -> Array:
        lines = lines_of(x.shape, roi, scales, sizes, axes, chosen, policy)
        return resample_all(x, taps_of(lines, chosen), chosen)

    return run


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

    def __call__(self, x: Array, axis: int, taps: Taps) -> Array:
        matrix = self.matrices.get(axis)
        if matrix is None or not x.size:
            return resample(x, axis, taps)
        if axis == x.ndim - 1:
            product = np.matmul(x, matrix.T)
        else:
            planes = x.reshape(math.prod(x.shape[:axis]), x.shape[axis], -1)
            product = np.matmul(matrix, planes)
            product = product.reshape(*x.shape[:axis], len(matrix), *x.shape[axis + 1 :])
        # Zeros times an infinity have made NaN, where taps without weight are not read.
        return resample(x, axis, taps) if np.isnan(product.sum()) else product


def _matrix(index: Indices, weights: Array, size: int) -> Array:
    matrix = np.zeros((len(index), size))
    np.add.at(matrix, (np.arange(len(index), dtype=np.intp)[:, None], index), weights)
    return matrix


def _is_known(given: Operand | None) -> bool:
    return given is None or given.value is not None or 0 in given.shape


def _value(given: Operand | None) -> Array | None:
    return None if given is None else given.value
