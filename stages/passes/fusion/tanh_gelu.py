"""tanh-gelu: the approximation of Gelu by a hyperbolic tangent becomes one Gelu.

    Mul(Mul(x, 0.5), Add(Tanh(u), 1))   ->   Gelu(x, approximate="tanh")

where u is `sqrt(2 / pi) (x + 0.044715 x^3)`, however that is spelled: with Pow or products, factors
in any order. Coefficients may be off by 1e-6, or by the precision of a half type. Gelu of
ONNX from operator set 20 on, below that one of the fused dialect, which files get as its parts.
Last bits move, by at most 2 eps of |x|. Requires that nothing else reads what lies between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.factors import NEAR, products
from foldline.stages.rewrite.match import Match, readers_of
from foldline.stages.rewrite.polynomials import Polynomial, Reading, is_close
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, element_of_value, keeps_rank, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

SLOPE = math.sqrt(2 / math.pi)
ARGUMENT = {1: SLOPE, 3: SLOPE * 0.044715}
"""The argument of the hyperbolic tangent, as a polynomial of x."""

HALF_PRECISION = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""How far coefficients of half types may be off: they were rounded, some of them twice."""


def _core(op: PatternOperators, x: Traced) -> Traced:
    del x
    return op.Tanh(name="tanh") + 1.0


def _accepts(match: Match) -> bool:
    x, tanh = match.value("x"), match.op("tanh")
    reading = Reading(x)
    found = reading.polynomial(tanh.operands[0])
    element = element_of_value(x)
    precision = NEAR if element is None else HALF_PRECISION.get(element.name, NEAR)
    if found is None or not is_close(found, ARGUMENT, precision):
        return match.refuse(f"the argument of Tanh is not that of Gelu but {_spelled(found)}")
    inside = {*match.ordered, *reading.nodes}
    for op in reading.nodes:
        if any(reader not in inside for reader in readers_of(op.results[0], op.parent)):
            return match.refuse(f"the result of {op.op_type} is read outside as well")
    return keeps_rank(match, x) and can_stand_in(match, "Gelu", x)


def _spelled(found: Polynomial | None) -> str:
    if found is None:
        return "something else"
    return " + ".join(f"{c:g} x^{power}" for power, c in found.items())


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    return made(build, match, "Gelu", match.value("x"), approximate="tanh")


TRANSFORM = built_in("tanh-gelu", products([_core], 0.5, rel=0), _replace, _accepts)


@dataclass(frozen=True)
class TanhGelu(RulePass):
    """Form Gelu of its approximation by a hyperbolic tangent."""

    name = "tanh-gelu"
    INFO: ClassVar = PASSES["tanh-gelu"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
