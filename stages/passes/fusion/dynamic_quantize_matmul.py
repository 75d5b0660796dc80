"""dynamic-quantize-matmul: a product that quantises its input by itself becomes one operator.

    codes, x_scale, x_zero = DynamicQuantizeLinear(x)
    MatMulIntegerToFloat(codes, B, x_zero, b_zero, Mul(x_scale, b_scale), bias)
        ->   DynamicQuantizeMatMul(x, B, b_zero, b_scale, bias)

After matmul-integer-fusion, which forms the second line. Requires that nothing else reads what
DynamicQuantizeLinear gives: several products that share it keep sharing it. Bits are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.types import element_type
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.scaled_integers import other_operand
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


def _pattern() -> Pattern:
    pattern = Pattern()
    quantise = pattern.node("DynamicQuantizeLinear", name="quantise")
    scale = pattern.node("Mul", name="scale")
    product = pattern.node("foldline::MatMulIntegerToFloat", name="product")
    pattern.edge(quantise, product, 0, 0)
    pattern.edge(quantise, product, 2, 2)
    pattern.edge(quantise, scale, output=1)
    pattern.edge(scale, product, 4)
    pattern.results = [(product, 0)]
    return pattern


def _can_fuse(match: Match) -> bool:
    scale = other_operand(match.op("scale"), match.op("quantise"))
    if element_type(scale.type) != f32:
        return match.refuse(f"the scale of B is {element_type(scale.type)}")
    return True


def _fuse(build: RuleBuilder, match: Match) -> SSAValue:
    quantise, product = match.op("quantise"), match.op("product")
    scale = other_operand(match.op("scale"), quantise)
    bias = product.operand(5)
    assert isinstance(product, OnnxOp)
    return build.fused(
        "DynamicQuantizeMatMul",
        quantise.operands[0],
        product.operands[1],
        product.operand(3),
        scale,
        *([] if bias is None else [bias]),
        bias_first=product.int_of("bias_first") or None,
    )


TRANSFORM = built_in("dynamic-quantize-matmul", _pattern(), _fuse, _can_fuse)


@dataclass(frozen=True)
class DynamicQuantizeMatmul(RulePass):
    """Form DynamicQuantizeMatMul of a quantisation and the only product that reads it."""

    name = "dynamic-quantize-matmul"
    INFO: ClassVar = PASSES["dynamic-quantize-matmul"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
