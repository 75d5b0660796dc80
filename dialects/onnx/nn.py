"""Operators of neural networks that passes look at: convolution, pooling, norms, products."""

from __future__ import annotations

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import OnnxOp, Operand, RequiredOperand, onnx_op
from foldline.dialects.onnx.traits import RandomInTraining
from foldline.dialects.onnx.types import AbsentType


@onnx_op("Conv")
class ConvOp(OnnxOp):
    """Convolution. ONNX `Conv` (1, 11, 22)."""

    X = RequiredOperand(0)
    W = RequiredOperand(1)
    B = Operand(2)
    traits = traits_def(Pure())


@onnx_op("ConvTranspose")
class ConvTransposeOp(OnnxOp):
    """Transposed convolution. ONNX `ConvTranspose` (1, 11, 22)."""

    X = RequiredOperand(0)
    W = RequiredOperand(1)
    B = Operand(2)
    traits = traits_def(Pure())


@onnx_op("ConvInteger")
class ConvIntegerOp(OnnxOp):
    """Convolution of integers. ONNX `ConvInteger` (10)."""

    X = RequiredOperand(0)
    W = RequiredOperand(1)
    x_zero_point = Operand(2)
    w_zero_point = Operand(3)
    traits = traits_def(Pure())


@onnx_op("MatMul")
class MatMulOp(OnnxOp):
    """Matrix product with broadcast leading dimensions. ONNX `MatMul` (1, 9, 13)."""

    A = RequiredOperand(0)
    B = RequiredOperand(1)
    traits = traits_def(Pure())


@onnx_op("MatMulInteger")
class MatMulIntegerOp(OnnxOp):
    """Product of integer matrices. ONNX `MatMulInteger` (10)."""

    A = RequiredOperand(0)
    B = RequiredOperand(1)
    a_zero_point = Operand(2)
    b_zero_point = Operand(3)
    traits = traits_def(Pure())


@onnx_op("Gemm")
class GemmOp(OnnxOp):
    """alpha A' B' + beta C. ONNX `Gemm` (1, 6, 7, 9, 11, 13)."""

    A = RequiredOperand(0)
    B = RequiredOperand(1)
    C = Operand(2)
    traits = traits_def(Pure())


@onnx_op("BatchNormalization")
class BatchNormalizationOp(OnnxOp):
    """Normalise by statistics. ONNX `BatchNormalization` (1, 6, 7, 9, 14, 15)."""

    X = RequiredOperand(0)
    scale = RequiredOperand(1)
    B = RequiredOperand(2)
    mean = RequiredOperand(3)
    variance = RequiredOperand(4)
    traits = traits_def(Pure())

    def trains(self) -> bool:
        """Whether it normalises by statistics of the batch, or gives new ones."""
        if self.int_of("is_test") == 0 or self.int_of("training_mode") == 1:
            return True
        return any(not isinstance(result.type, AbsentType) for result in self.results[1:])


@onnx_op("InstanceNormalization")
class InstanceNormalizationOp(OnnxOp):
    """Normalise each channel of each sample. ONNX `InstanceNormalization` (1, 6, 22)."""

    X = RequiredOperand(0)
    scale = RequiredOperand(1)
    B = RequiredOperand(2)
    traits = traits_def(Pure())


@onnx_op("LayerNormalization")
class LayerNormalizationOp(OnnxOp):
    """Normalise over trailing axes. ONNX `LayerNormalization` (17)."""

    X = RequiredOperand(0)
    scale = RequiredOperand(1)
    B = Operand(2)
    traits = traits_def(Pure())


@onnx_op("GroupNormalization")
class GroupNormalizationOp(OnnxOp):
    """Normalise groups of channels. ONNX `GroupNormalization` (18, 21)."""

    X = RequiredOperand(0)
    scale = RequiredOperand(1)
    bias = RequiredOperand(2)
    traits = traits_def(Pure())


@onnx_op("MaxPool")
class MaxPoolOp(OnnxOp):
    """Largest element of each window. ONNX `MaxPool` (1, 8, 10, 11, 12, 22)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("AveragePool")
class AveragePoolOp(OnnxOp):
    """Mean of each window. ONNX `AveragePool` (1, 7, 10, 11, 19, 22)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("GlobalAveragePool")
class GlobalAveragePoolOp(OnnxOp):
    """Mean over all spatial axes. ONNX `GlobalAveragePool` (1, 22)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("GlobalMaxPool")
class GlobalMaxPoolOp(OnnxOp):
    """Largest element over all spatial axes. ONNX `GlobalMaxPool` (1, 22)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("Softmax")
class SoftmaxOp(OnnxOp):
    """exp(x) normalised over an axis (below 13: a flattened tail). ONNX `Softmax` (1, 11, 13)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("LogSoftmax")
class LogSoftmaxOp(OnnxOp):
    """Logarithm of Softmax. ONNX `LogSoftmax` (1, 11, 13)."""

    X = RequiredOperand(0)
    traits = traits_def(Pure())


@onnx_op("Dropout")
class DropoutOp(OnnxOp):
    """Identity at inference; random in training mode. ONNX `Dropout` (1, 6, 7, 10, 12, 13, 22)."""

    X = RequiredOperand(0)
    ratio = Operand(1)
    training_mode = Operand(2)
    traits = traits_def(Pure(), RandomInTraining())

    def may_train(self) -> bool:
        """Whether a run could drop elements: training mode is asked for, or not known."""
        if self.since < 7:
            return not self.int_of("is_test")
        if self.training_mode is None:
            return False
        mode = constant_tensor(self.training_mode)
        return mode is None or bool(mode.array.any())


OPERATORS = (
    ConvOp,
    ConvTransposeOp,
    ConvIntegerOp,
    MatMulOp,
    MatMulIntegerOp,
    GemmOp,
    BatchNormalizationOp,
    InstanceNormalizationOp,
    LayerNormalizationOp,
    GroupNormalizationOp,
    MaxPoolOp,
    AveragePoolOp,
    GlobalAveragePoolOp,
    GlobalMaxPoolOp,
    SoftmaxOp,
    LogSoftmaxOp,
    DropoutOp,
)
