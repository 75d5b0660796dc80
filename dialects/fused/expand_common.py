"""What the expansions of all families share: constants of the right type."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fused.parts import Parts
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.types import element_of, element_type
from foldline.support.dtypes import ElementType


def element(value: SSAValue) -> ElementType:
    """The element type of a value, which is known by the time anything is fused."""
    attribute = element_type(value.type)
    found = None if attribute is None else element_of(attribute)
    assert found is not None
    return found


def scalar(op: OnnxOp, parts: Parts, value: float) -> SSAValue:
    """A constant of the element type of the first input that is not of integers."""
    kinds = (element(operand).numpy for operand in op.operands)
    return parts.constant(np.array(value, next(kind for kind in kinds if kind.kind not in "iu")))
