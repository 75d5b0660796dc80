"""Offsets in one arena for buffers that live from one step to another."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

ALIGNMENT = 64


@dataclass
class Buffer:
    """Memory that is written first at step `start` and read last at step `end`."""

    start: int
    end: int
    size: int
    """In bytes."""
    offset: int = -1


def place(buffers: Sequence[Buffer]) -> int:
    """Give every buffer an offset; two that live at one step never overlap.

    Best fit among what is free when a buffer's life begins. Returns the size of the arena.
    """
    free = _FreeList()
    living: list[tuple[int, int, int]] = []
    for buffer in sorted(buffers, key=lambda b: b.start):
        while living and living[0][0] < buffer.start:
            _, offset, size = heappop(living)
            free.release(offset, size)
        size = -(-buffer.size // ALIGNMENT) * ALIGNMENT
        buffer.offset = free.take(size)
        if size:
            heappush(living, (buffer.end, buffer.offset, size))
    return free.top


class _FreeList:
    """Free blocks below `top`, by offset; neighbours are joined."""

    def __init__(self) -> None:
        self.top = 0
        self._blocks: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """The offset of `size` bytes: of the smallest free block that holds them, or at the top."""
        if size == 0:
            return 0
        fits = [(length, offset) for offset, length in self._blocks if length >= size]
        if fits:
            length, offset = min(fits)
            self._blocks.remove((offset, length))
            if length > size:
                insort(self._blocks, (offset + size, length - size))
            return offset
        offset = self.top
        if self._blocks and sum(self._blocks[-1]) == self.top:
            offset, _ = self._blocks.pop()
        self.top = offset + size
        return offset

    def release(self, offset: int, size: int) -> None:
        """Give bytes back."""
        position = bisect_left(self._blocks, (offset, 0))
        if position < len(self._blocks) and self._blocks[position][0] == offset + size:
            size += self._blocks.pop(position)[1]
        if position and sum(self._blocks[position - 1]) == offset:
            position -= 1
            offset, length = self._blocks.pop(position)
            size += length
        self._blocks.insert(position, (offset, size))
