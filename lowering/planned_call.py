"""What a plan decides about one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from foldline.kernels.registry import Array
from foldline.lowering.plan_buffers import Buffer
from foldline.lowering.steps import BoundCall

Kind: TypeAlias = Literal["view", "copy", "out", "fresh", "generic"]
"""How a call runs.

view     never: its result is a view of memory that does not move
copy     its operand is copied into the arena in C order, the result is a view of the copy
out      it writes its first result into the arena
fresh    it allocates its results, whose shapes are decided
generic  as in the shape-generic program
"""


@dataclass(frozen=True)
class Place:
    """An array in the arena."""

    buffer: Buffer
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def view(self, arena: npt.NDArray[np.uint8]) -> Array:
        """The array in a given arena."""
        start = self.buffer.offset
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        return arena[start : start + size].view(self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Span:
    """Calls that run together, by their places in the plan."""

    first: int
    last: int


@dataclass
class PlannedCall:
    """A call and what was decided about it."""

    call: BoundCall
    kind: Kind
    run: Callable[..., Any]
    """Takes the inputs; of a generic call, the frame."""
    place: Place | None = None
    """Of the first result, or of the copied operand."""
    scratch: Place | None = None
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    """Shapes that fresh results must have, for the plan relies on them."""
    span: Span | None = None
    """The stretch of calls with which it runs part by part."""
    frees: tuple[int, ...] = ()
