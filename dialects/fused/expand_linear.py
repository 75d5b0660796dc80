"""What the fused Linear stands for: MatMul and Add, or Gemm; an activation."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from foldline.dialects.fused.expand_elementwise import activated
from foldline.dialects.fused.parts import Parts
from foldline.dialects.onnx.op import OnnxOp

ANNOTATIONS = ("onnx.doc", "onnx.metadata", "onnx.residual")
"""What a Linear has of the product that it was made of, for files to get it back."""


def annotate(product: Operation, source: Operation) -> None:
    """Pass on what a file says of a product beside its meaning."""
    kept = {name: source.attributes[name] for name in ANNOTATIONS if name in source.attributes}
    product.attributes.update(kept)


def linear(op: OnnxOp, parts: Parts) -> SSAValue:
    """`activation(A B + C)`, by the operators that it was made of."""
    A, B, C = (op.operand(place) for place in range(3))
    is_gemm = op.value_of("product") == "Gemm"
    value: SSAValue = _gemm(op, parts, A, B, C) if is_gemm else parts.MatMul(A, B)
    annotate(parts.made[-1], op)
    if C is not None and not is_gemm:
        value = parts.Add(value, C)
    return activated(op, parts, value)


def _gemm(op: OnnxOp, parts: Parts, *inputs: SSAValue | None) -> SSAValue:
    given = inputs if inputs[-1] is not None else inputs[:-1]
    return parts.op("Gemm", *given, transB=op.int_of("transB") or None)
