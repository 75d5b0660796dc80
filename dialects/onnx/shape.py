"""Operators that reshape, move, join and cut without selecting or computing."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from foldline.dialects.onnx.op import OnnxOp, Operand, RequiredOperand, onnx_op
from foldline.dialects.onnx.parameters import Given, given_ints, known_ints
from foldline.dialects.onnx.traits import ReadsShapeOnly
from foldline.dialects.onnx.types import dims_of, rank


@dataclass(frozen=True, slots=True)
class Target:
    """The shape that a Reshape asks for."""

    dims: tuple[int, ...]
    """At most one -1, which stands for what is left over."""
    allows_zero: bool
    """A 0 is a size of zero; otherwise it keeps the input's size of that axis."""


@onnx_op("Shape")
class ShapeOp(OnnxOp):
    """The shape of a tensor, as int64. ONNX `Shape` (1, 13, 15, 19, 21, 23, 24, 25)."""

    data = RequiredOperand(0)
    traits = traits_def(Pure(), ReadsShapeOnly())


@onnx_op("Size")
class SizeOp(OnnxOp):
    """The number of elements, as int64. ONNX `Size` (1, 13, 19, 21, 23, 24, 25)."""

    data = RequiredOperand(0)
    traits = traits_def(Pure(), ReadsShapeOnly())


@onnx_op("Identity")
class IdentityOp(OnnxOp):
    """The input itself. ONNX `Identity` (1, 13, 14, 16, 19, 21, 23, 24, 25)."""

    input = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("Reshape", shape_operands=(1,))
class ReshapeOp(OnnxOp):
    """The same elements under another shape. ONNX `Reshape` (1, 5, 13, 14, 19, 21, 23, 24, 25)."""

    data = RequiredOperand(0)
    shape = Operand(1)
    traits = traits_def(Pure())

    def target(self) -> Target | None:
        """The requested shape; None if it is not constant, or the node (version 1) has none."""
        dims = known_ints(self, "shape", 1)
        return None if dims is None else Target(dims, bool(self.int_of("allowzero")))


@onnx_op("Flatten")
class FlattenOp(OnnxOp):
    """A matrix of the same elements. ONNX `Flatten` (1, 9, 11, 13, 21, 23, 24, 25)."""

    input = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("Squeeze", shape_operands=(1,))
class SqueezeOp(OnnxOp):
    """Drop axes of size 1. ONNX `Squeeze` (1, 11, 13, 21, 23, 24, 25)."""

    data = RequiredOperand(0)
    axes = Operand(1)
    traits = traits_def(Pure())

    def axes_known(self) -> Given[tuple[int, ...]] | None:
        """The axes as given, negative ones as they are; None if they are not constant."""
        return given_ints(self, "axes", 1)


@onnx_op("Unsqueeze", shape_operands=(1,))
class UnsqueezeOp(OnnxOp):
    """Insert axes of size 1. ONNX `Unsqueeze` (1, 11, 13, 21, 23, 24, 25)."""

    data = RequiredOperand(0)
    axes = Operand(1)
    traits = traits_def(Pure())

    def axes_known(self) -> Given[tuple[int, ...]] | None:
        """The axes as given, negative ones as they are; None if they are not constant."""
        return given_ints(self, "axes", 1)


@onnx_op("Transpose")
class TransposeOp(OnnxOp):
    """Permute axes. ONNX `Transpose` (1, 13, 21, 23, 24, 25)."""

    data = RequiredOperand(0)
    traits = traits_def(Pure())

    def permutation(self) -> tuple[int, ...] | None:
        """The permutation; None where it is the default and the rank is not known."""
        given = self.ints_of("perm")
        if given is not None:
            return given
        known = rank(self.data.type)
        return None if known is None else tuple(reversed(range(known)))


@onnx_op("Expand", shape_operands=(1,))
class ExpandOp(OnnxOp):
    """Broadcast to a shape. ONNX `Expand` (8, 13)."""

    input = RequiredOperand(0)
    shape = RequiredOperand(1)
    traits = traits_def(Pure())

    def target(self) -> tuple[int, ...] | None:
        """The requested shape; None if it is not constant."""
        return known_ints(self, "shape", 1)


@onnx_op("Tile", shape_operands=(1, 2))
class TileOp(OnnxOp):
    """Repeat along axes. ONNX `Tile` (1, 6, 13)."""

    input = RequiredOperand(0)
    repeats = Operand(1)
    axis = Operand(2)
    traits = traits_def(Pure())

    def repeats_known(self) -> tuple[int, ...] | None:
        """Repeats of every axis; None if not constant, or (version 1) the rank is not known."""
        repeats = known_ints(self, "repeats", 1)
        if repeats is None or self.since >= 6:
            return repeats
        axis, known = known_ints(self, "axis", 2), rank(self.input.type)
        if not axis or known is None:
            return None
        return tuple(repeats[0] if index == axis[0] else 1 for index in range(known))


@onnx_op("Concat")
class ConcatOp(OnnxOp):
    """Join along an axis. ONNX `Concat` (1, 4, 11, 13)."""

    traits = traits_def(Pure())


@onnx_op("Split", shape_operands=(1,))
class SplitOp(OnnxOp):
    """Cut along an axis. ONNX `Split` (1, 2, 11, 13, 18)."""

    input = RequiredOperand(0)
    split = Operand(1)
    traits = traits_def(Pure())

    def sizes(self) -> tuple[int, ...] | None:
        """Sizes of the parts: as given, or equal parts of a known dimension; else None."""
        given = given_ints(self, "split", 1)
        if given is None or given.value is not None:
            return None if given is None else given.value
        dims, axis, parts = dims_of(self.input.type), self.int_of("axis") or 0, len(self.results)
        if dims is None or not -len(dims) <= axis < len(dims):
            return None
        size = dims[axis]
        if not isinstance(size, int) or (size % parts and self.since < 18):
            return None
        part = -(-size // parts)
        last = size - part * (parts - 1)
        return (*(part,) * (parts - 1), last) if last >= 0 else None


@onnx_op("Range", shape_operands=(0, 1, 2))
class RangeOp(OnnxOp):
    """An arithmetic progression. ONNX `Range` (11, 27)."""

    start = RequiredOperand(0)
    limit = RequiredOperand(1)
    delta = RequiredOperand(2)
    traits = traits_def(Pure())


@onnx_op("EyeLike")
class EyeLikeOp(OnnxOp):
    """A matrix with ones on a diagonal. ONNX `EyeLike` (9, 22)."""

    input = RequiredOperand(0)
    traits = traits_def(Pure(), ReadsShapeOnly())


OPERATORS = (
    ShapeOp,
    SizeOp,
    IdentityOp,
    ReshapeOp,
    FlattenOp,
    SqueezeOp,
    UnsqueezeOp,
    TransposeOp,
    ExpandOp,
    TileOp,
    ConcatOp,
    SplitOp,
    RangeOp,
    EyeLikeOp,
)
