"""Operators that select elements by index, range, order or condition, and that write them back."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from foldline.dialects.onnx.op import OnnxOp, Operand, RequiredOperand, onnx_op
from foldline.dialects.onnx.parameters import given_ints, known_ints
from foldline.dialects.onnx.traits import DataDependentShape


@dataclass(frozen=True, slots=True)
class Ranges:
    """What a Slice selects, one entry for each sliced axis; values as the node gives them."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    axes: tuple[int, ...]
    steps: tuple[int, ...]


@onnx_op("Slice", shape_operands=(1, 2, 3, 4))
class SliceOp(OnnxOp):
    """Select ranges with steps. ONNX `Slice` (1, 10, 11, 13)."""

    data = RequiredOperand(0)
    starts = Operand(1)
    ends = Operand(2)
    axes = Operand(3)
    steps = Operand(4)
    traits = traits_def(Pure())

    def ranges(self) -> Ranges | None:
        """What is selected, absent axes and steps filled in; None if it is not constant."""
        starts, ends = known_ints(self, "starts", 1), known_ints(self, "ends", 2)
        axes, steps = given_ints(self, "axes", 3), given_ints(self, "steps", 4)
        if starts is None or ends is None or axes is None or steps is None:
            return None
        return Ranges(
            starts,
            ends,
            tuple(range(len(starts))) if axes.value is None else axes.value,
            (1,) * len(starts) if steps.value is None else steps.value,
        )


@onnx_op("Gather")
class GatherOp(OnnxOp):
    """Select along an axis by index. ONNX `Gather` (1, 11, 13)."""

    data = RequiredOperand(0)
    indices = RequiredOperand(1)
    traits = traits_def(Pure())


@onnx_op("GatherElements")
class GatherElementsOp(OnnxOp):
    """Select element by element along an axis. ONNX `GatherElements` (11, 13)."""

    data = RequiredOperand(0)
    indices = RequiredOperand(1)
    traits = traits_def(Pure())


@onnx_op("GatherND")
class GatherNDOp(OnnxOp):
    """Select slices by index tuples. ONNX `GatherND` (11, 12, 13)."""

    data = RequiredOperand(0)
    indices = RequiredOperand(1)
    traits = traits_def(Pure())


@onnx_op("ScatterElements")
class ScatterElementsOp(OnnxOp):
    """Write elements along an axis by index. ONNX `ScatterElements` (11, 13, 16, 18)."""

    data = RequiredOperand(0)
    indices = RequiredOperand(1)
    updates = RequiredOperand(2)
    traits = traits_def(Pure())


@onnx_op("ScatterND")
class ScatterNDOp(OnnxOp):
    """Write slices by index tuples. ONNX `ScatterND` (11, 13, 16, 18)."""

    data = RequiredOperand(0)
    indices = RequiredOperand(1)
    updates = RequiredOperand(2)
    traits = traits_def(Pure())


@onnx_op("OneHot", shape_operands=(1,))
class OneHotOp(OnnxOp):
    """Indicator vectors. ONNX `OneHot` (9, 11, 28)."""

    indices = RequiredOperand(0)
    depth = RequiredOperand(1)
    values = RequiredOperand(2)
    traits = traits_def(Pure())


@onnx_op("TopK", shape_operands=(1,))
class TopKOp(OnnxOp):
    """Largest or smallest elements with their indices. ONNX `TopK` (1, 10, 11, 24)."""

    X = RequiredOperand(0)
    K = Operand(1)
    traits = traits_def(Pure())

    def k_known(self) -> int | None:
        """How many elements are kept; None if it is not constant."""
        k = known_ints(self, "k", 1)
        return k[0] if k else None


@onnx_op("NonZero")
class NonZeroOp(OnnxOp):
    """Indices of non-zero elements. ONNX `NonZero` (9, 13)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure(), DataDependentShape())


@onnx_op("Unique")
class UniqueOp(OnnxOp):
    """Distinct elements. ONNX `Unique` (11, 28)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure(), DataDependentShape())


@onnx_op("Compress")
class CompressOp(OnnxOp):
    """Select by a boolean vector. ONNX `Compress` (9, 11, 28)."""

    input = RequiredOperand(0)
    condition = RequiredOperand(1)
    traits = traits_def(Pure(), DataDependentShape())


@onnx_op("NonMaxSuppression")
class NonMaxSuppressionOp(OnnxOp):
    """Boxes that no better box overlaps. ONNX `NonMaxSuppression` (10, 11)."""

    boxes = RequiredOperand(0)
    scores = RequiredOperand(1)
    traits = traits_def(Pure(), DataDependentShape())


@onnx_op("StringNormalizer")
class StringNormalizerOp(OnnxOp):
    """Strings in one case, without stop words. ONNX `StringNormalizer` (10)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure(), DataDependentShape())


@onnx_op("StringSplit")
class StringSplitOp(OnnxOp):
    """Split strings at a delimiter. ONNX `StringSplit` (20)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure(), DataDependentShape())


OPERATORS = (
    SliceOp,
    GatherOp,
    GatherElementsOp,
    GatherNDOp,
    ScatterElementsOp,
    ScatterNDOp,
    OneHotOp,
    TopKOp,
    NonZeroOp,
    UniqueOp,
    CompressOp,
    NonMaxSuppressionOp,
    StringNormalizerOp,
    StringSplitOp,
)
