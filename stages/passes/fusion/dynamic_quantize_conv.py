"""dynamic-quantize-conv: a convolution that quantises its input by itself becomes one operator.

    codes, x_scale, x_zero = DynamicQuantizeLinear(x)
    ConvIntegerToFloat(codes, W, x_zero, w_zero, Mul(x_scale, w_scale), B, bias)
        ->   DynamicQuantizeConv(x, W, w_zero, w_scale, B, bias)

After conv-integer-fusion, which forms the second line. Requires that nothing else reads what
DynamicQuantizeLinear gives: several convolutions that share it keep sharing it. Bits are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import plain_value
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
    product = pattern.node("foldline::ConvIntegerToFloat", name="product")
    pattern.edge(quantise, product, 0, 0)
    pattern.edge(quantise, product, 2, 2)
    pattern.edge(quantise, scale, output=1)
    pattern.edge(scale, product, 4)
    pattern.results = [(product, 0)]
    return pattern


def _can_fuse(match: Match) -> bool:
    scale = other_operand(match.op("scale"), match.op("quantise"))
    if element_type(scale.type) != f32:
        return match.refuse(f"the scale of W is {element_type(scale.type)}")
    return True


def _fuse(build: RuleBuilder, match: Match) -> SSAValue:
    quantise, product = match.op("quantise"), match.op("product")
    given = product.onnx_attributes.items()
    settings: dict[str, Any] = {name: plain_value(value) for name, value in given}
    inputs = [
        quantise.operands[0],
        product.operands[1],
        product.operand(3),
        other_operand(match.op("scale"), quantise),
        *product.operands[5:],
    ]
    return build.fused("DynamicQuantizeConv", *inputs, **settings)


TRANSFORM = built_in("dynamic-quantize-conv", _pattern(), _fuse, _can_fuse)


@dataclass(frozen=True)
class DynamicQuantizeConv(RulePass):
    """Form DynamicQuantizeConv of a quantisation and the only convolution that reads it."""

    name = "dynamic-quantize-conv"
    INFO: ClassVar = PASSES["dynamic-quantize-conv"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
