"""swish: a value times its sigmoid becomes one Swish, also called SiLU.

    Mul(x, Sigmoid(x))               ->   Swish(x)
    Mul(x, Sigmoid(Mul(x, alpha)))   ->   Swish(x, alpha)

alpha is a constant of one element. Swish of ONNX from operator set 24 on, below that one of the
fused dialect, which files get as its parts. Last bits move, by
at most 2 eps of |x|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.factors import factor_of, is_single
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, fits_attribute, keeps_rank, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


@traced
def _plain(op: PatternOperators, x: Traced) -> Traced:
    return x * op.Sigmoid(x)


@traced
def _scaled(op: PatternOperators, x: Traced) -> Traced:
    inner = op.any_of("Mul", "Div")(x, op.constant(where=is_single), name="scale")
    return x * op.Sigmoid(inner)


def _accepts(match: Match) -> bool:
    x = match.value("x")
    match.notes["alpha"] = alpha = _alpha(match)
    if alpha is None:
        return match.refuse("the factor is 0 or not finite")
    if not (keeps_rank(match, x) and fits_attribute(match, x, alpha)):
        return False
    return can_stand_in(match, "Swish", x)


def _alpha(match: Match) -> float | None:
    if match.pattern.nodes[0].name != "scale":
        return 1.0
    factor = factor_of(match.op("scale"))
    return factor if factor and math.isfinite(factor) else None


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    return made(build, match, "Swish", match.value("x"), alpha=match.notes["alpha"])


TRANSFORM = built_in("swish", [_plain, _scaled], _replace, _accepts)


@dataclass(frozen=True)
class Swish(RulePass):
    """Form Swish of a product with a sigmoid."""

    name = "swish"
    INFO: ClassVar = PASSES["swish"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
