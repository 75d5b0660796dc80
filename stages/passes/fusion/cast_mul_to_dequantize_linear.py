"""cast-mul-to-dequantize-linear: integer weights that are cast and scaled are dequantised.

    Mul(Cast(W), scale)             ->   DequantizeLinear(W, scale)
    Mul(Sub(Cast(W), zero), scale)  ->   DequantizeLinear(W, scale, zero)

W is a constant of 8 bits, cast to float32. The scale is a constant, one number or one for each
index of an axis (from operator set 13 on); the zero point is one number that is a code. Requires
that nothing else reads what lies between. Bits are kept: `code - zero` is exact in float32, and the
product rounds once in both. Rules for quantised models look for DequantizeLinear, and the new one
is kept from folding as the old pair was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from foldline.dialects.fold import set_no_need
from foldline.dialects.fold.flags import no_need_reason
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp, opset_versions
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.types import element_type
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.quantised import BYTES
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.scaled_integers import other_operand
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

EXISTS, HAS_AXIS = 10, 13
"""Operator sets from which on DequantizeLinear exists, and has an axis."""


def _pattern() -> Pattern:
    pattern = Pattern()
    cast = pattern.node("Cast", where=_casts_bytes, name="cast")
    shifted = pattern.node("Sub", name="shifted", optional=True)
    scaled = pattern.node("Mul", name="scaled")
    pattern.constant(cast, 0, name="W")
    pattern.edge(cast, shifted, 0)
    pattern.edge(shifted, scaled)
    pattern.results = [(scaled, 0)]
    return pattern


def _casts_bytes(op: NodeOp) -> bool:
    """Whether a Cast is of a constant of 8 bits."""
    array = _constant(op.operands[0])
    return array is not None and array.dtype in BYTES


def _can_replace(match: Match) -> bool:
    W = match.constant("W")
    assert W is not None
    cast, shifted, scaled = match.op("cast"), match["shifted"], match.op("scaled")
    version = opset_versions(scaled).get("", 0)
    if element_type(cast.results[0].type) != f32:
        return match.refuse(f"the Cast is to {element_type(cast.results[0].type)}")
    if version < EXISTS:
        return match.refuse(f"operator set {version} has no DequantizeLinear")
    scale = _constant(other_operand(scaled, cast if shifted is None else shifted))
    if scale is None:
        return match.refuse("the scale is not constant")
    zero = None if shifted is None else _zero_point(_constant(shifted.operands[1]), W)
    if isinstance(zero, str):
        return match.refuse(zero)
    axis = _axis(scale.shape, W.shape)
    if isinstance(axis, str):
        return match.refuse(axis)
    if axis is not None and version < HAS_AXIS:
        return match.refuse(f"DequantizeLinear of operator set {version} has one scale")
    match.notes.update(scale=scale, zero=zero, axis=axis)
    return True


def _constant(value: SSAValue) -> Array | None:
    tensor = constant_tensor(value)
    return None if tensor is None else tensor.array


def _zero_point(given: Array | None, W: Array) -> Array | str | None:
    """What is subtracted, as a code."""
    if given is None:
        return "what is subtracted is not constant"
    if given.size != 1 or given.ndim > W.ndim:
        return f"what is subtracted has shape {list(given.shape)}"
    number = given.reshape(())
    with np.errstate(invalid="ignore"):
        code = number.astype(W.dtype)
    if code != number:
        return f"what is subtracted, {number:g}, is no {W.dtype.name}"
    return code


def _axis(scale: tuple[int, ...], W: tuple[int, ...]) -> int | str | None:
    """The axis whose indices have a scale each; None if there is one for all."""
    if len(scale) > len(W):
        return f"a scale of shape {list(scale)} raises the rank"
    if all(size == 1 for size in scale):
        return None
    places = [place for place, size in enumerate(scale, len(W) - len(scale)) if size != 1]
    if len(places) > 1 or W[places[0]] != max(scale):
        return f"a scale of shape {list(scale)} is not along one axis of {list(W)}"
    return places[0]


def _replace(build: RuleBuilder, match: Match) -> SSAValue:
    scale, zero, axis = (match.notes[name] for name in ("scale", "zero", "axis"))
    shape = () if axis is None else (-1,)
    given = [match.value("W"), build.constant(scale.reshape(shape))]
    if zero is not None:
        given.append(build.constant(np.broadcast_to(zero, _zero_shape(scale, axis)).copy()))
    value: SSAValue = build.op("DequantizeLinear", *given, axis=axis)
    reason = no_need_reason(match.op("scaled"))
    if reason is not None:
        assert isinstance(value.owner, Operation)
        set_no_need(value.owner, reason)
    return value


def _zero_shape(scale: Array, axis: int | None) -> tuple[int, ...]:
    """The shape of a zero point beside a scale."""
    return () if axis is None else (scale.size,)


TRANSFORM = built_in("cast-mul-to-dequantize-linear", _pattern(), _replace, _can_replace)


@dataclass(frozen=True)
class CastMulToDequantizeLinear(RulePass):
    """Form DequantizeLinear of weights that are cast and scaled."""

    name = "cast-mul-to-dequantize-linear"
    INFO: ClassVar = PASSES["cast-mul-to-dequantize-linear"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
