"""hard-sigmoid: a line limited to 0 and 1 becomes one HardSigmoid.

    Clip(Add(Mul(x, alpha), beta), 0, 1)   ->   HardSigmoid(x, alpha, beta)
    Div(Clip(Add(x, 3), 0, 6), 6)          ->   HardSigmoid(x, 1/6, 1/2)

alpha and beta are constants of one element, and so is 3. Clip may be Min of Relu and 6. The first
form keeps its bits, the second moves by at most 1 eps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.factors import factor_of, is_single, number_of, scaled
from foldline.stages.rewrite.limits import relu6_spellings, within
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, fits_attribute, keeps_rank, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


@traced
def _line(op: PatternOperators, x: Traced) -> Traced:
    scaled = op.any_of("Mul", "Div")(x, op.constant(where=is_single), name="scale")
    return op.Clip(op.Add(scaled, op.constant(where=is_single), name="shift"), where=within(0, 1))


def _accepts(match: Match) -> bool:
    x = match.value("x")
    alpha, beta = 1 / 6, 0.5
    if match.pattern.nodes[0].name == "scale":
        factor, shift = factor_of(match.op("scale")), number_of(match.op("shift"), 1)
        shift = number_of(match.op("shift"), 0) if shift is None else shift
        if factor is None or shift is None:
            return match.refuse("the divisor is 0")
        alpha, beta = factor, shift
    match.notes.update(alpha=alpha, beta=beta)
    if not (keeps_rank(match, x) and fits_attribute(match, x, alpha, beta)):
        return False
    return can_stand_in(match, "HardSigmoid", x)


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    notes = match.notes
    return made(
        build, match, "HardSigmoid", match.value("x"), alpha=notes["alpha"], beta=notes["beta"]
    )


TRANSFORM = built_in("hard-sigmoid", [_line, *scaled(relu6_spellings(), 1 / 6)], _replace, _accepts)


@dataclass(frozen=True)
class HardSigmoid(RulePass):
    """Form HardSigmoid of its parts."""

    name = "hard-sigmoid"
    INFO: ClassVar = PASSES["hard-sigmoid"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
