"""Operators of signal processing: windows and transforms whose sizes are inputs."""

from __future__ import annotations

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from foldline.dialects.onnx.op import OnnxOp, Operand, RequiredOperand, onnx_op
from foldline.dialects.onnx.traits import DataDependentShape


class WindowOp(OnnxOp):
    """A window function of a given size."""

    size = RequiredOperand(0)


@onnx_op("HannWindow", shape_operands=(0,))
class HannWindowOp(WindowOp):
    """Squared sine. ONNX `HannWindow` (17)."""

    traits = traits_def(Pure())


@onnx_op("HammingWindow", shape_operands=(0,))
class HammingWindowOp(WindowOp):
    """Raised cosine. ONNX `HammingWindow` (17)."""

    traits = traits_def(Pure())


@onnx_op("BlackmanWindow", shape_operands=(0,))
class BlackmanWindowOp(WindowOp):
    """Sum of three cosines. ONNX `BlackmanWindow` (17)."""

    traits = traits_def(Pure())


@onnx_op("MelWeightMatrix", shape_operands=(0, 1))
class MelWeightMatrixOp(OnnxOp):
    """From linear frequencies to mel bins. ONNX `MelWeightMatrix` (17)."""

    num_mel_bins = RequiredOperand(0)
    dft_length = RequiredOperand(1)
    sample_rate = RequiredOperand(2)
    traits = traits_def(Pure())


@onnx_op("DFT", shape_operands=(1, 2))
class DFTOp(OnnxOp):
    """Discrete Fourier transform. ONNX `DFT` (17, 20)."""

    input = RequiredOperand(0)
    dft_length = Operand(1)
    axis = Operand(2)
    traits = traits_def(Pure())


@onnx_op("STFT", shape_operands=(1, 3))
class STFTOp(OnnxOp):
    """Discrete Fourier transform of overlapping frames. ONNX `STFT` (17)."""

    signal = RequiredOperand(0)
    frame_step = RequiredOperand(1)
    window = Operand(2)
    frame_length = Operand(3)
    traits = traits_def(Pure())


@onnx_op("ImageDecoder")
class ImageDecoderOp(OnnxOp):
    """The pixels of an encoded image. ONNX `ImageDecoder` (20)."""

    encoded_stream = RequiredOperand(0)
    traits = traits_def(Pure(), DataDependentShape())


OPERATORS = (
    HannWindowOp,
    HammingWindowOp,
    BlackmanWindowOp,
    MelWeightMatrixOp,
    DFTOp,
    STFTOp,
    ImageDecoderOp,
)
