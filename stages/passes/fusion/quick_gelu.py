"""quick-gelu: the approximation of Gelu by a sigmoid becomes one Swish.

    Mul(x, Sigmoid(Mul(x, 1.702)))   ->   Swish(x, alpha=1.702)

Swish of ONNX from operator set 24 on, below that one of the fused dialect, which files get as its
parts. Last bits move, by at most 2 eps of |x|.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.factors import times
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, fits_attribute, keeps_rank, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

ALPHA = 1.702


@traced
def _pattern(op: PatternOperators, x: Traced) -> Traced:
    return x * op.Sigmoid(times(x, ALPHA))


def _accepts(match: Match) -> bool:
    x = match.value("x")
    if not (keeps_rank(match, x) and fits_attribute(match, x, ALPHA)):
        return False
    return can_stand_in(match, "Swish", x)


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    return made(build, match, "Swish", match.value("x"), alpha=ALPHA)


TRANSFORM = built_in("quick-gelu", _pattern, _replace, _accepts)


@dataclass(frozen=True)
class QuickGelu(RulePass):
    """Form Swish of the quick approximation of Gelu."""

    name = "quick-gelu"
    INFO: ClassVar = PASSES["quick-gelu"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
