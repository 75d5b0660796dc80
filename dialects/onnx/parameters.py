"""Parameters that moved from attributes to inputs: one way to read them, whatever the version.

`None` says that the value is not known at compile time; `Given(None)` that the node leaves the
parameter out. Only real constants count, never facts about values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.tensor import Array

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """A parameter about which all is known."""

    value: T | None
    """None where the node leaves it out and its version has no default."""


def given_array(op: OnnxOp, name: str, index: int) -> Given[Array] | None:
    """The attribute `name` or its default, else the constant input at `index`."""
    if isinstance(op.properties.get(name), ReferenceAttr):
        return None
    attribute: Any = op.value_of(name)
    if attribute is not None:
        return Given(np.asarray(attribute))
    operand = op.operand(index)
    if operand is None:
        return Given(None)
    constant = constant_tensor(operand)
    return None if constant is None else Given(constant.array)


def given_ints(op: OnnxOp, name: str, index: int) -> Given[tuple[int, ...]] | None:
    """A parameter that is a list of integers, or one integer."""
    found = given_array(op, name, index)
    if found is None or found.value is None:
        return None if found is None else Given(None)
    return Given(tuple(int(item) for item in found.value.reshape(-1).tolist()))


def given_floats(op: OnnxOp, name: str, index: int) -> Given[tuple[float, ...]] | None:
    """A parameter that is a list of floats, or one float."""
    found = given_array(op, name, index)
    if found is None or found.value is None:
        return None if found is None else Given(None)
    return Given(tuple(float(item) for item in found.value.reshape(-1).tolist()))


def given_number(op: OnnxOp, name: str, index: int) -> Given[int | float] | None:
    """A parameter that is one number; not known if the constant holds several."""
    found = given_array(op, name, index)
    if found is None or found.value is None:
        return None if found is None else Given(None)
    return Given(found.value.reshape(-1)[0].item()) if found.value.size == 1 else None


def known_ints(op: OnnxOp, name: str, index: int) -> tuple[int, ...] | None:
    """A required list of integers; None where it is not known."""
    found = given_ints(op, name, index)
    return None if found is None else found.value
