"""rms-normalization: its parts become one RMSNormalization.

    y = Div(x, Sqrt(Add(ReduceMean(Pow(x, 2), axes, keepdims=1), eps)))
    Mul(y, scale)   ->   RMSNormalization(x, scale)

over the last axis or several. The square may be a product, the division a product with Reciprocal
or Div(1, ...) of a root, and the root a power; the scale may be missing. Where rows of a half type
are cast to float32 before and back after, as Llama does, the normalisation does that.

RMSNormalization of ONNX from operator set 23 on, below that one of the fused dialect, which files
get as its parts. Bits move, by at most 4 eps of the largest result of the row; by more where the
parts compute in a half type, which the kernel does in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.row_tail import RowTail, row_tail, tail
from foldline.stages.rewrite.rows import BY_ROOT, axes_from_end, mean, square
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, fits_attribute, keeps_rank, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


def _pattern(divided: Callable[[Traced, Traced], Traced]) -> Pattern:
    def spelled(op: PatternOperators, x: Traced) -> Any:
        return tail(op, divided(x, mean(op, square(x), "squares")), shifted=False)

    return traced(spelled)


def _accepts(match: Match) -> bool:
    x, epsilon = match.value("x"), match.constant("epsilon")
    assert epsilon is not None
    count = axes_from_end(match.op("squares"))
    if count is None:
        return match.refuse("the mean is not known to be over last axes")
    match.notes["epsilon"] = number = float(epsilon.reshape(()))
    if not (keeps_rank(match, x) and fits_attribute(match, x, number)):
        return False
    match.notes["tail"] = found = row_tail(match, count)
    return found is not None and can_stand_in(match, "RMSNormalization", found.x)


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    found: RowTail = match.notes["tail"]
    scale = found.made_scale(build)
    inputs = (found.x, scale)
    settings = found.settings(match)
    if match.notes["domain"]:
        settings["inverse"] = int(any(node.name == "inverse" for node in match.pattern.nodes))
    rows = made(build, match, "RMSNormalization", *inputs, **settings)
    return found.made_rest(build, match, rows)


SPELLINGS = [_pattern(divided) for divided in BY_ROOT]


TRANSFORM = built_in("rms-normalization", SPELLINGS, _replace, _accepts)


@dataclass(frozen=True)
class RmsNormalization(RulePass):
    """Form RMSNormalization of its parts."""

    name = "rms-normalization"
    INFO: ClassVar = PASSES["rms-normalization"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
