"""Reductions: `axes` is an attribute in old versions and an input in newer ones."""

from __future__ import annotations

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from foldline.dialects.onnx.op import OnnxOp, Operand, RequiredOperand, onnx_op
from foldline.dialects.onnx.parameters import Given, given_ints


class ReduceOp(OnnxOp):
    """A reduction over axes; none given means all, unless `noop_with_empty_axes`."""

    data = RequiredOperand(0)
    axes = Operand(1)

    def axes_known(self) -> Given[tuple[int, ...]] | None:
        """The axes as given, negative ones as they are; None if they are not constant."""
        return given_ints(self, "axes", 1)

    @property
    def keepdims(self) -> bool:
        """Whether reduced axes stay, with size 1."""
        return self.int_of("keepdims") != 0

    @property
    def noop_with_empty_axes(self) -> bool:
        """Whether no axes mean no reduction rather than all."""
        return bool(self.int_of("noop_with_empty_axes"))


@onnx_op("ReduceSum", shape_operands=(1,))
class ReduceSumOp(ReduceOp):
    """Sum. ONNX `ReduceSum` (1, 11, 13)."""

    traits = traits_def(Pure())


@onnx_op("ReduceMean", shape_operands=(1,))
class ReduceMeanOp(ReduceOp):
    """Mean. ONNX `ReduceMean` (1, 11, 13, 18)."""

    traits = traits_def(Pure())


@onnx_op("ReduceMax", shape_operands=(1,))
class ReduceMaxOp(ReduceOp):
    """Largest element. ONNX `ReduceMax` (1, 11, 12, 13, 18, 20)."""

    traits = traits_def(Pure())


@onnx_op("ReduceMin", shape_operands=(1,))
class ReduceMinOp(ReduceOp):
    """Smallest element. ONNX `ReduceMin` (1, 11, 12, 13, 18, 20)."""

    traits = traits_def(Pure())


@onnx_op("ReduceProd", shape_operands=(1,))
class ReduceProdOp(ReduceOp):
    """Product. ONNX `ReduceProd` (1, 11, 13, 18)."""

    traits = traits_def(Pure())


@onnx_op("ReduceL1", shape_operands=(1,))
class ReduceL1Op(ReduceOp):
    """Sum of absolute values. ONNX `ReduceL1` (1, 11, 13, 18)."""

    traits = traits_def(Pure())


@onnx_op("ReduceL2", shape_operands=(1,))
class ReduceL2Op(ReduceOp):
    """Root of the sum of squares. ONNX `ReduceL2` (1, 11, 13, 18)."""

    traits = traits_def(Pure())


@onnx_op("ReduceLogSum", shape_operands=(1,))
class ReduceLogSumOp(ReduceOp):
    """Logarithm of the sum. ONNX `ReduceLogSum` (1, 11, 13, 18, 28)."""

    traits = traits_def(Pure())


@onnx_op("ReduceLogSumExp", shape_operands=(1,))
class ReduceLogSumExpOp(ReduceOp):
    """Logarithm of the sum of exponentials. ONNX `ReduceLogSumExp` (1, 11, 13, 18, 28)."""

    traits = traits_def(Pure())


@onnx_op("ReduceSumSquare", shape_operands=(1,))
class ReduceSumSquareOp(ReduceOp):
    """Sum of squares. ONNX `ReduceSumSquare` (1, 11, 13, 18)."""

    traits = traits_def(Pure())


@onnx_op("ArgMax")
class ArgMaxOp(OnnxOp):
    """Index of the largest element along an axis. ONNX `ArgMax` (1, 11, 12, 13)."""

    data = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("ArgMin")
class ArgMinOp(OnnxOp):
    """Index of the smallest element along an axis. ONNX `ArgMin` (1, 11, 12, 13)."""

    data = RequiredOperand(0)
    traits = traits_def(Pure())


OPERATORS = (
    ReduceSumOp,
    ReduceMeanOp,
    ReduceMaxOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceL1Op,
    ReduceL2Op,
    ReduceLogSumOp,
    ReduceLogSumExpOp,
    ReduceSumSquareOp,
    ArgMaxOp,
    ArgMinOp,
)
