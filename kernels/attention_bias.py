"""What Attention adds to its scores: 0 where a query may see a key, -inf where not, or a mask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldline.kernels.registry import Array
from foldline.kernels.ufuncs import constant


@dataclass(frozen=True)
class Visibility:
    """Which keys a query sees, apart from masks: `p - left <= key <= p + right`.

    `p`, the position of a query, is its index plus an offset: the number of keys before it.
    """

    queries: int
    keys: int
    left: int | None = None
    right: int | None = None

    @staticmethod
    def of(queries: int, keys: int, is_causal: int, left: int, right: int) -> Visibility:
        """From the attributes, where -1 is no bound. ValueError for less."""
        if min(left, right) < -1:
            raise ValueError(f"window sizes are {left} and {right}, expected -1 or more")
        bounds = [bound for bound in (right, 0 if is_causal else -1) if bound >= 0]
        return Visibility(queries, keys, left if left >= 0 else None, min(bounds, default=None))

    @property
    def is_bounded(self) -> bool:
        """Whether there is anything it hides."""
        return self.left is not None or self.right is not None

    def allowed(self, offset: int | Array) -> Array:
        """True where a key is seen; `offset` is one or has one for each batch `(n, 1, 1, 1)`."""
        position = np.arange(self.queries, dtype=np.int64)[:, None] + offset
        key = np.arange(self.keys, dtype=np.int64)
        seen = np.ones(np.broadcast_shapes(position.shape, key.shape), np.bool_)
        if self.right is not None:
            seen &= key <= position + self.right
        if self.left is not None:
            seen &= key >= position - self.left
        return seen

    def key_range(self, rows: slice, offset: int) -> slice:
        """The keys that any of the queries `rows` sees."""
        first, last = rows.start + offset, rows.stop - 1 + offset
        stop = self.keys if self.right is None else min(self.keys, last + self.right + 1)
        start = 0 if self.left is None else max(0, first - self.left)
        return slice(start, max(start, stop))


def attention_bias(
    visibility: Visibility,
    mask: Array | None,
    past: int,
    lengths: Array | None,
    dtype: np.dtype[Any],
) -> Array | None:
    """The bias `(…, queries, keys)`, of up to four axes; None when there is nothing to add.

    `mask`: True where a key is seen, or numbers to add; keys beyond its end are not seen.
    `past`: keys before the first query. `lengths`: for each batch the keys that are not padding,
    the last of which is at the last query.
    """
    offset: int | Array = past
    allowed: Array | None = None
    if lengths is not None:
        ends = lengths.reshape(-1, 1, 1, 1)
        allowed = np.arange(visibility.keys, dtype=np.int64) < ends
        offset = ends - visibility.queries
    if visibility.is_bounded:
        seen = visibility.allowed(offset)
        allowed = seen if allowed is None else allowed & seen
    if mask is None:
        return None if allowed is None else _minus_infinity_unless(allowed, dtype)
    missing = visibility.keys - mask.shape[-1]
    if mask.dtype == np.bool_:
        mask = _extended(mask, missing, False)
        return _minus_infinity_unless(mask if allowed is None else mask & allowed, dtype)
    mask = _extended(mask.astype(dtype), missing, -np.inf)
    return mask if allowed is None else mask + _minus_infinity_unless(allowed, dtype)


def fully_masked(bias: Array | None) -> Array | None:
    """Where a query sees no key, with one key axis; None when every query sees one."""
    if bias is None:
        return None
    masked = np.isneginf(np.maximum.reduce(bias, axis=-1, keepdims=True, initial=-np.inf))
    return masked if masked.any() else None


def _minus_infinity_unless(allowed: Array, dtype: np.dtype[Any]) -> Array:
    return np.where(allowed, constant(0, dtype), constant(-np.inf, dtype))


def _extended(mask: Array, count: int, value: float) -> Array:
    if count <= 0:
        return mask
    more = np.full((*mask.shape[:-1], count), value, mask.dtype)
    return np.concatenate((mask, more), axis=-1)
