"""pad-into-conv: let a Conv add the zeros that a Pad before it adds.

    Conv(Pad(x, p, 0), W, b) {pads = q}   ->   Conv(x, W, b) {pads = p + q}

Requires constant sizes that are not negative, none of them for images or channels, zeros of mode
constant, and a Pad that nothing else reads; `auto_pad` becomes numbers, for which sizes have to be
known. The kernel gathers the same columns and multiplies them in the same way: bits are preserved.
Windows of one position are left alone, as without pads they are a plain product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.nn import ConvOp
from foldline.dialects.onnx.resizing import PadOp
from foldline.dialects.onnx.types import dims_of
from foldline.stages.replacing import is_parametric
from foldline.stages.rewrite.borders import joined_pads, with_pads
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


def _pattern() -> Pattern:
    pattern = Pattern()
    pad = pattern.node("Pad", name="pad")
    conv = pattern.node("Conv", name="conv")
    pattern.edge(pad, conv, 0)
    pattern.results = [(conv, 0)]
    return pattern


def _can_join(match: Match) -> bool:
    pad, conv = match.op("pad"), match.op("conv")
    assert isinstance(pad, PadOp)
    assert isinstance(conv, ConvOp)
    if is_parametric(pad) or is_parametric(conv):
        return match.refuse("its attributes are given by the callers of the function")
    fill = pad.fill_known()
    if fill is None or (fill.value is not None and not _is_zero(fill.value)):
        return match.refuse("the Pad does not add zeros")
    kernel = (dims_of(conv.W.type) or ())[2:]
    sizes = [size for size in kernel if isinstance(size, int)]
    if not kernel or len(sizes) < len(kernel):
        return match.refuse("the sizes of the window are not known")
    if max(sizes) == 1:
        return match.refuse("the window has one position")
    pads = joined_pads(pad, conv, sizes)
    if isinstance(pads, str):
        return match.refuse(pads)
    match.notes["pads"] = pads
    return True


def _is_zero(value: float) -> bool:
    return value == 0 and math.copysign(1, value) == 1


def _join(build: RuleBuilder, match: Match) -> SSAValue:
    conv, pad = match.op("conv"), match.op("pad")
    inputs = [pad.operands[0], *(conv.operand(i) for i in range(1, len(conv.operands)))]
    return with_pads(build, conv, inputs, pads=match.notes["pads"])


TRANSFORM = built_in("pad-into-conv", _pattern(), _join, _can_join)


@dataclass(frozen=True)
class PadIntoConv(RulePass):
    """Let Conv pad."""

    name = "pad-into-conv"
    INFO: ClassVar = PASSES["pad-into-conv"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
