"""Products that quantise their input by themselves: what the rules for MatMul and Conv share.

codes, x_scale, x_zero = DynamicQuantizeLinear(x)
ProductToFloat(codes, W, x_zero, w_zero, Mul(x_scale, w_scale), rest ...)
    ->   DynamicQuantizeProduct(x, W, w_zero, w_scale, rest ...)
"""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from foldline.dialects.onnx.types import element_type
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import built_in
from foldline.stages.rewrite.scaled_integers import other_operand
from foldline.stages.rewrite.transform import Transform


def dynamic_rule(name: str, product: str, fused: str, weights: str) -> Transform:
    """The rule `name` that makes `fused` of a quantisation and the only `product` that reads it.

    Both are operators of the fused dialect; `weights` is what remarks call the second factor.
    """

    def can_fuse(match: Match) -> bool:
        scale = other_operand(match.op("scale"), match.op("quantise"))
        if element_type(scale.type) != f32:
            return match.refuse(f"the scale of {weights} is {element_type(scale.type)}")
        return True

    def fuse(build: RuleBuilder, match: Match) -> SSAValue:
        quantise, integers = match.op("quantise"), match.op("product")
        inputs = [
            quantise.operands[0],
            integers.operands[1],
            integers.operand(3),
            other_operand(match.op("scale"), quantise),
            *integers.operands[5:],
        ]
        return build.fused(fused, *inputs, **integers.attribute_values())

    return built_in(name, _pattern(product), fuse, can_fuse)


def _pattern(product: str) -> Pattern:
    pattern = Pattern()
    quantise = pattern.node("DynamicQuantizeLinear", name="quantise")
    scale = pattern.node("Mul", name="scale")
    integers = pattern.node(f"foldline::{product}", name="product")
    pattern.edge(quantise, integers, 0, 0)
    pattern.edge(quantise, integers, 2, 2)
    pattern.edge(quantise, scale, output=1)
    pattern.edge(scale, integers, 4)
    pattern.results = [(integers, 0)]
    return pattern
