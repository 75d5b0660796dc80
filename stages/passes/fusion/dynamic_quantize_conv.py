"""dynamic-quantize-conv: a convolution that quantises its input by itself becomes one operator.

    codes, x_scale, x_zero = DynamicQuantizeLinear(x)
    ConvIntegerToFloat(codes, W, x_zero, w_zero, Mul(x_scale, w_scale), B, bias)
        ->   DynamicQuantizeConv(x, W, w_zero, w_scale, B, bias)

After conv-integer-fusion, which forms the second line. Requires that nothing else reads what
DynamicQuantizeLinear gives: several convolutions that share it keep sharing it. Bits are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.stages.rewrite.dynamic_quantisation import dynamic_rule
from foldline.stages.rewrite.rule_pass import RulePass
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

TRANSFORM = dynamic_rule(
    "dynamic-quantize-conv", "ConvIntegerToFloat", "DynamicQuantizeConv", weights="W"
)


@dataclass(frozen=True)
class DynamicQuantizeConv(RulePass):
    """Form DynamicQuantizeConv of a quantisation and the only convolution that reads it."""

    name = "dynamic-quantize-conv"
    INFO: ClassVar = PASSES["dynamic-quantize-conv"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
