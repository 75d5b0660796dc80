"""Products with a constant matrix of small integers, which is held as such, in strips.

Some strips of columns at a time are widened to float32 and multiplied while they are in cache. From
32 rows on that takes no longer than to read four times the bytes, see `foldline.kernels.strips`;
for 16 rows it takes a tenth more, for 8 a fifth.

Strips are copies, so that a matrix is in memory twice, unless its rows lie close together: strips
of that are read where they are.

The result is exact, so it does not depend on how the products are cut.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldline.kernels.epilogue import Apply
from foldline.kernels.packed_weights import kept_with
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array, aligned_bytes
from foldline.kernels.small_products import SMALL_WORK, row_blocks
from foldline.kernels.strips import LEAST_BLOCK, WIDTH, tiles_worth
from foldline.kernels.windows import even_spans

LEAST_ROWS = 16
"""From so many rows on, a quarter of the memory is worth the time."""
PIECE_BYTES = 1 << 20
"""So much is widened at a time at least: half of it takes a tenth longer."""
MOST_PIECES = 32
"""Into so many pieces a matrix is cut at most, up to LARGE_PIECE_BYTES: each takes some calls."""
LARGE_PIECE_BYTES = 2 << 20

VIEWED_ROW = 2048
"""Strips of rows of at most so many bytes are read where they are, which takes a product 0.05 to
0.1 longer; of rows of 8210 bytes, twice as long."""

_own = threading.local()
"""Memory to widen in. Fresh memory is mapped page by page: three times as long in all."""


def suits_narrow_strips(rows: int, k: int, n: int) -> bool:
    """Whether to hold a constant right factor so."""
    return rows >= LEAST_ROWS and n >= WIDTH and 0 < LEAST_BLOCK * k * WIDTH <= SMALL_WORK


@dataclass(frozen=True)
class NarrowStrips:
    """The strips of a matrix without its zero points: `whole + offset`."""

    whole: Array
    """`(strips, rows, WIDTH)`, of integers; what is beyond the last column does not count."""
    offset: Array | None
    """One float32, where a byte holds what is left after it and would not without it."""
    viewed: Array | None = None
    """The matrix, as a vector, where the strips are views of it."""

    def fetch(self) -> None:
        """Bring what is viewed into cache in the order of memory: strip by strip takes longer."""
        if self.viewed is not None:
            np.bitwise_or.reduce(self.viewed)


def narrow_strips(b: Array, zero: Array | None, start: int, stop: int) -> NarrowStrips:
    """Rows `start:stop` of `b - zero`; copies are kept as long as the memory of `b` lives.

    `zero` is one, or one for each column; all of 8 bits.
    """
    point = None if zero is None or not zero.any() else zero
    if point is None and _can_be_viewed(b):
        return _viewed(b[start:stop])
    zeros = None if point is None else (point.shape, point.tobytes())
    purpose = ("narrow strips", start, stop, zeros)
    return kept_with(b, purpose, lambda: _packed(b[start:stop], point))


def _can_be_viewed(b: Array) -> bool:
    return b.flags.c_contiguous and b.strides[0] <= VIEWED_ROW and b.shape[1] % WIDTH == 0


def _viewed(b: Array) -> NarrowStrips:
    k, n = b.shape
    by_strip = b.reshape(k, n // WIDTH, WIDTH).transpose(1, 0, 2)
    return NarrowStrips(by_strip, None, b.reshape(-1))


def _packed(b: Array, zero: Array | None) -> NarrowStrips:
    k, n = b.shape
    points = np.broadcast_to(0 if zero is None else zero.reshape(-1).astype(np.int16), n)
    dtype, offset = _storage(b, points)
    strips = np.zeros((-(-n // WIDTH), k, WIDTH), dtype)
    for strip, start in zip(strips, range(0, n, WIDTH), strict=True):
        some = slice(start, start + WIDTH)
        part = np.subtract(b[:, some], points[some] + offset, dtype=np.int16)
        np.copyto(strip[:, : part.shape[1]], part, casting="unsafe")
    return NarrowStrips(strips, np.array(offset, np.float32) if offset else None)


def _storage(b: Array, points: Array) -> tuple[np.dtype[Any], int]:
    """A type that holds `b - points - offset`, and that offset."""
    if not points.any():
        return b.dtype, 0
    least, most = int(b.min()) - int(points.max()), int(b.max()) - int(points.min())
    byte = np.iinfo(np.int8)
    if byte.min <= least and most <= byte.max:
        return np.dtype(np.int8), 0
    if most - least <= byte.max - byte.min:
        return np.dtype(np.int8), least - byte.min
    return np.dtype(np.int16), 0


def _widened(strips: Array, offset: Array | None) -> Array:
    """Strips as float32, in memory that the next call on the same thread writes to."""
    memory: Array | None = getattr(_own, "memory", None)
    if memory is None or memory.size < strips.size:
        memory = _own.memory = aligned_bytes(4 * strips.size).view(np.float32)
    wide = memory[: strips.size].reshape(strips.shape)
    np.copyto(wide, strips)
    return wide if offset is None else np.add(wide, offset, out=wide)


class NarrowProduct:
    """Computes `out[rows, n] = a[rows, k] @ b[k, n]` where `suits_narrow_strips` says so."""

    def __init__(self, rows: int, k: int, n: int):
        count = -(-n // WIDTH)
        self._rows = [
            (top, top + size)
            for start, number, size in row_blocks(rows, k * WIDTH)
            for top in range(start, start + number * size, size)
        ]
        size = count * k * WIDTH * 4
        pieces = -(-size // max(PIECE_BYTES, min(LARGE_PIECE_BYTES, size // MOST_PIECES)))
        self._pieces = even_spans(count, min(count, max(pieces, tiles_worth(rows * k * n))))

    def __call__(self, a: Array, b: NarrowStrips, out: Array, apply: Apply | None = None) -> None:
        """`apply` is called for each tile once it is finished, see `foldline.kernels.epilogue`."""
        rows, n = out.shape
        b.fetch()

        def piece(index: int) -> None:
            first, last = self._pieces[index]
            wide = _widened(b.whole[first:last], b.offset)
            begin, end = first * WIDTH, min(last * WIDTH, n)
            part, whole = out[:, begin:end], (end - begin) // WIDTH
            for top, bottom in self._rows:
                some = part[top:bottom]
                by_strip = some[:, : whole * WIDTH].reshape(bottom - top, whole, WIDTH)
                np.matmul(a[top:bottom], wide[:whole], out=by_strip.transpose(1, 0, 2))
                if whole < last - first:
                    rest = some[:, whole * WIDTH :]
                    np.matmul(a[top:bottom], wide[whole, :, : rest.shape[1]], out=rest)
            if apply is not None:
                apply(part, 0, begin, rows, end - begin)

        parallel_for(len(self._pieces), piece)
