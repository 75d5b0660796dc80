"""RotaryEmbedding 23: pairs of elements rotated by an angle that depends on the position."""

from __future__ import annotations

import numpy as np

from foldline.kernels.attention import unpacked
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel


@kernel("RotaryEmbedding")
@widening
def rotary_embedding(
    x: Array,
    cos_cache: Array,
    sin_cache: Array,
    position_ids: Array | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
    out: Array | None = None,
) -> Array:
    """RotaryEmbedding 23: `(batch, heads, length, size)` or `(batch, length, heads * size)`.

    The first `rotary_embedding_dim` elements of a head are rotated, all when that is 0. A pair is
    two neighbours when `interleaved`, else one element of each half. The caches are
    `(positions, half)` with `position_ids` `(batch, length)`, else `(batch, length, half)`.
    ValueError when a packed input comes without `num_heads`, or the caches do not fit.
    """
    out = np.empty(x.shape, x.dtype) if out is None else out
    source, result = unpacked(x, num_heads), unpacked(out, num_heads)
    count = rotary_embedding_dim or source.shape[-1]
    cos, sin = (
        np.expand_dims(cache if position_ids is None else cache[position_ids], 1)
        for cache in (cos_cache, sin_cache)
    )
    if not cos.shape[-1] == sin.shape[-1] == count // 2:
        raise ValueError(
            f"caches of {cos.shape[-1]} and {sin.shape[-1]} angles do not fit {count} elements"
        )
    first, second = slice(0, count // 2), slice(count // 2, count)
    if interleaved:
        first, second = slice(0, count, 2), slice(1, count, 2)
    real, imaginary = source[..., first], source[..., second]
    np.subtract(cos * real, sin * imaginary, out=result[..., first])
    np.add(sin * real, cos * imaginary, out=result[..., second])
    result[..., count:] = source[..., count:]
    return out
