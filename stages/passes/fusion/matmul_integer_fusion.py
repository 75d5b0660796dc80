"""matmul-integer-fusion: a product of integers goes on to floats in one operator.

    Add(Mul(Cast(MatMulInteger(A, B, a_zero, b_zero)), scale), bias)
        ->   MatMulIntegerToFloat(A, B, a_zero, b_zero, scale, bias)

A and B have 8 bits. Scale and bias are one float32, or have one for each column; they may be
computed when the model runs, and the bias may be missing. Requires that nothing else reads what
lies between. Bits are kept: the sum of products is exact, and the Cast, the product with the scale
and the sum with the bias round once each, as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.scaled_integers import (
    Spread,
    bias_of,
    integer_operand_problem,
    other_operand,
    to_float_pattern,
)
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


def _can_fuse(match: Match) -> bool:
    product = match.op("product")
    problem = integer_operand_problem(product) or Spread.of(product).problem(
        "scale", other_operand(match.op("scaled"), match.op("cast"))
    )
    return problem is None or match.refuse(problem)


def _fuse(build: RuleBuilder, match: Match) -> SSAValue:
    product = match.op("product")
    scale = other_operand(match.op("scaled"), match.op("cast"))
    bias, is_first = bias_of(match)
    return build.fused(
        "MatMulIntegerToFloat",
        *(product.operand(place) for place in range(4)),
        scale,
        *([] if bias is None else [bias]),
        bias_first=1 if is_first else None,
    )


TRANSFORM = built_in("matmul-integer-fusion", to_float_pattern("MatMulInteger"), _fuse, _can_fuse)


@dataclass(frozen=True)
class MatmulIntegerFusion(RulePass):
    """Form MatMulIntegerToFloat of a product, Cast, Mul and Add."""

    name = "matmul-integer-fusion"
    INFO: ClassVar = PASSES["matmul-integer-fusion"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
