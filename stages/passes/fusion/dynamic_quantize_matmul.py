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

from foldline.stages.rewrite.dynamic_quantisation import dynamic_rule
from foldline.stages.rewrite.rule_pass import RulePass
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

TRANSFORM = dynamic_rule(
    "dynamic-quantize-matmul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", weights="B"
)


@dataclass(frozen=True)
class DynamicQuantizeMatmul(RulePass):
    """Form DynamicQuantizeMatMul of a quantisation and the only product that reads it."""

    name = "dynamic-quantize-matmul"
    INFO: ClassVar = PASSES["dynamic-quantize-matmul"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
