"""Reductions in exact mode: sums and products as one binary tree, maxima in a total order."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldline.kernels.exact_bits import canonical, greatest, least
from foldline.kernels.exact_sums import tree_mean, tree_product, tree_sum
from foldline.kernels.reduction import Axes, register
from foldline.kernels.registry import Array


def reduce_sum(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Array:
    """ReduceSum: 0 over no elements; integers wrap around."""
    return tree_sum(x, axes, keepdims)


def reduce_mean(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Array:
    """ReduceMean: NaN over no elements; of integers, exact and then cut towards zero."""
    if x.dtype.kind not in "iu":
        return tree_mean(x, axes, keepdims)
    wide = np.dtype(np.int64 if x.dtype.kind == "i" else np.uint64)
    total = tree_sum(x.astype(wide), axes, keepdims)
    quotient, rest = np.divmod(total, np.array(x.size // total.size if total.size else 1, wide))
    return np.asarray(quotient + ((rest != 0) & (total < 0)))


def reduce_prod(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Array:
    """ReduceProd: 1 over no elements; integers wrap around."""
    return tree_product(x, axes, keepdims)


def reduce_max(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Array:
    """ReduceMax: the lowest value of the dtype (-inf, false) over no elements; NaN wins."""
    return greatest(x, axes, keepdims)


def reduce_min(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Array:
    """ReduceMin: the highest value of the dtype (+inf, true) over no elements; NaN wins."""
    return least(x, axes, keepdims)


def reduce_l1(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Array:
    """ReduceL1: sum of magnitudes."""
    return tree_sum(np.absolute(x), axes, keepdims)


def reduce_sum_square(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Array:
    """ReduceSumSquare: sum of squares; integers wrap around."""
    return tree_sum(np.multiply(x, x), axes, keepdims)


def reduce_l2(x: Array, axes: Axes, keepdims: bool, out: Array | None = None) -> Any:
    """ReduceL2: root of the sum of squares; of integers, cut to an integer."""
    return canonical(np.asarray(np.sqrt(reduce_sum_square(x, axes, keepdims))))


for _op_type, _body, _axes_input_since in (
    ("ReduceL1", reduce_l1, 18),
    ("ReduceL2", reduce_l2, 18),
    ("ReduceMax", reduce_max, 18),
    ("ReduceMean", reduce_mean, 18),
    ("ReduceMin", reduce_min, 18),
    ("ReduceProd", reduce_prod, 18),
    ("ReduceSum", reduce_sum, 13),
    ("ReduceSumSquare", reduce_sum_square, 18),
):
    register(_op_type, _body, _axes_input_since, "exact")
