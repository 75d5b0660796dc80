"""What follows normalised rows: a cast back, a scale, a shift, each of which may be missing.

A replacement takes in what fits the normalisation, and makes the rest again behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import OpResult, SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.math import CastOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import dims_of, rank, static_shape
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.stand_in import element_of_value
from foldline.stages.rewrite.tracing import PatternOperators, Traced
from foldline.support.dtypes import ElementType

MAX_MADE_BYTES = 1 << 16
"""So large a scale of ones is made where the parts have none."""

FLOAT, DOUBLE = 1, 11
"""Codes of element types."""


def tail(op: PatternOperators, rows: Traced, *, shifted: bool) -> Traced:
    """Patterns of what may follow normalised rows."""
    rows = op.Cast(rows, name="cast", optional=True)
    rows = op.Mul(rows, name="scaled", optional=True, where=_has_parameter)
    return op.Add(rows, name="shifted", optional=True, where=_has_parameter) if shifted else rows


def _has_parameter(op: NodeOp) -> bool:
    own = rank(op.results[0].type) or 2
    return any(_is_parameter(value, own) for value in op.operands)


def _is_parameter(value: SSAValue, own: int) -> bool:
    shape = static_shape(value.type)
    return shape is not None and len(_significant(shape)) < max(own, 2)


def _significant(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without its leading axes of size 1."""
    first = next((axis for axis, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


@dataclass(frozen=True)
class RowTail:
    """What a normalisation takes in."""

    x: SSAValue
    """The rows, before a cast that the normalisation does by itself."""
    shape: tuple[int, ...]
    """Of the axes that are normalised."""
    stash: ElementType
    """The element type that the parts are computed in."""
    scale: SSAValue | None
    shift: SSAValue | None
    rest: tuple[NodeOp, ...]
    """What is made again, in order."""

    def settings(self, match: Match) -> dict[str, Any]:
        """The attributes of the normalisation.

        ONNX's has float32 as stash type at least, and kernels never compute in less than the rows
        have. Ours says what the parts do, so that files get them without casts.
        """
        stash = self.stash.code
        if not match.notes["domain"] and stash != DOUBLE:
            stash = FLOAT
        return {
            "axis": -len(self.shape),
            "epsilon": match.notes["epsilon"],
            "stash_type": stash,
        }

    def made_scale(self, build: RuleBuilder) -> SSAValue:
        """The scale, or one that leaves the rows as they are."""
        if self.scale is not None:
            return _reshaped(build, self.scale, self.shape)
        element = element_of_value(self.x)
        assert element is not None
        return build.constant(np.ones(self.shape, element.numpy))

    def made_shift(self, build: RuleBuilder) -> list[SSAValue]:
        """The shift, if there is one."""
        return [] if self.shift is None else [_reshaped(build, self.shift, self.shape)]

    def made_rest(self, build: RuleBuilder, match: Match, rows: Any) -> SSAValue:
        """The normalised rows with what was not taken in made again behind them."""
        inside = set(match.ordered)
        for op in self.rest:
            operands = [rows if value.owner in inside else value for value in op.operands]
            rows = build.like(op, operands)
        return rows


def row_tail(match: Match, count: int) -> RowTail | None:
    """What the normalisation of the last `count` axes of `x` takes in; None, with the reason."""
    x = match.value("x")
    dims, stash = dims_of(x.type), element_of_value(x)
    sizes = [] if dims is None else [size for size in dims[-count:] if isinstance(size, int)]
    if len(sizes) < count or stash is None:
        match.refuse("the sizes of the axes that are normalised are not known")
        return None
    shape = tuple(sizes)
    names = [name for name in ("cast", "scaled", "shifted") if _node(match, name) is not None]
    scale = shift = None
    if names[:1] == ["cast"] and (before := _before_cast(match, x)) is not None:
        x = before
        names.pop(0)
    if names[:1] == ["scaled"] and (scale := _parameter(match, "scaled", shape)) is not None:
        names.pop(0)
    if names[:1] == ["shifted"] and (shift := _parameter(match, "shifted", shape)) is not None:
        names.pop(0)
    if scale is None and int(np.prod(shape)) * stash.numpy.itemsize > MAX_MADE_BYTES:
        match.refuse(f"a scale of ones of shape {shape} would make the model larger")
        return None
    return RowTail(x, shape, stash, scale, shift, tuple(match.op(name) for name in names))


def _node(match: Match, name: str) -> NodeOp | None:
    return match[name] if any(node.name == name for node in match.pattern.nodes) else None


def _before_cast(match: Match, x: SSAValue) -> SSAValue | None:
    """What is cast to `x`, if the rows are cast back to its element type."""
    if not isinstance(x, OpResult) or not isinstance(x.op, CastOp):
        return None
    source = x.op.operands[0]
    narrow, wide = element_of_value(source), element_of_value(x)
    back = element_of_value(match.op("cast").results[0])
    if narrow is None or narrow != back or wide is None or wide.bits <= narrow.bits:
        return None
    return source if narrow.name in ("float16", "bfloat16") else None


def _parameter(match: Match, name: str, shape: tuple[int, ...]) -> SSAValue | None:
    """The other operand of a node behind the rows, if it has one number for each of a row."""
    inside, own = set(match.ordered), rank(match.value("x").type)
    for value in match.op(name).operands:
        given = static_shape(value.type)
        if value.owner in inside or given is None or own is None or len(given) > own:
            continue
        if given == shape or (constant_tensor(value) is not None and _fits(given, shape)):
            return value
    return None


def _fits(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether shapes are the same but for leading axes of size 1."""
    surplus = len(given) - len(shape)
    return surplus >= 0 and given[surplus:] == shape and all(size == 1 for size in given[:surplus])


def _reshaped(build: RuleBuilder, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
    tensor = constant_tensor(value)
    if tensor is None or tensor.array.shape == shape:
        return value
    return build.constant(tensor.array.reshape(shape))
