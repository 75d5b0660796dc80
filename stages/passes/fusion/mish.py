"""mish: a value times the hyperbolic tangent of its softplus becomes one Mish.

    Mul(x, Tanh(Softplus(x)))   ->   Mish(x)

Mish of ONNX from operator set 18 on, below that one of the fused dialect, which files get as its
parts. Last bits move, by at most 2 eps of |x|; -inf gives -0, the limit, where the parts give NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


@traced
def _pattern(op: PatternOperators, x: Traced) -> Traced:
    return x * op.Tanh(op.Softplus(x))


def _accepts(match: Match) -> bool:
    return can_stand_in(match, "Mish", match.value("x"))


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    return made(build, match, "Mish", match.value("x"))


TRANSFORM = built_in("mish", _pattern, _replace, _accepts)


@dataclass(frozen=True)
class Mish(RulePass):
    """Form Mish of its parts."""

    name = "mish"
    INFO: ClassVar = PASSES["mish"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
