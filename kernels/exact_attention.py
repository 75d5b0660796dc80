"""Attention in exact mode: products with k ascending, exact functions, sums as one tree.

ONNX's own Attention runs as the function its schema has; this is what other attentions are made
of. Its steps are those of that function.
"""

from __future__ import annotations

import numpy as np

from foldline.kernels.attention import attention_by
from foldline.kernels.exact_bits import canonicalised, greatest
from foldline.kernels.exact_functions import EXP, TANH
from foldline.kernels.exact_products import product
from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.precision import stepped, widened
from foldline.kernels.registry import Array


def softmax_rows(scores: Array) -> Array:
    """Softmax of the last axis, rounded after each step; zeros for a row of -inf throughout."""
    dtype, wide = scores.dtype, widened(scores)
    peak = greatest(wide, (-1,), True)
    peak[np.isneginf(peak)] = 0
    powers = stepped(EXP(stepped(np.asarray(wide - peak), dtype)), dtype)
    totals = stepped(tree_sum(powers, (-1,), True), dtype)
    totals[totals == 0] = 1
    return np.asarray(powers / totals).astype(dtype, copy=False)


attention = canonicalised(attention_by(product, TANH, softmax_rows))
"""Attention 23..25 of arrays, as `attention_reference` takes them."""
