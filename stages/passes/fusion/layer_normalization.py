"""layer-normalization: its parts become one LayerNormalization.

    mean = ReduceMean(x, axes, keepdims=1)
    d = Sub(x, mean)
    y = Div(d, Sqrt(Add(ReduceMean(Pow(d, 2), axes, keepdims=1), eps)))
    Add(Mul(y, scale), bias)   ->   LayerNormalization(x, scale, bias)

over the last axis or several. The square may be a product, the difference be computed twice, the
variance be the mean square less the squared mean, the division be a product with Reciprocal or
Div(1, ...) of a root, and the root a power; scale and bias may be missing. Where rows of a half
type are cast to float32 before and back after, the normalisation does that.

LayerNormalization of ONNX from operator set 17 on, below that one of the fused dialect, which files
get as its parts. Bits move, by at most 8 eps of the largest result of the row times
`1 + |mean| / deviation` of the row; by more where the parts compute in a half type, which kernels
do in float32, or take the squared mean from the mean square, which loses the digits of a variance
that is small beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
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

SINCE = 17
"""ONNX Runtime knows an operator of this name in earlier operator sets, which ONNX does not."""


def _once(op: PatternOperators, x: Traced) -> tuple[Traced, Traced]:
    centred = x - mean(op, x, "mean")
    return centred, mean(op, square(centred), "variance")


def _twice(op: PatternOperators, x: Traced) -> tuple[Traced, Traced]:
    middle = mean(op, x, "mean")
    return x - middle, mean(op, square(x - middle), "variance")


def _less_squared_mean(op: PatternOperators, x: Traced) -> tuple[Traced, Traced]:
    middle = mean(op, x, "mean")
    return x - middle, mean(op, square(x), "variance") - square(middle)


def _not_negative(op: PatternOperators, x: Traced) -> tuple[Traced, Traced]:
    centred, variance = _less_squared_mean(op, x)
    return centred, op.Max(variance, 0.0)


STATISTICS = (_once, _twice, _less_squared_mean, _not_negative)
"""Ways to spell the centred rows and their variance."""


def _pattern(
    statistics: Callable[[PatternOperators, Traced], tuple[Traced, Traced]],
    divided: Callable[[Traced, Traced], Traced],
) -> Pattern:
    def spelled(op: PatternOperators, x: Traced) -> Any:
        return tail(op, divided(*statistics(op, x)), shifted=True)

    return traced(spelled)


def _accepts(match: Match) -> bool:
    x, epsilon = match.value("x"), match.constant("epsilon")
    assert epsilon is not None
    count = axes_from_end(match.op("mean"))
    if count is None or count != axes_from_end(match.op("variance")):
        return match.refuse("the means are not known to be over the same last axes")
    match.notes["epsilon"] = number = float(epsilon.reshape(()))
    if not (keeps_rank(match, x) and fits_attribute(match, x, number)):
        return False
    match.notes["tail"] = found = row_tail(match, count)
    return found is not None and can_stand_in(match, "LayerNormalization", found.x, SINCE)


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    found: RowTail = match.notes["tail"]
    scale = found.made_scale(build)
    inputs = (found.x, scale, *found.made_shift(build))
    rows = made(build, match, "LayerNormalization", *inputs, **found.settings(match))
    return found.made_rest(build, match, rows)


SPELLINGS = [_pattern(*way) for way in product(STATISTICS, BY_ROOT)]


TRANSFORM = built_in("layer-normalization", SPELLINGS, _replace, _accepts)


@dataclass(frozen=True)
class LayerNormalization(RulePass):
    """Form LayerNormalization of its parts."""

    name = "layer-normalization"
    INFO: ClassVar = PASSES["layer-normalization"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
