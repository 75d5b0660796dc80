"""Constant nodes, and what the IR knows to be constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import traits_def
from xdsl.traits import ConstantLike, Pure

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.op import OnnxOp, RequiredOperand, onnx_op, plain_value
from foldline.dialects.onnx.structure import InitializerOp
from foldline.dialects.onnx.tensor import SparseTensorAttr, TensorAttr


def _text_array(value: Any) -> Any:
    array = np.empty(np.shape(value), np.object_)
    array[...] = value
    return array


_FORMS: dict[str, Callable[[Any], Any]] = {
    "value_float": lambda value: np.asarray(value, np.float32),
    "value_floats": lambda value: np.asarray(value, np.float32),
    "value_int": lambda value: np.asarray(value, np.int64),
    "value_ints": lambda value: np.asarray(value, np.int64),
    "value_string": _text_array,
    "value_strings": _text_array,
}


@onnx_op("Constant")
class ConstantOp(OnnxOp):
    """A constant tensor. ONNX `Constant` (1, 9, 11, 12, 13, 19, 21, 23, 24, 25)."""

    traits = traits_def(Pure(), ConstantLike())

    def tensor(self) -> TensorAttr | None:
        """The tensor, in whichever attribute it stands; None for a function's parameter."""
        for name, given in self.properties.items():
            if isinstance(given, TensorAttr):
                return given
            if isinstance(given, SparseTensorAttr):
                return given.dense
            if name in _FORMS and not isinstance(given, ReferenceAttr):
                return TensorAttr.of(_FORMS[name](plain_value(given)), "typed")
        return None


@onnx_op("ConstantOfShape", shape_operands=(0,))
class ConstantOfShapeOp(OnnxOp):
    """A tensor of one value. ONNX `ConstantOfShape` (9, 20, 21, 23, 24, 25)."""

    shape = RequiredOperand(0)
    traits = traits_def(Pure())


OPERATORS = (ConstantOp, ConstantOfShapeOp)


def constant_tensor(value: SSAValue) -> TensorAttr | None:
    """The tensor of a constant: of an initializer or a Constant node; else None."""
    owner = value.owner
    if isinstance(owner, InitializerOp):
        return cast(TensorAttr, owner.properties["value"])
    return owner.tensor() if isinstance(owner, ConstantOp) else None


def is_constant(op: Operation) -> bool:
    """Whether an operation is an initializer or a Constant node."""
    return op.has_trait(ConstantLike)
