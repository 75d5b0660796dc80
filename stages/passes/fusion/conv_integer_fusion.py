"""conv-integer-fusion: a convolution of integers goes on to floats in one operator.

    Add(Mul(Cast(Add(ConvInteger(X, W, x_zero, w_zero), B)), scale), bias)
        ->   ConvIntegerToFloat(X, W, x_zero, w_zero, scale, B, bias)

X and W have 8 bits. Scale, B (int32) and bias are one number, or one for each map; they may be
computed when the model runs, and both sums may be missing. Requires that nothing else reads what
lies between. Bits are kept: sums of integers are exact or wrap as before, and the Cast, the product
with the scale and the sum with the bias round once each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.op import plain_value
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
    if any(isinstance(given, ReferenceAttr) for given in product.onnx_attributes.values()):
        return match.refuse("the window is a parameter of a function")
    problem = integer_operand_problem(product) or Spread.of(product).problem(
        "scale", other_operand(match.op("scaled"), match.op("cast"))
    )
    return problem is None or match.refuse(problem)


def _fuse(build: RuleBuilder, match: Match) -> SSAValue:
    product, integers = match.op("product"), match["integers"]
    scale = other_operand(match.op("scaled"), match.op("cast"))
    added = None if integers is None else other_operand(integers, product)
    bias, is_first = bias_of(match)
    last = [added, bias] if bias is not None else [] if added is None else [added]
    given = product.onnx_attributes.items()
    window: dict[str, Any] = {name: plain_value(value) for name, value in given}
    return build.fused(
        "ConvIntegerToFloat",
        *(product.operand(place) for place in range(4)),
        scale,
        *last,
        bias_first=1 if is_first else None,
        **window,
    )


TRANSFORM = built_in("conv-integer-fusion", to_float_pattern("ConvInteger"), _fuse, _can_fuse)


@dataclass(frozen=True)
class ConvIntegerFusion(RulePass):
    """Form ConvIntegerToFloat of a convolution, Add, Cast, Mul and Add."""

    name = "conv-integer-fusion"
    INFO: ClassVar = PASSES["conv-integer-fusion"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
