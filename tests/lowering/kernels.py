"""Kernels of the domain `test.lowering`, that tell tests what happens to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array, Operand, Step, kernel, maker

DOMAIN = "test.lowering"

calls: list[str] = []
"""One entry a call of `Count`."""
made: list[list[bool]] = []
"""One entry a call of the maker `Seen`: which operands came with a value."""


@kernel("Count", domain=DOMAIN)
def count(x: Array, *, label: str = "") -> Array:
    """A copy of the input, after a while."""
    calls.append(label)
    time.sleep(0.01)
    return x.copy()


@kernel("Fail", domain=DOMAIN)
def fail(x: Array) -> Array:
    """Raise what no list of exceptions would hold."""
    raise StrangeError("of all things")


class StrangeError(Exception):
    """Raised by `Fail`."""


@maker("Seen", domain=DOMAIN, grade="reference")
def seen(*operands: Operand | None) -> Callable[..., Array]:
    """The first input doubled."""
    made.append([x is not None and x.value is not None for x in operands])
    return lambda x, *others: x + x


@maker("Names", domain=DOMAIN, grade="reference")
def names(x: Operand) -> Callable[..., Array]:
    """A string vector: the name of the thread that served each element."""

    def run(x: Array) -> Array:
        result = np.empty(x.shape, np.object_)
        meeting = threading.Barrier(2)

        def tile(index: int) -> None:
            # Two tiles must be under way at once, else this breaks: threads are really used.
            meeting.wait(timeout=10)
            result[index] = threading.current_thread().name

        parallel_for(len(x), tile)
        return result

    return run


@maker("Overflow", domain=DOMAIN, grade="reference")
def overflow(x: Operand) -> Callable[..., Array]:
    """e to the power of each element, an element a tile, all but the first in other threads."""

    def run(x: Array) -> Array:
        result = np.empty_like(x)

        def tile(index: int) -> None:
            result[index] = np.exp(x[index : index + 1])[0]

        parallel_for(len(x), tile)
        return result

    return run


@maker("Scratched", domain=DOMAIN, grade="reference")
def scratched(x: Operand) -> Step:
    """The input plus one, by way of scratch memory."""
    size = int(np.prod(x.shape)) * x.dtype.itemsize

    def run(x: Array, *, scratch: Any) -> Array:
        assert scratch.nbytes == size
        assert scratch.ctypes.data % 64 == 0
        scratch.view(x.dtype)[:] = x.reshape(-1)
        return scratch.view(x.dtype).reshape(x.shape) + x.dtype.type(1)

    return Step(run, size)
