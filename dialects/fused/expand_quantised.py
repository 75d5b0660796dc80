"""What the fused quantised operators stand for; no more operators than the fusions replace."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from foldline.dialects.fused.expand_elementwise import activated
from foldline.dialects.fused.parts import Parts
from foldline.dialects.onnx.op import OnnxOp, plain_value
from foldline.dialects.onnx.types import dims_of
from foldline.support.dtypes import BY_NAME

FLOAT = BY_NAME["float"]


def matmul_integer_to_float(op: OnnxOp, parts: Parts) -> SSAValue:
    """`Cast((A - a_zero_point) (B - b_zero_point)) scale + bias`."""
    total = parts.op("MatMulInteger", *_given(*(op.operand(place) for place in range(4))))
    return _biased(op, parts, _scaled(parts, total, op.operands[4]), op.operand(5))


def dynamic_quantize_matmul(op: OnnxOp, parts: Parts) -> SSAValue:
    """DynamicQuantizeLinear of X, and its product with B."""
    X, B, b_zero, b_scale, bias = (op.operand(place) for place in range(5))
    codes, scale, zero = parts.op("DynamicQuantizeLinear", X, outputs=3)
    total = parts.op("MatMulInteger", *_given(codes, B, zero, b_zero))
    return _biased(op, parts, _scaled(parts, total, parts.Mul(scale, b_scale)), bias)


def conv_integer_to_float(op: OnnxOp, parts: Parts) -> SSAValue:
    """`Cast(Conv(X - x_zero_point, W - w_zero_point) + B) scale + bias`."""
    total = _conv_integer(op, parts, [op.operand(place) for place in range(4)], op.operand(5))
    return _biased(op, parts, _scaled(parts, total, op.operands[4]), op.operand(6))


def dynamic_quantize_conv(op: OnnxOp, parts: Parts) -> SSAValue:
    """DynamicQuantizeLinear of X, and its convolution with W."""
    X, W, w_zero, w_scale, B, bias = (op.operand(place) for place in range(6))
    codes, scale, zero = parts.op("DynamicQuantizeLinear", X, outputs=3)
    total = _conv_integer(op, parts, [codes, W, zero, w_zero], B)
    return _biased(op, parts, _scaled(parts, total, parts.Mul(scale, w_scale)), bias)


def _conv_integer(
    op: OnnxOp, parts: Parts, operands: list[SSAValue | None], added: SSAValue | None
) -> SSAValue:
    given = op.onnx_attributes.items()
    window: dict[str, Any] = {
        name: plain_value(value) for name, value in given if name != "bias_first"
    }
    total = parts.op("ConvInteger", *_given(*operands), **window)
    return total if added is None else parts.Add(total, added)


def qlinear_activation(op: OnnxOp, parts: Parts) -> SSAValue:
    """The activation between DequantizeLinear and QuantizeLinear."""
    x = _dequantised(parts, *(op.operand(place) for place in range(3)))
    return _quantised(parts, activated(op, parts, x), op.operands[3], op.operands[4])


def qlinear_batch_normalization(op: OnnxOp, parts: Parts) -> SSAValue:
    """BatchNormalization between DequantizeLinear and QuantizeLinear."""
    x = _dequantised(parts, *(op.operand(place) for place in range(3)))
    parameters = (op.operands[place] for place in range(5, 9))
    y = parts.op("BatchNormalization", x, *parameters, epsilon=op.value_of("epsilon"))
    return _quantised(parts, y, op.operands[3], op.operands[4])


def qlinear_global_average_pool(op: OnnxOp, parts: Parts) -> SSAValue:
    """GlobalAveragePool between DequantizeLinear and QuantizeLinear."""
    x = _dequantised(parts, *(op.operand(place) for place in range(3)))
    return _quantised(parts, parts.GlobalAveragePool(x), op.operands[3], op.operands[4])


def qlinear_gemm(op: OnnxOp, parts: Parts) -> SSAValue:
    """Gemm between DequantizeLinears and QuantizeLinear."""
    is_transposed = op.int_of("transB")
    scales = dims_of(op.operands[4].type)
    axis = None if not scales or scales == (1,) else 0 if is_transposed else 1
    a = _dequantised(parts, *op.operands[:3])
    b = parts.op("DequantizeLinear", *op.operands[3:6], axis=axis)
    y = parts.op("Gemm", a, b, op.operands[9], transB=is_transposed or None)
    return _quantised(parts, y, op.operands[6], op.operands[7])


def qlinear_arithmetic(op: OnnxOp, parts: Parts) -> SSAValue:
    """Add or Mul between DequantizeLinears and QuantizeLinear."""
    a = _dequantised(parts, *(op.operand(place) for place in range(3)))
    b = _dequantised(parts, *(op.operand(place) for place in range(3, 6)))
    y = parts.op(op.op_type.removeprefix("QLinear"), a, b)
    return _quantised(parts, y, op.operands[6], op.operands[7])


def _dequantised(parts: Parts, *operands: SSAValue | None) -> SSAValue:
    return parts.op("DequantizeLinear", *_given(*operands))


def _quantised(parts: Parts, y: Any, scale: SSAValue, zero: SSAValue) -> SSAValue:
    return parts.op("QuantizeLinear", y, scale, zero)


def _given(*operands: SSAValue | None) -> list[SSAValue | None]:
    """The operands without those that are absent at the end."""
    kept = list(operands)
    while kept and kept[-1] is None:
        kept.pop()
    return kept


def _scaled(parts: Parts, total: Any, scale: SSAValue) -> SSAValue:
    return parts.Mul(parts.op("Cast", total, to=FLOAT), scale)


def _biased(op: OnnxOp, parts: Parts, y: SSAValue, bias: SSAValue | None) -> SSAValue:
    if bias is None:
        return y
    return parts.Add(bias, y) if op.int_of("bias_first") else parts.Add(y, bias)
