"""Images whose channels are innermost in memory: who writes them, and who may read them.

A kernel that says so is given such arrays as they are. An element-wise kernel is given all its
operands and its result with the axes in the order of memory, so it sees contiguous arrays and
cannot tell. For any other call a copy in C order is made, once for all its readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from foldline.kernels.channels_last import RANK, is_channels_last, pixels
from foldline.kernels.precision import rounded
from foldline.kernels.registry import Array, Kernel, Operand
from foldline.lowering.steps import BoundCall, is_array


def in_c_order(x: Array, *, out: Array | None = None) -> Array:
    """A copy of an array in C order, of the dtype of `out` if that is given."""
    return np.array(x, order="C") if out is None else rounded(x, out.dtype, out)


_OUT = frozenset(("out",))
_COPY = Kernel(
    "foldline", "InCOrder", 1, 2, in_c_order, "fast", False, (), False, frozenset(), _OUT
)


def copying_call(source: int, result: int) -> BoundCall:
    """The call that copies the value of a slot to another."""
    return BoundCall(
        where="a copy in C order",
        kernel=_COPY,
        keywords={},
        inputs=(source,),
        captures=(),
        results=(result,),
        frees=(),
        bodies={},
        facts=frozenset(),
        shape_inputs=(),
        constant_inputs=(False,),
    )


def reading(call: BoundCall, copies: Mapping[int, int]) -> BoundCall:
    """The same call reading copies in the place of what they are copies of."""
    inputs = tuple(copies.get(slot, slot) for slot in call.inputs)
    captures = tuple(copies.get(slot, slot) for slot in call.captures)
    return replace(call, inputs=inputs, captures=captures)


def sees_memory(call: BoundCall, inputs: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Whether a call can be given its operands with their axes in the order of memory.

    It is element-wise, and its inputs broadcast to the result axis by axis. Operators of old
    versions broadcast otherwise, but only what has less than three axes.
    """
    if "element-wise" not in call.facts or "random" in call.facts or len(shape) != RANK:
        return False
    arrays = [x for x in inputs if x is not None]
    return (
        any(is_array(x) and is_channels_last(x) and x.shape == shape for x in arrays)
        and all(is_array(x) and (x.size == 1 or x.ndim in (RANK - 1, RANK)) for x in arrays)
        and all(len(x.shape) <= RANK for x in arrays)
    )


def in_memory_order(array: Array) -> Array:
    """An operand of a call that sees memory."""
    if array.ndim < RANK - 1:
        return array
    return pixels(array if array.ndim == RANK else array[None])


def operand_in_memory_order(operand: Operand) -> Operand:
    """The same for what a maker knows of an operand."""
    if operand.value is not None:
        value = in_memory_order(operand.value)
        return Operand(value.shape, operand.dtype, value)
    rank = len(operand.shape)
    if rank < RANK - 1:
        return operand
    batch, channels, height, width = (1,) * (RANK - rank) + operand.shape
    return Operand((batch, height, width, channels), operand.dtype)
