"""Bounds of integer tensors: one interval a tensor, and how each operator maps intervals.

A rule gives an interval that holds all elements of the result, or None where it knows no better
than the element type. Booleans are 0 and 1. Arithmetic that may leave the element type, and so
wrap around, and division by what may be zero, give None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute, SSAValue

from foldline.dialects import OPERATORS
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import dims_of, element_of, element_type, static_shape
from foldline.stages.folding.splats import is_splat

MAX_READ = 4096
"""Constants of more elements are not read for their bounds."""


class Range(NamedTuple):
    """All elements are from `low` to `high`, both included."""

    low: int
    high: int


BOOLEAN = Range(0, 1)
SIZES = Range(0, np.iinfo(np.int64).max)
"""Of sizes, and of places along an axis."""

Of = Callable[[SSAValue], "Range | None"]
"""The bounds of an operand; None where it is no integer."""
Rule = Callable[[OnnxOp, Of], "Range | None"]


def range_of_type(attribute: Attribute) -> Range | None:
    """What an element type can hold; None if it holds no integers."""
    element = element_type(attribute)
    row = None if element is None else element_of(element)
    if row is None:
        return None
    if row.numpy.kind == "b":
        return BOOLEAN
    if "int" not in row.name:
        return None
    limits: Any = cast(Any, ml_dtypes.iinfo(row.numpy))
    return Range(int(limits.min), int(limits.max))


def range_of_tensor(tensor: TensorAttr) -> Range | None:
    """The least and the greatest element of a tensor of integers, if it is small."""
    array = tensor.array
    if range_of_type(tensor.type) is None or not array.size:
        return None
    if is_splat(array):
        array = array[(0,) * array.ndim]
    if array.size > MAX_READ:
        return None
    items = [int(item) for item in array.reshape(-1).tolist()]
    return Range(min(items), max(items))


def join(*ranges: Range | None) -> Range | None:
    """The least interval around several."""
    known = [r for r in ranges if r is not None]
    if not known or len(known) < len(ranges):
        return None
    return Range(min(r.low for r in known), max(r.high for r in known))


def _corners(function: Callable[[int, int], int]) -> Rule:
    """Of an operator that is monotone in each of its two inputs while the other stands still."""

    def rule(op: OnnxOp, of: Of) -> Range | None:
        x, y = (of(operand) for operand in op.operands)
        if x is None or y is None:
            return None
        found = [function(a, b) for a, b in product(x, y)]
        return Range(min(found), max(found))

    return rule


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _div(op: OnnxOp, of: Of) -> Range | None:
    y = of(op.operands[1])
    return None if y is None or y.low <= 0 <= y.high else _corners(_truncated)(op, of)


def _mod(op: OnnxOp, of: Of) -> Range | None:
    """The remainder is nearer to zero than the divisor, and than the dividend it is signed as."""
    x, y = (of(operand) for operand in op.operands)
    if x is None or y is None or y.low <= 0 <= y.high:
        return None
    if 0 <= x.low and x.high < y.low:
        return x
    most = max(abs(y.low), abs(y.high)) - 1
    if op.int_of("fmod"):
        return Range(max(-most, min(x.low, 0)), min(most, max(x.high, 0)))
    return Range(0, most) if y.low > 0 else Range(-most, 0)


def _unary(function: Callable[[Range], Range]) -> Rule:
    return lambda op, of: None if (x := of(op.operands[0])) is None else function(x)


def _abs(x: Range) -> Range:
    ends = abs(x.low), abs(x.high)
    return Range(0 if x.low <= 0 <= x.high else min(ends), max(ends))


def _sign(x: Range) -> Range:
    return Range((x.low > 0) - (x.low < 0), (x.high > 0) - (x.high < 0))


def _not(x: Range) -> Range:
    return Range(1 - x.high, 1 - x.low)


def _variadic(function: Callable[..., int]) -> Rule:
    """Of an operator that is `function` of any number of inputs and grows with each."""

    def rule(op: OnnxOp, of: Of) -> Range | None:
        ranges = [of(operand) for operand in op.operands]
        known = [r for r in ranges if r is not None]
        if len(known) < len(ranges):
            return None
        return Range(function(r.low for r in known), function(r.high for r in known))

    return rule


def _clip(op: OnnxOp, of: Of) -> Range | None:
    x = of(op.operands[0])
    for index, limit in ((1, max), (2, min)):
        operand = op.operand(index)
        other = None if operand is None else of(operand)
        if x is None or (operand is not None and other is None):
            return None
        if other is not None:
            x = Range(limit(x.low, other.low), limit(x.high, other.high))
    return x


def _compare(least: Callable[[Range, Range], bool], most: Callable[[Range, Range], bool]) -> Rule:
    """`least`: it holds for all elements; `most`: it may hold for some."""

    def rule(op: OnnxOp, of: Of) -> Range | None:
        x, y = (of(operand) for operand in op.operands)
        if x is None or y is None:
            return BOOLEAN
        return Range(int(least(x, y)), int(most(x, y)))

    return rule


def _are_one(x: Range, y: Range) -> bool:
    return x.low == x.high == y.low == y.high


def _meet(x: Range, y: Range) -> bool:
    return x.low <= y.high and y.low <= x.high


def _where(op: OnnxOp, of: Of) -> Range | None:
    condition, x, y = (of(operand) for operand in op.operands)
    match condition:
        case Range(1, 1):
            return x
        case Range(0, 0):
            return y
        case _:
            return join(x, y)


def _cast(op: OnnxOp, of: Of) -> Range | None:
    x = of(op.operands[0])
    if x is None or range_of_type(op.results[0].type) != BOOLEAN:
        return x
    return Range(int(x.low > 0 or x.high < 0), int(x != (0, 0)))


def _same(index: int = 0) -> Rule:
    """Every element of the result is one of an input."""
    return lambda op, of: of(op.operands[index])


def _joined(op: OnnxOp, of: Of) -> Range | None:
    return join(*map(of, op.operands))


def _extreme(op: OnnxOp, of: Of) -> Range | None:
    """Of a reduction to elements of the input; of none at all, the result is another number."""
    shape = static_shape(op.operands[0].type)
    return of(op.operands[0]) if shape is not None and 0 not in shape else None


def _sum(op: OnnxOp, of: Of) -> Range | None:
    x, shape = of(op.operands[0]), static_shape(op.operands[0].type)
    reduced = static_shape(op.results[0].type)
    if x is None or shape is None or reduced is None or not math.prod(reduced):
        return None
    count = math.prod(shape) // math.prod(reduced)
    return Range(x.low * count, x.high * count)


def _shape(op: OnnxOp, of: Of) -> Range | None:
    dims = dims_of(op.operands[0].type)
    sizes = [Range(d, d) if isinstance(d, int) and d >= 0 else SIZES for d in dims or (None,)]
    return join(*sizes)


def _size(op: OnnxOp, of: Of) -> Range | None:
    shape = static_shape(op.operands[0].type)
    return SIZES if shape is None else Range(math.prod(shape), math.prod(shape))


def _place(op: OnnxOp, of: Of) -> Range | None:
    """A place along an axis."""
    dims, axis = dims_of(op.operands[0].type), op.int_of("axis") or 0
    dim = dims[axis] if dims and -len(dims) <= axis < len(dims) else None
    return Range(0, dim - 1) if isinstance(dim, int) and dim > 0 else SIZES


def _anywhere(op: OnnxOp, of: Of) -> Range | None:
    return SIZES


def _progression(op: OnnxOp, of: Of) -> Range | None:
    start, limit, step = (of(operand) for operand in op.operands)
    if start is None or limit is None or step is None or step.low <= 0 <= step.high:
        return None
    if step.low > 0:
        return Range(start.low, max(start.low, limit.high - 1))
    return Range(min(start.high, limit.low + 1), start.high)


def _filled(op: OnnxOp, of: Of) -> Range | None:
    value = op.properties.get("value")
    return range_of_tensor(value) if isinstance(value, TensorAttr) else None


RULES: dict[type[OnnxOp], Rule] = {
    OPERATORS["", name]: rule
    for rule, names in (
        (_corners(lambda a, b: a + b), ("Add",)),
        (_corners(lambda a, b: a - b), ("Sub",)),
        (_corners(lambda a, b: a * b), ("Mul",)),
        (_corners(lambda a, b: a & b), ("And",)),
        (_corners(lambda a, b: a | b), ("Or",)),
        (_div, ("Div",)),
        (_mod, ("Mod",)),
        (_unary(lambda x: Range(-x.high, -x.low)), ("Neg",)),
        (_unary(lambda x: Range(max(x.low, 0), max(x.high, 0))), ("Relu",)),
        (_unary(_abs), ("Abs",)),
        (_unary(_sign), ("Sign",)),
        (_unary(_not), ("Not",)),
        (_variadic(max), ("Max",)),
        (_variadic(min), ("Min",)),
        (_clip, ("Clip",)),
        (_compare(lambda x, y: x.high < y.low, lambda x, y: x.low < y.high), ("Less",)),
        (_compare(lambda x, y: x.low > y.high, lambda x, y: x.high > y.low), ("Greater",)),
        (_compare(lambda x, y: x.high <= y.low, lambda x, y: x.low <= y.high), ("LessOrEqual",)),
        (_compare(lambda x, y: x.low >= y.high, lambda x, y: x.high >= y.low), ("GreaterOrEqual",)),
        (_compare(_are_one, _meet), ("Equal",)),
        (_where, ("Where",)),
        (_cast, ("Cast", "CastLike")),
        (_same(), ("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose")),
        (_same(), ("Slice", "Split", "Gather", "GatherElements", "GatherND", "Compress")),
        (_same(), ("Expand", "Tile", "DepthToSpace", "SpaceToDepth", "ReverseSequence")),
        (_same(2), ("OneHot",)),
        (_joined, ("Concat",)),
        (_extreme, ("ReduceMax", "ReduceMin")),
        (_sum, ("ReduceSum",)),
        (_shape, ("Shape",)),
        (_size, ("Size",)),
        (_place, ("ArgMax", "ArgMin")),
        (_anywhere, ("NonZero",)),
        (_progression, ("Range",)),
        (_filled, ("ConstantOfShape",)),
    )
    for name in names
}
"""The bounds of every result."""
