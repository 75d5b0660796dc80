"""gelu: Erf and the products around it become one Gelu.

    Mul(Mul(x, Add(Erf(Div(x, sqrt 2)), 1)), 0.5)   ->   Gelu(x)

In any order of the factors, and with Mul by the inverse or Div. Constants have one element; sqrt 2
may be off by 1e-6 of it, or be rounded to a half type. Gelu of ONNX from operator set 20 on, below
that one of the fused dialect, which files get as its parts. Bits move, by at most 2 eps of |x|;
-inf gives NaN as in the parts. Requires that nothing else reads what lies between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.factors import NEAR, Scales, factor_of, is_single, products
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, keeps_rank, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

IS_OVER_ROOT = Scales(math.sqrt(0.5), NEAR)
"""Whether a Mul or Div divides by the square root of 2."""


def _core(op: PatternOperators, x: Traced) -> Traced:
    argument = op.any_of("Mul", "Div")(x, op.constant(where=is_single), name="argument")
    return op.Erf(argument) + 1.0


def _accepts(match: Match) -> bool:
    x, argument = match.value("x"), match.op("argument")
    if not IS_OVER_ROOT(argument):
        return match.refuse(f"the argument of Erf is x times {factor_of(argument):g}, not 0.707107")
    return keeps_rank(match, x) and can_stand_in(match, "Gelu", x)


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    return made(build, match, "Gelu", match.value("x"))


TRANSFORM = built_in("gelu", products([_core], 0.5, rel=0), _replace, _accepts)


@dataclass(frozen=True)
class Gelu(RulePass):
    """Form Gelu of Erf and products."""

    name = "gelu"
    INFO: ClassVar = PASSES["gelu"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
