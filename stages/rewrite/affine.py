"""What a node does to each channel of a value: `y -> (y - before) factor + after`.

BatchNormalization does so by its statistics, Mul, Div, Add and Sub with constants that are one
number, or one a channel. All in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.nn import BatchNormalizationOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.tensor import Array
from foldline.stages.replacing import is_parametric

Floats: TypeAlias = npt.NDArray[np.float64]

ZERO, ONE = np.zeros(1), np.ones(1)


@dataclass(frozen=True)
class Affine:
    """One number, or one a channel, each."""

    factor: Floats
    before: Floats
    after: Floats

    def of_bias(self, bias: Floats) -> Floats:
        """What becomes of something that is added to the channels."""
        return (bias - self.before) * self.factor + self.after

    @property
    def shifts(self) -> bool:
        """Whether it does more than multiply."""
        return bool(self.before.any() or self.after.any())

    @property
    def is_sum(self) -> bool:
        """Whether it only adds."""
        return bool((self.factor == 1).all())


@dataclass(frozen=True)
class Channels:
    """Which axis of a value the channels are."""

    value: SSAValue
    count: int
    axis: int
    """1, or -1 for the last one."""
    rank: int | None
    """None if it is not known."""


def affine_of(op: NodeOp, channels: Channels) -> Affine | str:
    """What a node does to `channels`, or why that is not of this kind."""
    if is_parametric(op):
        return "its attributes are given by the callers of the function"
    if isinstance(op, BatchNormalizationOp):
        return _of_batchnorm(op, channels)
    return _of_arithmetic(op, channels)


def _of_batchnorm(op: BatchNormalizationOp, channels: Channels) -> Affine | str:
    if op.trains():
        return "the BatchNormalization trains"
    if op.int_of("spatial") == 0:
        return "the BatchNormalization has statistics for each element"
    if channels.axis == -1 and channels.rank != 2:
        return f"the rank is {channels.rank}, so that axis 1 is not the last one"
    given = [constant_tensor(value) for value in op.operands[1:5]]
    arrays = [tensor.array.astype(np.float64) for tensor in given if tensor is not None]
    if len(arrays) < 4:
        return "the statistics of the BatchNormalization are not constant"
    if any(array.shape != (channels.count,) for array in arrays):
        return f"the statistics are not {channels.count} numbers each"
    scale, shift, mean, variance = arrays
    epsilon: Any = op.value_of("epsilon")
    with np.errstate(all="ignore"):
        return Affine(scale / np.sqrt(variance + epsilon), mean, shift)


def _of_arithmetic(op: NodeOp, channels: Channels) -> Affine | str:
    place = 0 if op.operands[0] is channels.value else 1
    other = constant_tensor(op.operands[1 - place])
    if other is None:
        return f"{op.op_type} is with something that is not constant"
    numbers = channel_numbers(op, place, other.array, channels)
    if isinstance(numbers, str):
        return numbers
    match op.op_type, place:
        case "Mul", _:
            return Affine(numbers, ZERO, ZERO)
        case "Div", 0:
            with np.errstate(all="ignore"):
                return Affine(1 / numbers, ZERO, ZERO)
        case "Add", _:
            return Affine(ONE, ZERO, numbers)
        case "Sub", 0:
            return Affine(ONE, numbers, ZERO)
        case "Sub", _:
            return Affine(-ONE, ZERO, numbers)
        case _:
            return "it divides a constant"


def channel_numbers(op: NodeOp, place: int, constant: Array, channels: Channels) -> Floats | str:
    """A constant, seen as one number or one a channel; `place` is that of the other operand."""
    shape = _aligned(op, constant.shape, channels.rank, place)
    if shape is None:
        return f"a constant of shape {list(constant.shape)} may change the shape"
    axis = channels.axis % max(len(shape), 1)
    if any(size != 1 for at, size in enumerate(shape) if at != axis):
        return f"a constant of shape {list(constant.shape)} is not one number a channel"
    if constant.size not in (1, channels.count):
        return f"there are {channels.count} channels, but {constant.size} numbers"
    return constant.reshape(-1).astype(np.float64)


def _aligned(
    op: NodeOp, shape: Sequence[int], rank: int | None, place: int
) -> tuple[int, ...] | None:
    """The shape of a constant with the axes that it lacks as 1; None where it may have more.

    Below version 7 it is the second operand that is broadcast, from `axis` on. If the rank is not
    known, axes are not completed; only one number then is safe, or a vector for the last axis.
    """
    if rank is None:
        return tuple(shape) if len(shape) <= 1 else None
    axis = op.int_of("axis") if isinstance(op, OnnxOp) else None
    if isinstance(op, OnnxOp) and op.since < 7 and (place == 1 or not op.int_of("broadcast")):
        return None
    start = rank - len(shape) if axis is None or axis < 0 else axis
    end = rank - start - len(shape)
    return None if start < 0 or end < 0 else (1,) * start + tuple(shape) + (1,) * end
