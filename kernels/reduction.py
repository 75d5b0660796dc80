"""Reductions over axes, and ArgMax and ArgMin.

    x (half types widened to float32) -> body -> rounded once to the dtype of the input

Older versions take `axes` as an attribute, newer ones as an input; the table at the end
registers every operator for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.arguments import ints
from foldline.kernels.precision import rounded, working_dtype
from foldline.kernels.registry import Array, Grade, kernel

Axes = tuple[int, ...] | None
"""The axes to reduce; None means all of them."""
Body = Callable[[Array, Axes, bool, Array | None], Any]
"""(x, axes, keepdims, out or None) -> the reduction, in the dtype of x or a wider one."""


_SUMS = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


@kernel("ArgMax", exact=True)
def arg_max(data: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """ArgMax 1+: int64 index of the maximum along `axis`, the first or the last one.

    The first NaN counts as the maximum. ValueError when `axis` has no elements.
    """
    return _arg(np.argmax, data, axis, keepdims, select_last_index)


@kernel("ArgMin", exact=True)
def arg_min(data: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """ArgMin 1+: int64 index of the minimum, otherwise as ArgMax."""
    return _arg(np.argmin, data, axis, keepdims, select_last_index)


def register(op_type: str, body: Body, axes_input_since: int, grade: Grade = "reference") -> None:
    """Register `body` for an operator whose `axes` became an input at `axes_input_since`."""

    @kernel(op_type, until=axes_input_since, grade=grade)
    def by_attribute(
        data: Array,
        *,
        axes: Sequence[int] | None = None,
        keepdims: int = 1,
        out: Array | None = None,
    ) -> Array:
        return _reduce(body, data, tuple(axes) if axes else None, keepdims, out)

    @kernel(op_type, since=axes_input_since, grade=grade)
    def by_input(
        data: Array,
        axes: Array | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
        out: Array | None = None,
    ) -> Array:
        given = () if axes is None else ints(axes)
        return _reduce(body, data, given if given or noop_with_empty_axes else None, keepdims, out)


def _reduce(body: Body, data: Array, axes: Axes, keepdims: int, out: Array | None) -> Array:
    if data.ndim == 0:
        # No axis exists, but runtimes take axis 0 and -1 of a scalar, and exporters write them.
        axes = None
    wide = working_dtype(data.dtype)
    result = body(
        data.astype(wide, copy=False), axes, bool(keepdims), out if wide == data.dtype else None
    )
    if result is out and out is not None:
        return out
    return rounded(np.asarray(result), data.dtype, out)


def reduce_sum(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceSum: 0 over no elements; integers wrap around."""
    return np.add.reduce(x, axes, x.dtype, out=out, keepdims=keepdims)


def reduce_mean(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceMean: NaN over no elements; of integers, exact and then cut towards zero."""
    wide = _SUMS.get(x.dtype.kind, x.dtype)
    total = np.asarray(np.add.reduce(x, axes, wide, keepdims=keepdims))
    count = group_size(x, total)
    if x.dtype.kind not in "iu":
        return np.divide(total, count, out)
    quotient, rest = np.divmod(total, count)
    return quotient + ((rest != 0) & (total < 0))


def group_size(x: Array, reduced: Array) -> Array:
    """How many elements of `x` went into one of `reduced`, in the dtype of the latter."""
    return np.asarray(x.size // reduced.size if reduced.size else 1, reduced.dtype)


def reduce_prod(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceProd: 1 over no elements; integers wrap around."""
    return np.multiply.reduce(x, axes, x.dtype, out=out, keepdims=keepdims)


def reduce_max(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceMax: the lowest value of the dtype (-inf, false) over no elements; NaN wins."""
    return np.maximum.reduce(x, axes, out=out, keepdims=keepdims, initial=_limit(x.dtype, -1))


def reduce_min(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceMin: the highest value of the dtype (+inf, true) over no elements; NaN wins."""
    return np.minimum.reduce(x, axes, out=out, keepdims=keepdims, initial=_limit(x.dtype, 1))


def reduce_l1(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceL1: sum of magnitudes."""
    return reduce_sum(np.absolute(x), axes, keepdims, out)


def reduce_sum_square(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceSumSquare: sum of squares; integers wrap around."""
    return reduce_sum(np.multiply(x, x), axes, keepdims, out)


def reduce_l2(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceL2: root of the sum of squares; of integers, cut to an integer."""
    return np.sqrt(reduce_sum_square(x, axes, keepdims), out=_if_float(out))


def reduce_log_sum(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceLogSum: logarithm of the sum; -inf over no elements."""
    return np.log(reduce_sum(x, axes, keepdims), out=_if_float(out))


def reduce_log_sum_exp(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceLogSumExp: exact at -inf and +inf, and no overflow for large elements."""
    if x.dtype.kind in "iu":
        x = x.astype(np.float64)
    peak = np.asarray(reduce_max(x, axes, True))
    # Subtracting an infinity from itself would give NaN; exp takes it as it is.
    peak = np.where(np.isfinite(peak), peak, np.zeros((), x.dtype))
    shifted = np.asarray(np.subtract(x, peak))
    total = np.log(reduce_sum(np.exp(shifted, out=shifted), axes, keepdims))
    return np.add(total, peak.reshape(np.shape(total)), _if_float(out))


def _if_float(out: Array | None) -> Array | None:
    """Where integers are the result, the floats before it need other memory."""
    return None if out is not None and out.dtype.kind in "iu" else out


def _limit(dtype: np.dtype[Any], sign: int) -> Any:
    """The lowest (sign -1) or highest value of a dtype."""
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind in "iu":
        return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min
    return sign * np.inf


_Arg = Callable[..., npt.NDArray[np.intp]]


def _arg(function: _Arg, data: Array, axis: int, keepdims: int, last: int) -> Array:
    if last and data.ndim:
        index = function(np.flip(data, axis), axis, keepdims=bool(keepdims))
        index = data.shape[axis] - 1 - index
    else:
        index = function(data, axis, keepdims=bool(keepdims))
    return np.asarray(index, np.int64)


for _op_type, _body, _axes_input_since in (
    ("ReduceL1", reduce_l1, 18),
    ("ReduceL2", reduce_l2, 18),
    ("ReduceLogSum", reduce_log_sum, 18),
    ("ReduceLogSumExp", reduce_log_sum_exp, 18),
    ("ReduceMax", reduce_max, 18),
    ("ReduceMean", reduce_mean, 18),
    ("ReduceMin", reduce_min, 18),
    ("ReduceProd", reduce_prod, 18),
    ("ReduceSum", reduce_sum, 13),
    ("ReduceSumSquare", reduce_sum_square, 18),
):
    register(_op_type, _body, _axes_input_since)
