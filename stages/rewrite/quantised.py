"""Quantised values as rules meet them: what DequantizeLinear reads, what QuantizeLinear makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.quantisation import DequantizeLinearOp, QuantizeLinearOp
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.types import AbsentType, element_of, element_type, rank
from foldline.stages.rewrite.building import RuleBuilder

BYTES = frozenset(map(np.dtype, (np.int8, np.uint8)))
"""What quantised operators compute on."""

_UNUSUAL = ("block_size", "output_dtype", "precision")
"""Attributes that make Q and DQ something else than one scale for a tensor or an index."""


@dataclass(frozen=True)
class Codes:
    """A tensor of integers with its constant scale and zero point."""

    value: SSAValue | None
    """The integers; None where they are yet to be computed."""
    dtype: np.dtype[Any]
    scale_value: SSAValue
    zero_value: SSAValue | None
    scale: Array
    zero: Array | None
    axis: int | None
    """The axis that has a scale for each index; None where there is one for all."""

    @property
    def limits(self) -> tuple[float, float]:
        """The numbers that the least and the greatest code stand for, of one scale for all."""
        info, zero = np.iinfo(self.dtype), int(self.zero_array)
        scale = float(self.scale.reshape(()))
        return (info.min - zero) * scale, (info.max - zero) * scale

    @property
    def zero_array(self) -> Array:
        """The zero point, 0 where none is given."""
        return np.zeros((), self.dtype) if self.zero is None else self.zero.reshape(self._shape)

    @property
    def _shape(self) -> tuple[int, ...]:
        return () if self.axis is None else self.scale.shape

    def zero_in(self, build: RuleBuilder) -> SSAValue:
        """The zero point as an operand that has to be there."""
        return build.constant(self.zero_array) if self.zero_value is None else self.zero_value


def dequantised(value: SSAValue, *dtypes: type[np.generic]) -> Codes | str:
    """The codes behind a value, or why there are none of these types, by default of 8 bits."""
    if not isinstance(value.owner, DequantizeLinearOp):
        return "it is not dequantised"
    found = _read(value.owner, value.owner.x, _dtype_of(value.owner.x))
    wanted = frozenset(map(np.dtype, dtypes)) or BYTES
    if isinstance(found, Codes) and found.dtype not in wanted:
        return f"its codes are {found.dtype.name}"
    return found


def is_dequantised_constant(value: SSAValue) -> bool:
    """Whether a value is computed of constants by one DequantizeLinear, so once in a session."""
    op = value.owner
    return isinstance(op, DequantizeLinearOp) and all(
        isinstance(operand.type, AbsentType) or constant_tensor(operand) is not None
        for operand in op.operands
    )


def quantised(op: QuantizeLinearOp) -> Codes | str:
    """How a node quantises, one scale for all; or why it does otherwise."""
    zero = op.zero_point
    dtype = np.dtype(np.uint8) if zero is None else _dtype_of(zero)
    found = _read(op, None, dtype)
    if isinstance(found, Codes) and found.dtype not in BYTES:
        return f"it quantises to {found.dtype.name}"
    if isinstance(found, Codes) and found.axis is not None:
        return "it has a scale for each index of an axis"
    return found


def _read(
    op: QuantizeLinearOp | DequantizeLinearOp,
    value: SSAValue | None,
    dtype: np.dtype[Any] | None,
) -> Codes | str:
    if (unusual := _unusual(op)) is not None:
        return unusual
    if dtype is None:
        return "the type of its codes is not known"
    scale, zero = _constant(op.scale), _constant(op.zero_point)
    if scale is None:
        return "its scale is not constant"
    if zero is None and op.zero_point is not None:
        return "its zero point is not constant"
    if scale.dtype != np.float32:
        return f"its scale is {scale.dtype.name}"
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return "its scale is not positive and finite"
    if zero is not None and zero.dtype != dtype:
        return f"its zero point is {zero.dtype.name}, its codes are {dtype.name}"
    if zero is not None and zero.size != scale.size:
        return f"it has {scale.size} scales and {zero.size} zero points"
    axis = _axis(op, scale)
    if isinstance(axis, str):
        return axis
    return Codes(value, dtype, op.scale, op.zero_point, scale, zero, axis)


def _unusual(op: OnnxOp) -> str | None:
    for name in _UNUSUAL:
        given = op.value_of(name)
        if isinstance(op.properties.get(name), ReferenceAttr):
            return f"its {name} is a parameter of a function"
        if given:
            return f"its {name} is {given}"
    return None


def _axis(op: QuantizeLinearOp | DequantizeLinearOp, scale: Array) -> int | str | None:
    if scale.size == 1 and scale.ndim <= 1:
        return None
    axes = rank(op.x.type)
    if scale.ndim != 1 or axes is None:
        return f"its scale has shape {list(scale.shape)}"
    given = op.int_of("axis")
    return (1 if given is None else given) % axes


def _constant(value: SSAValue | None) -> Array | None:
    tensor = None if value is None else constant_tensor(value)
    return None if tensor is None else tensor.array


def _dtype_of(value: SSAValue) -> np.dtype[Any] | None:
    attribute = element_type(value.type)
    row = None if attribute is None else element_of(attribute)
    return None if row is None else row.numpy
