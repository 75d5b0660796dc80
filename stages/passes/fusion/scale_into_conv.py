"""scale-into-conv: fold a constant factor into the Conv that reads the product.

    Conv(Mul(x, m), W, b)   ->   Conv(x, W m, b)

So with Div; `m` is one number, or one a channel of the input. In float64 and rounded once to the
type of the weights, float or double. Left alone: a product that others read, factors that change
the shape, weights that would not be finite or would take more memory. Last bits move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fold.compact import is_compact
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.nn import ConvOp
from foldline.dialects.onnx.types import dims_of
from foldline.stages.folding.growth import MAX_BYTES, growth
from foldline.stages.pass_base import PassOptions
from foldline.stages.replacing import is_parametric
from foldline.stages.rewrite.affine import Channels, affine_of
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.products import FLOATS
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.stages.rewrite.weight_fold import (
    dying_constants,
    has_constant,
    is_finite,
    is_uniform,
    scaled,
)
from foldline.support.passes import PASSES


def _pattern() -> Pattern:
    pattern = Pattern()
    scale = pattern.node(("Mul", "Div"), where=has_constant, name="scale")
    conv = pattern.node("Conv", name="conv")
    pattern.edge(scale, conv, 0)
    pattern.constant(conv, 1)
    pattern.results = [(conv, 0)]
    return pattern


def _can_fold(match: Match, max_bytes: int | None) -> bool:
    scale, conv = match.op("scale"), match.op("conv")
    assert isinstance(conv, ConvOp)
    if is_parametric(scale) or is_parametric(conv):
        return match.refuse("its attributes are given by the callers of the function")
    tensor = constant_tensor(conv.W)
    assert tensor is not None, "the pattern wants a constant"
    shape, dtype = tensor.array.shape, tensor.array.dtype
    if dtype not in FLOATS or is_compact(conv.W):
        return match.refuse(f"the weights are {dtype} or held in a half type")
    given: Any = conv.attribute_values()
    group, count = given["group"], given["group"] * shape[1]
    x = scale.operands[_place(match)]
    dims = dims_of(x.type)
    if dims is None or len(dims) != len(shape) or dims[1] != count:
        return match.refuse(f"the input of the factor is not known to have {count} channels")
    found = affine_of(scale, Channels(x, count, 1, len(shape)))
    if isinstance(found, str):
        return match.refuse(found)
    by_group = np.broadcast_to(found.factor, (count,)).reshape(group, shape[1])
    rows = np.repeat(by_group, shape[0] // group, axis=0)
    factor = rows.reshape(*rows.shape, *(1,) * (len(shape) - 2))
    elements = 1 if tensor.data.is_splat and is_uniform(found.factor) else tensor.array.size
    problem = growth(elements * dtype.itemsize, dying_constants(match), max_bytes)
    if problem is not None:
        return match.refuse(problem)
    with np.errstate(all="ignore"):
        weights = scaled(tensor.data, factor)
    if not is_finite(weights):
        return match.refuse("the folded weights are not finite")
    match.notes.update(weights=weights, x=x)
    return True


def _place(match: Match) -> int:
    """Which operand of the product is not the constant."""
    return 1 if constant_tensor(match.op("scale").operands[0]) is not None else 0


def _fold(build: RuleBuilder, match: Match) -> SSAValue:
    conv = match.op("conv")
    weights = build.constant(match.notes["weights"])
    return build.like(conv, [match.notes["x"], weights, *conv.operands[2:]])


@cache
def _rule(max_bytes: int | None) -> Transform:
    def condition(match: Match) -> bool:
        return _can_fold(match, max_bytes)

    return built_in("scale-into-conv", _pattern(), _fold, condition)


@dataclass(frozen=True)
class ScaleIntoConv(RulePass):
    """Fold a factor into the Conv after it."""

    name = "scale-into-conv"
    INFO: ClassVar = PASSES["scale-into-conv"]

    max_bytes: int | None = MAX_BYTES
    """Larger weights must not take more memory than what they are made of; None: they may."""

    def configured(self, options: PassOptions) -> Self:
        """With `fold.maxBytes`; none if `export.grow`."""
        return replace(self, max_bytes=None if options["export.grow"] else options["fold.maxBytes"])

    @property
    def transform(self) -> Transform:
        """The rule."""
        return _rule(self.max_bytes)
