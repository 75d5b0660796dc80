"""Operators between floats and quantised integers."""

from __future__ import annotations

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from foldline.dialects.onnx.op import OnnxOp, Operand, RequiredOperand, onnx_op


@onnx_op("QuantizeLinear")
class QuantizeLinearOp(OnnxOp):
    """Round to quantised integers. ONNX `QuantizeLinear` (10, 13, 19, 21, 23, 24, 25, 28)."""

    x = RequiredOperand(0)
    scale = RequiredOperand(1)
    zero_point = Operand(2)
    traits = traits_def(Pure())


@onnx_op("DequantizeLinear")
class DequantizeLinearOp(OnnxOp):
    """Quantised integers as floats. ONNX `DequantizeLinear` (10, 13, 19, 21, 23, 24, 25, 28)."""

    x = RequiredOperand(0)
    scale = RequiredOperand(1)
    zero_point = Operand(2)
    traits = traits_def(Pure())


@onnx_op("DynamicQuantizeLinear")
class DynamicQuantizeLinearOp(OnnxOp):
    """Quantise by the range found at run time. ONNX `DynamicQuantizeLinear` (11)."""

    x = RequiredOperand(0)
    traits = traits_def(Pure())


OPERATORS = (
    QuantizeLinearOp,
    DequantizeLinearOp,
    DynamicQuantizeLinearOp,
)
