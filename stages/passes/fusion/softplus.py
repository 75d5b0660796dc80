"""softplus: the logarithm of one plus an exponential becomes one Softplus.

    Log(Add(Exp(x), 1))   ->   Softplus(x)

Results move by at most 2 eps of the larger of |x| and 1; where Exp overflows, Softplus gives x and
its parts infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, keeps_rank, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


@traced
def _pattern(op: PatternOperators, x: Traced) -> Traced:
    return op.Log(op.Exp(x) + 1.0)


def _accepts(match: Match) -> bool:
    x = match.value("x")
    return keeps_rank(match, x) and can_stand_in(match, "Softplus", x)


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    return made(build, match, "Softplus", match.value("x"))


TRANSFORM = built_in("softplus", _pattern, _replace, _accepts)


@dataclass(frozen=True)
class Softplus(RulePass):
    """Form Softplus of its parts."""

    name = "softplus"
    INFO: ClassVar = PASSES["softplus"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
