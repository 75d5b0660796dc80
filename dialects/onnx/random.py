"""Operators that draw random numbers: never folded, never merged, never dead by value."""

from __future__ import annotations

from xdsl.irdl import traits_def
from xdsl.traits import Pure

from foldline.dialects.onnx.op import OnnxOp, onnx_op
from foldline.dialects.onnx.traits import NonDeterministic


@onnx_op("RandomNormal")
class RandomNormalOp(OnnxOp):
    """Normal numbers of a given shape. ONNX `RandomNormal` (1, 22)."""

    traits = traits_def(Pure(), NonDeterministic())


@onnx_op("RandomNormalLike")
class RandomNormalLikeOp(OnnxOp):
    """Normal numbers of the input's shape. ONNX `RandomNormalLike` (1, 22)."""

    traits = traits_def(Pure(), NonDeterministic())


@onnx_op("RandomUniform")
class RandomUniformOp(OnnxOp):
    """Uniform numbers of a given shape. ONNX `RandomUniform` (1, 22)."""

    traits = traits_def(Pure(), NonDeterministic())


@onnx_op("RandomUniformLike")
class RandomUniformLikeOp(OnnxOp):
    """Uniform numbers of the input's shape. ONNX `RandomUniformLike` (1, 22)."""

    traits = traits_def(Pure(), NonDeterministic())


@onnx_op("Bernoulli")
class BernoulliOp(OnnxOp):
    """Zeros and ones by probability. ONNX `Bernoulli` (15, 22)."""

    traits = traits_def(Pure(), NonDeterministic())


@onnx_op("Multinomial")
class MultinomialOp(OnnxOp):
    """Samples from a distribution. ONNX `Multinomial` (7, 22)."""

    traits = traits_def(Pure(), NonDeterministic())


OPERATORS = (
    RandomNormalOp,
    RandomNormalLikeOp,
    RandomUniformOp,
    RandomUniformLikeOp,
    BernoulliOp,
    MultinomialOp,
)
