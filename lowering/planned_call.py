"""What a plan decides about one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from foldline.kernels.channels_last import channels_last
from foldline.kernels.registry import Array
from foldline.lowering.memory_order import in_memory_order
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
    channels_last: bool = False

    def view(self, arena: npt.NDArray[np.uint8]) -> Array:
        """The array in a given arena."""
        start = self.buffer.offset
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        memory = arena[start : start + size].view(self.dtype)
        if self.channels_last:
            return channels_last(memory, self.shape)
        return memory.reshape(self.shape)


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
    channels_last: bool = False
    """Whether the first result has its channels innermost in memory."""
    bind: Callable[..., Callable[[], Any]] | None = None
    """What makes the step where nothing that the kernel is given moves."""
    sees_memory: bool = False
    """Whether the kernel is given all arrays with their axes in the order of memory."""
    origin: BoundCall | None = None
    """The call of the program, where the plan has another one for it."""

    def seen(self, array: Any) -> Any:
        """An operand or result as the kernel is to see it."""
        return in_memory_order(array) if self.sees_memory and array is not None else array
