"""MatMulNBits of ONNX Runtime: a product with weights of few bits, each block with its scale.

W[n, k] = (code[n, k] - zero_point[n, block of k]) * scale[n, block of k]        Y = A @ W'
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels.matmul import matmul
from foldline.kernels.precision import rounded, widened, working_dtype
from foldline.kernels.registry import Array, Operand, maker


@maker("MatMulNBits", domain="com.microsoft")
def matmul_n_bits(
    a: Operand,
    b: Operand,
    scales: Operand,
    zero_points: Operand | None = None,
    g_idx: Operand | None = None,
    bias: Operand | None = None,
    *,
    K: int,
    N: int,
    block_size: int,
    accuracy_level: int = 0,
    bits: int = 4,
    weight_prepacked: int = 0,
) -> Callable[..., Array]:
    """MatMulNBits 1: `b` holds the codes of `(N, blocks, block_size)`, low bits first.

    Zero points are packed like the codes, a row at a time, or of the type of `a`; by default they
    are half the number of codes. Computed in float32, whatever `accuracy_level` allows. ValueError
    for weights in an order of their own: `g_idx`, `weight_prepacked`.
    """
    refuse_orders(g_idx, weight_prepacked)

    def weights(b: Array, scales: Array, zero_points: Array | None) -> Array:
        return n_bits_weights(b, scales, zero_points, (N, K), block_size, bits)

    kept = None
    parts = [x.value for x in (b, scales, zero_points) if x is not None]
    if all(part is not None for part in parts) and b.value is not None:
        assert scales.value is not None
        kept = weights(b.value, scales.value, None if zero_points is None else zero_points.value)
    multiply = matmul(
        Operand(a.shape, working_dtype(a.dtype)), Operand((K, N), np.dtype(np.float32), kept)
    )

    def run(
        a: Array,
        b: Array,
        scales: Array,
        zero_points: Array | None = None,
        g_idx: Array | None = None,
        bias: Array | None = None,
    ) -> Array:
        right = weights(b, scales, zero_points) if kept is None else kept
        y = multiply(widened(a), right)
        return rounded(y if bias is None else y + widened(bias), a.dtype)

    return run


def refuse_orders(g_idx: Array | Operand | None, weight_prepacked: int) -> None:
    """ValueError for weights in an order of their own."""
    if g_idx is not None or weight_prepacked:
        raise ValueError("g_idx and weight_prepacked are not supported")


def n_bits_weights(
    b: Array,
    scales: Array,
    zero_points: Array | None,
    shape: tuple[int, int],
    block_size: int,
    bits: int,
) -> Array:
    """The weights that the codes of `shape` (N, K) stand for, as float32 `(K, N)`."""
    n, k = shape
    blocks = -(-k // block_size)
    codes = _unpacked(b.reshape(n, blocks, -1), bits)[..., :block_size].astype(np.float32)
    if zero_points is None:
        zeros = np.float32(1 << (bits - 1))
    elif zero_points.dtype == np.uint8:
        zeros = _unpacked(zero_points.reshape(n, -1), bits)[:, :blocks, None]
    else:
        zeros = widened(zero_points).reshape(n, blocks, 1)
    values = (codes - zeros) * widened(scales).reshape(n, blocks, 1)
    return np.ascontiguousarray(values.reshape(n, -1)[:, :k].T, dtype=np.float32)


def _unpacked(x: Array, bits: int) -> Array:
    """The codes in the bytes of the last axis. ValueError for codes that cross bytes."""
    if 8 % bits:
        raise ValueError(f"codes of {bits} bits are not supported")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = (x[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return codes.reshape(*x.shape[:-1], -1)
