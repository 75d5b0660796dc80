"""How fused attention is cut into tiles, and how its arrays are seen; about shapes alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldline.kernels.attention_fast import LEAST_QUERIES, TILE_BYTES
from foldline.kernels.registry import Array
from foldline.kernels.windows import aligned_size, even_spans, scratch_view


@dataclass(frozen=True)
class Tile:
    outer: tuple[int, ...]
    batch: slice
    heads: slice
    """Heads of keys; all heads of queries that share one are in the tile."""
    rows: slice

    @property
    def shared(self) -> tuple[int | slice, ...]:
        """Where its keys and values are."""
        return (*self.outer, self.batch, self.heads)

    @property
    def own(self) -> tuple[int | slice, ...]:
        """Where its queries and results are."""
        return (*self.shared, slice(None), self.rows)


@dataclass(frozen=True)
class AttentionCase:
    """The static facts: arrays are seen as `(…, batch, kv heads, group, length, size)`."""

    lead: tuple[int, ...]
    """Axes before those of a matrix, at least those of batch and heads."""
    group: int
    rows: int
    keys: int
    size: int
    """Of a query."""
    output: tuple[int, ...]
    """`(…, heads, queries, size)`."""
    itemsize: int

    @staticmethod
    def of(
        q: tuple[int, ...],
        k: tuple[int, ...],
        v: tuple[int, ...],
        mask: tuple[int, ...],
        group: int,
        itemsize: int,
    ) -> AttentionCase | None:
        """None where a mask enlarges the scores, or lengths do not fit."""
        shared = [(*shape[:-3], shape[-3] * group) for shape in (k, v) if len(shape) > 2]
        lead = np.broadcast_shapes(q[:-2], mask[:-2], *shared)
        rows, keys = q[-2], k[-2]
        fits = all(
            size in (1, full) for size, full in zip(mask[:-3:-1], (keys, rows), strict=False)
        )
        if not fits or v[-2] != keys or (group > 1 and lead[-1] != shared[0][-1]):
            return None
        padded = (1,) * (2 - len(lead)) + lead
        return AttentionCase(padded, group, rows, keys, q[-1], (*lead, rows, v[-1]), itemsize)

    def tiles(self) -> Iterator[Tile]:
        """Tiles of about TILE_BYTES of scores; they hang on shapes alone."""
        *outer, batch, heads = self.lead
        heads //= self.group
        row_bytes = max(1, self.group * self.keys * self.itemsize)
        rows = max(LEAST_QUERIES, TILE_BYTES // row_bytes)
        most = max(1, TILE_BYTES // (row_bytes * max(1, self.rows)))
        batches = max(1, most // max(1, heads))
        for place in np.ndindex(*outer):
            for batch_span in even_spans(batch, -(-batch // batches)):
                for head_span in even_spans(heads, -(-heads // most)):
                    for row_span in even_spans(self.rows, -(-self.rows // rows)):
                        yield Tile(place, slice(*batch_span), slice(*head_span), slice(*row_span))

    def tile_bytes(self, tile: Tile) -> int:
        """Scratch for a tile."""
        return sum(aligned_size(shape, self.itemsize) for shape in self._shapes(tile))

    def memory(
        self, tile: Tile, dtype: np.dtype[Any], scratch: Array, offset: int
    ) -> tuple[Array, Array]:
        """Scores `(keys, batch, kv heads, group, queries)` and queries with their last axes turned.

        BLAS takes 1.5 times as long where it has to turn small matrices itself.
        """
        scores, turned = self._shapes(tile)
        after = offset + aligned_size(scores, self.itemsize)
        return (
            scratch_view(scratch, offset, scores, dtype),
            scratch_view(scratch, after, turned, dtype),
        )

    def _shapes(self, tile: Tile) -> tuple[tuple[int, ...], tuple[int, ...]]:
        batch, heads, rows = (s.stop - s.start for s in (tile.batch, tile.heads, tile.rows))
        lead = (batch, heads, self.group)
        return (self.keys, *lead, rows), (*lead, self.size, rows)

    def grouped(self, x: Array) -> Array:
        """A view `(…, batch, kv heads, group, length, size)` of `(…, heads, length, size)`."""
        x = _spread_to(x, self.lead)
        *front, heads, length, size = x.shape
        return x.reshape(*front, heads // self.group, self.group, length, size)

    def shared(self, x: Array) -> Array:
        """A view `(…, batch, kv heads, 1, keys, size)` of keys or values."""
        *front, heads = self.lead
        return _spread_to(x, (*front, heads // self.group))[..., None, :, :]

    def spread(self, mask: Array) -> Array:
        """The mask seen as `(…, batch, kv heads, group, queries, keys)`."""
        return self.grouped(np.broadcast_to(mask, (*self.lead, self.rows, self.keys)))


def _spread_to(x: Array, lead: tuple[int, ...]) -> Array:
    """A view with the axes before the last two broadcast to `lead`; writable where none is."""
    x = x if x.ndim == len(lead) + 2 else x[(None,) * (len(lead) + 2 - x.ndim)]
    return x if x.shape[:-2] == lead else np.broadcast_to(x, (*lead, *x.shape[-2:]))


def keys_first(scores: Array) -> Array:
    """A view `(keys, batch, kv heads, group, queries)` of `(…, queries, keys)`."""
    return scores.transpose(4, 0, 1, 2, 3)


def keys_second(scores: Array) -> Array:
    """A view `(batch, kv heads, group, keys, queries)` of `(keys, …, queries)`."""
    return scores.transpose(1, 2, 3, 0, 4)
