"""Softmax, LogSoftmax and the reductions by logarithms in exact mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldline.kernels.exact_bits import canonical, canonicalised, greatest
from foldline.kernels.exact_functions import EXP, LOG
from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.precision import rounded, stepped, widened, widening
from foldline.kernels.reduction import Axes, register
from foldline.kernels.registry import Array, kernel
from foldline.kernels.softmax import Shape3, matrix_of, one_axis


@kernel("Softmax", until=13, grade="exact")
def softmax_11(x: Array, *, axis: int = 1) -> Array:
    """Softmax 1/11: over each row of X seen as a matrix."""
    return _shares(x, matrix_of(x.shape, axis))


@kernel("Softmax", since=13, grade="exact")
def softmax(x: Array, *, axis: int = -1) -> Array:
    """Softmax 13: `exp(x - max) / sum(exp(x - max))` along `axis`; half types step by step."""
    return _shares(x, one_axis(x.shape, axis))


def _shares(x: Array, shape: Shape3) -> Array:
    dtype, wide = x.dtype, widened(x.reshape(shape))
    powers = stepped(EXP(stepped(_shifted(wide), dtype)), dtype)
    totals = stepped(tree_sum(powers, (1,), True), dtype)
    return canonical(rounded(np.asarray(powers / totals), dtype)).reshape(x.shape)


def _shifted(x: Array) -> Array:
    return np.asarray(np.subtract(x, greatest(x, (1,), True)))


@kernel("LogSoftmax", until=13, grade="exact")
@canonicalised
@widening
def log_softmax_11(x: Array, *, axis: int = 1) -> Array:
    """LogSoftmax 1/11: over each row of X seen as a matrix."""
    return _log_shares(x.reshape(matrix_of(x.shape, axis))).reshape(x.shape)


@kernel("LogSoftmax", since=13, grade="exact")
@canonicalised
@widening
def log_softmax(x: Array, *, axis: int = -1) -> Array:
    """LogSoftmax 13: `x - max - log(sum(exp(x - max)))` along `axis`."""
    return _log_shares(x.reshape(one_axis(x.shape, axis))).reshape(x.shape)


def _log_shares(x: Array) -> Array:
    shifted = _shifted(x)
    return np.asarray(shifted - LOG(tree_sum(EXP(shifted), (1,), True)))


def reduce_log_sum(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Array:
    """ReduceLogSum: logarithm of the sum; -inf over no elements."""
    return LOG(_as_floats(tree_sum(x, axes, keepdims)))


def reduce_log_sum_exp(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceLogSumExp: exact at -inf and +inf, and no overflow for large elements."""
    x = _as_floats(x)
    peak = greatest(x, axes, True)
    # Subtracting an infinity from itself would give NaN; exp takes it as it is.
    peak = np.where(np.isfinite(peak), peak, np.zeros((), x.dtype))
    total = LOG(tree_sum(EXP(np.asarray(x - peak)), axes, keepdims))
    return canonical(np.asarray(total + peak.reshape(total.shape)))


def _as_floats(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype.kind in "iu" else x


register("ReduceLogSum", reduce_log_sum, 18, "exact")
register("ReduceLogSumExp", reduce_log_sum_exp, 18, "exact")
