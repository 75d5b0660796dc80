"""Normalising rows in its spellings: means over trailing axes, squares, inverse roots."""

from __future__ import annotations

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.reduction import ReduceMeanOp
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.types import rank
from foldline.stages.rewrite.factors import is_single, number_of
from foldline.stages.rewrite.tracing import PatternOperators, Traced


def mean(op: PatternOperators, value: Traced, name: str) -> Traced:
    """A pattern of a mean whose axes stay, with size 1."""
    return op.ReduceMean(value, name=name, where=_keeps_axes)


def square(value: Traced) -> Traced:
    """A pattern of a square: Mul by itself, or Pow."""
    return value.op.any_of("Mul", "Pow")(value, where=_is_square)


def _divided(value: Traced, squares: Traced) -> Traced:
    return value / _root(squares)


def _times_inverse(value: Traced, squares: Traced) -> Traced:
    op, root = value.op, _root(squares)
    inverse = op.any_of("Reciprocal", "Div")(name="inverse", where=_is_inverse)
    assert root.node is not None
    op.pattern.edge(root.node, inverse.node)
    return value * inverse


def _times_power(value: Traced, squares: Traced) -> Traced:
    return value * value.op.Pow(_with_epsilon(squares), -0.5)


BY_ROOT = (_divided, _times_inverse, _times_power)
"""Ways to spell a division by a root."""


def _root(squares: Traced) -> Traced:
    return squares.op.any_of("Sqrt", "Pow")(_with_epsilon(squares), where=_is_root)


def _with_epsilon(squares: Traced) -> Traced:
    op = squares.op
    return op.Add(squares, op.constant(where=_is_epsilon, name="epsilon"))


def _is_epsilon(array: Array) -> bool:
    return is_single(array) and bool(array.reshape(()) >= 0)


def _keeps_axes(op: NodeOp) -> bool:
    return isinstance(op, ReduceMeanOp) and op.keepdims


def _is_square(op: NodeOp) -> bool:
    if op.op_type == "Mul":
        return op.operands[0] is op.operands[1]
    return number_of(op, 1) == 2


def _is_inverse(op: NodeOp) -> bool:
    return op.op_type == "Reciprocal" or number_of(op, 0) == 1


def _is_root(op: NodeOp) -> bool:
    return op.op_type == "Sqrt" or number_of(op, 1) == 0.5


def axes_from_end(op: NodeOp) -> int | None:
    """How many last axes a ReduceMean reduces; None if it is not known, or others."""
    assert isinstance(op, ReduceMeanOp)
    given = op.axes_known()
    own = rank(op.data.type)
    if given is None or not given.value or (own is None and max(given.value) >= 0):
        return None
    axes = {axis if axis < 0 else axis - (own or 0) for axis in given.value}
    return len(axes) if axes == set(range(-len(axes), 0)) else None
