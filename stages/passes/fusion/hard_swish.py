"""hard-swish: a value times its hard sigmoid becomes one HardSwish.

    Mul(x, HardSigmoid(x, 1/6, 1/2))           ->   HardSwish(x)
    Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)      ->   HardSwish(x)

In any order of the three factors, and with Mul by 1/6 or Div by 6. Clip may be Min of Relu and 6.
HardSwish of ONNX from operator set 14 on, below that one of the fused dialect, which files get as
two parts. Last bits move, by at most 2 eps of |x|; where x times 6 overflows, HardSwish gives
x where its parts give infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import NodeOp
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.factors import NEAR, products
from foldline.stages.rewrite.limits import relu6_spellings
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, fits_attribute, keeps_rank, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


def _is_sixth(op: NodeOp) -> bool:
    values: dict[str, Any] = op.attribute_values()
    return abs(values["alpha"] - 1 / 6) <= NEAR / 6 and values["beta"] == 0.5


@traced
def _hard_sigmoid(op: PatternOperators, x: Traced) -> Traced:
    return x * op.HardSigmoid(x, where=_is_sixth)


def _accepts(match: Match) -> bool:
    x = match.value("x")
    if not (keeps_rank(match, x) and fits_attribute(match, x, 1 / 6)):
        return False
    return can_stand_in(match, "HardSwish", x)


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    return made(build, match, "HardSwish", match.value("x"))


TRANSFORM = built_in(
    "hard-swish", [_hard_sigmoid, *products(relu6_spellings(), 1 / 6)], _replace, _accepts
)


@dataclass(frozen=True)
class HardSwish(RulePass):
    """Form HardSwish of its parts."""

    name = "hard-swish"
    INFO: ClassVar = PASSES["hard-swish"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
