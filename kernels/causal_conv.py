"""CausalConvWithState 27: depthwise convolution over the past, which a state carries on."""

from __future__ import annotations

import numpy as np

from foldline.kernels.activation import swish
from foldline.kernels.precision import rounded, widened
from foldline.kernels.registry import Array, kernel


@kernel("CausalConvWithState")
def causal_conv_with_state(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    past_state: Array | None = None,
    *,
    activation: str = "none",
) -> tuple[Array, Array]:
    """CausalConvWithState 27: `(batch, channels, length)`, weights `(channels, 1, k)`.

    The state is the last `k - 1` inputs, at first zeros. The result is rounded before the
    activation. ValueError when that is none of "none", "silu" and "swish".
    """
    if activation not in ("none", "silu", "swish"):
        raise ValueError(f"activation is {activation!r}, expected 'none', 'silu' or 'swish'")
    dtype, taps, length = x.dtype, weight.shape[2], x.shape[2]
    if past_state is None:
        past_state = np.zeros((*x.shape[:2], taps - 1), dtype)
    whole = np.concatenate((past_state, x), axis=2)
    inputs, factors = widened(whole), widened(weight)
    y = inputs[:, :, :length] * factors[:, :, 0]
    for tap in range(1, taps):
        y += inputs[:, :, tap : tap + length] * factors[:, :, tap]
    if bias is not None:
        y += widened(bias)[:, None]
    y = rounded(y, dtype)
    return y if activation == "none" else swish(y), whole[:, :, length:].copy()
