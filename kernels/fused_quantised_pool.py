"""GlobalAveragePool between DequantizeLinear and QuantizeLinear: their kernels one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels import exact_quantisation as exactly
from foldline.kernels.quantisation import dequantize_linear, quantize_linear
from foldline.kernels.registry import GRADES, LATEST, Array, compute, find_kernel, kernel

DOMAIN = "foldline"


def _pooled(mode: str, *around: Callable[..., Array]) -> Callable[..., Array]:
    dequantise, quantise = around

    def run(
        x: Array,
        x_scale: Array,
        x_zero_point: Array | None,
        y_scale: Array,
        y_zero_point: Array,
    ) -> Array:
        pool = find_kernel("", "GlobalAveragePool", LATEST - 1, GRADES[mode])
        assert pool is not None
        means = np.asarray(compute(pool, (dequantise(x, x_scale, x_zero_point),)))
        return quantise(means, y_scale, y_zero_point)

    return run


kernel("QLinearGlobalAveragePool", domain=DOMAIN)(
    _pooled("fast", dequantize_linear, quantize_linear)
)
kernel("QLinearGlobalAveragePool", domain=DOMAIN, grade="exact")(
    _pooled("exact", exactly.dequantize_linear, exactly.quantize_linear)
)
