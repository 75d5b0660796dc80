"""Element-wise arithmetic, comparison and activation operators that passes look at."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.irdl import traits_def
from xdsl.traits import Commutative, Pure

from foldline.dialects.onnx.op import OnnxOp, Operand, RequiredOperand, onnx_op
from foldline.dialects.onnx.parameters import given_number
from foldline.dialects.onnx.traits import ElementWise


class BinaryOp(OnnxOp):
    """Two inputs under NumPy broadcasting (below opset 7: `axis` and `broadcast`)."""

    A = RequiredOperand(0)
    B = RequiredOperand(1)


class UnaryOp(OnnxOp):
    """One input, one output of its shape."""

    X = RequiredOperand(0)


@onnx_op("Add")
class AddOp(BinaryOp):
    """Sum. ONNX `Add` (1, 6, 7, 13, 14)."""

    traits = traits_def(Pure(), Commutative(), ElementWise())


@onnx_op("Mul")
class MulOp(BinaryOp):
    """Product. ONNX `Mul` (1, 6, 7, 13, 14)."""

    traits = traits_def(Pure(), Commutative(), ElementWise())


@onnx_op("Sub")
class SubOp(BinaryOp):
    """Difference. ONNX `Sub` (1, 6, 7, 13, 14)."""

    traits = traits_def(Pure(), ElementWise())


@onnx_op("Div")
class DivOp(BinaryOp):
    """Quotient; truncates for integers. ONNX `Div` (1, 6, 7, 13, 14)."""

    traits = traits_def(Pure(), ElementWise())


@onnx_op("Pow")
class PowOp(BinaryOp):
    """Power, of the type of the base. ONNX `Pow` (1, 7, 12, 13, 15)."""

    traits = traits_def(Pure(), ElementWise())


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a Clip; None where there is none."""

    minimum: int | float | None
    maximum: int | float | None


@onnx_op("Clip")
class ClipOp(OnnxOp):
    """Limit to an interval. ONNX `Clip` (1, 6, 11, 12, 13)."""

    X = RequiredOperand(0)
    minimum = Operand(1)
    maximum = Operand(2)
    traits = traits_def(Pure(), ElementWise())

    def bounds(self) -> Bounds | None:
        """Both limits, a default of the version included; None if one is not constant."""
        low, high = given_number(self, "min", 1), given_number(self, "max", 2)
        return None if low is None or high is None else Bounds(low.value, high.value)


@onnx_op("Relu")
class ReluOp(UnaryOp):
    """max(x, 0). ONNX `Relu` (1, 6, 13, 14)."""

    traits = traits_def(Pure(), ElementWise())


@onnx_op("Exp")
class ExpOp(UnaryOp):
    """Exponential. ONNX `Exp` (1, 6, 13)."""

    traits = traits_def(Pure(), ElementWise())


@onnx_op("Where")
class WhereOp(OnnxOp):
    """Choose by condition, with broadcasting. ONNX `Where` (9, 16)."""

    condition = RequiredOperand(0)
    X = RequiredOperand(1)
    Y = RequiredOperand(2)
    traits = traits_def(Pure(), ElementWise())


@onnx_op("Cast")
class CastOp(UnaryOp):
    """Change of element type. ONNX `Cast` (1, 6, 9, 13, 19, 21, 23, 24, 25, 28)."""

    traits = traits_def(Pure(), ElementWise())


OPERATORS = (AddOp, MulOp, SubOp, DivOp, PowOp, ClipOp, ReluOp, ExpOp, WhereOp, CastOp)

ELEMENT_WISE = frozenset(
    """
    Abs Acos Acosh And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
    Ceil Celu Cos Cosh Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish
    IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Neg Not Or Reciprocal Round
    Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sum Swish Tan Tanh ThresholdedRelu Xor
    """.split()
)
"""Operators beside those above that are element-wise and, of several inputs, broadcast all."""
