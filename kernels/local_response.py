"""LRN 1/13, the local response normalisation of AlexNet."""

from __future__ import annotations

import numpy as np

from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import destination


@kernel("LRN")
@widening
def lrn(
    x: Array,
    *,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
    out: Array | None = None,
    scratch: Array | None = None,
) -> Array:
    """LRN 1/13: `x / (bias + alpha / size * (squares of `size` channels around))^beta`."""
    kind = x.dtype.type
    squares = np.multiply(x, x, out=destination(x, scratch))
    total = destination(x, out)
    total.fill(0)
    for shift in range(-((size - 1) // 2), size // 2 + 1):
        seen = slice(max(0, shift), x.shape[1] + min(0, shift))
        into = slice(max(0, -shift), x.shape[1] - max(0, shift))
        if seen.start < seen.stop:
            total[:, into] += squares[:, seen]
    total *= kind(alpha / size)
    total += kind(bias)
    if beta == 0.75:
        # power() is ten times as slow as two square roots.
        np.sqrt(total, out=squares)
        total *= squares
        np.sqrt(total, out=total)
    else:
        np.power(total, kind(beta), out=total)
    return np.divide(x, total, out=total)
