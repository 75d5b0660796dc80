"""Types of operators for which the onnx library has no inference."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.types import UNKNOWN, dims_of, element_type, tensor_type

_FIRST_INPUT: dict[type[OnnxOp], Attribute | None] = {
    OPERATORS["", "GroupNormalization"]: None,
    OPERATORS["", "MeanVarianceNormalization"]: None,
    OPERATORS["ai.onnx.ml", "Imputer"]: None,
    OPERATORS["ai.onnx.ml", "Normalizer"]: f32,
    OPERATORS["ai.onnx.ml", "Scaler"]: f32,
}
"""Operators whose one result has the shape of the first input, and their element type: None for
that of the input."""


def own_types(op: OnnxOp, types: Sequence[Attribute]) -> tuple[Attribute, ...] | None:
    """The result types by a rule of ours, or None where there is none."""
    if type(op) not in _FIRST_INPUT or not types:
        return None
    element = _FIRST_INPUT[type(op)] or element_type(types[0])
    return (UNKNOWN,) if element is None else (tensor_type(element, dims_of(types[0])),)
