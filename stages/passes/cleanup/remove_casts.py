"""remove-casts: remove casts that change nothing, and pairs of casts that lose nothing.

    Cast<int64>(x: int64)                       ->   x
    Cast<int64>(Cast<float>(x: int64))             stays: a float does not hold every int64
    Cast<int32>(Cast<int64>(x: int32))          ->   x
    Cast<float>(Cast<int64>(x: int32))          ->   Cast<float>(x)
    Cast<int64>(Cast<int32>(Shape(y)))          ->   Shape(y)

Requires that the type in the middle holds every value of the first one, bit patterns of NaN
included (bfloat16 does not get them all back), or that each element of `x` is known and fits: a
number in range, or the size of an axis, which does not exceed int32 in any model that computes
shapes in int32. Where the types at the ends differ, also that the values are converted alike from
either: no float that might not fit an integer. Float8 and narrower types, bfloat16 and strings
stay. A signalling NaN, which no operator makes, is not made quiet any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.math import CastOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import element_of, element_type
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import bypass, names_of, replace
from foldline.stages.symbols.expression import Expr
from foldline.support.dtypes import ElementType
from foldline.support.passes import PASSES

PLAIN_KINDS = "biuf"
"""Kinds of NumPy's own numbers: booleans, integers, floats. The narrow types are of no kind."""


@dataclass(frozen=True)
class RemoveCasts(NodePass):
    """Remove casts without effect."""

    name = "remove-casts"
    INFO: ClassVar = PASSES["remove-casts"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Remove a cast, or bring it past the one before it."""
        if not isinstance(op, CastOp):
            return
        target = _element(op.results[0])
        if target is None:
            return
        if _element(op.X) is target:
            self._bypass(op, op.X, "casts to the type that is there")
            return
        before = op.X.owner
        if not isinstance(before, CastOp):
            return
        source, middle = _element(before.X), _element(op.X)
        if source is None or middle is None:
            return
        chain = f"{source.name} -> {middle.name} -> {target.name}"
        if not _holds(middle, source) and not self._fits(before.X, middle):
            self.declined(op, f"{chain} may lose values")
        elif source is target:
            self._bypass(op, before.X, f"{chain} loses nothing")
        elif _converts_alike(source, middle, target):
            ops = Builder.at(op).cast(before.X, target, op.results[0].type, names_of(op))
            self.applied(op, f"{chain} is one cast")
            replace(self.rewriter, op, ops)
        else:
            self.declined(op, f"{chain}: what does not fit may be converted otherwise")

    def _bypass(self, op: CastOp, value: SSAValue, message: str) -> None:
        reason = bypass(self.rewriter, op, [value])
        if reason is None:
            self.applied(op, message)
        else:
            self.declined(op, reason)

    def _fits(self, value: SSAValue, middle: ElementType) -> bool:
        """Whether each element of a value is known and `middle` holds it."""
        if middle.numpy.kind not in "iu":
            return False
        elements = self.context.knowledge.elements(value)
        if elements is None or elements.dtype.kind not in "biu":
            return False
        limits = np.iinfo(middle.numpy)
        return all(_is_size(item, limits) for item in elements.items)


def _element(value: SSAValue) -> ElementType | None:
    element = element_type(value.type)
    return None if element is None else element_of(element)


def _is_plain(element: ElementType) -> bool:
    return element.numpy.isbuiltin == 1 and element.numpy.kind in PLAIN_KINDS


def _holds(middle: ElementType, source: ElementType) -> bool:
    """Whether every value of `source` survives a cast to `middle` and back."""
    if not _is_plain(middle) or not _is_plain(source):
        return False
    return np.can_cast(source.numpy, middle.numpy, "safe") and not _rounds(source, middle)


def _rounds(source: ElementType, middle: ElementType) -> bool:
    """NumPy calls int64 to float64 safe, which it is not."""
    if source.numpy.kind not in "iu" or middle.numpy.kind != "f":
        return False
    return source.bits > np.finfo(middle.numpy).nmant + 1


def _converts_alike(source: ElementType, middle: ElementType, target: ElementType) -> bool:
    """Whether a cast to `target` gives the same from `source` as from its values in `middle`."""
    if not _is_plain(target):
        return False
    if source.numpy.kind == "f":
        return target.numpy.kind == "f"
    # From a float to what does not hold the integer there is another rounding, or no definition.
    return middle.numpy.kind != "f" or _holds(target, source)


def _is_size(item: Any, limits: np.iinfo[Any]) -> bool:
    """Whether an element is a number within limits, or the size of an axis that is not tiny."""
    if isinstance(item, Expr):
        atom = item.atom
        return atom is not None and atom.kind == "symbol" and limits.bits >= 32
    return isinstance(item, int) and limits.min <= item <= limits.max
