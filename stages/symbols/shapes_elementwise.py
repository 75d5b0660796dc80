"""Sizes of results that are those of one input, or of several broadcast together."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.stages.symbols.expression import Expr, broadcast, constant
from foldline.stages.symbols.facts import Dims, Known, ShapeRule
from foldline.stages.symbols.reading import by_class, operand_dims

ONE = constant(1)


def like_first(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """The shape of the first input."""
    return (operand_dims(op, known, 0),)


def like_first_twice(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """Two results of the shape of the first input."""
    return (operand_dims(op, known, 0),) * 2


def together(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """All inputs broadcast; below opset 7 the first one's shape stays."""
    if op.signature is not None and "broadcast" in op.signature.attributes:
        return like_first(op, known)
    indices = range(len(op.operands))
    return (broadcast_dims(op, known, [operand_dims(op, known, i) for i in indices]),)


def quantised_pair(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """Inputs 0 and 3 broadcast: each is followed by its scale and zero point."""
    pair = [operand_dims(op, known, index) for index in (0, 3)]
    return (broadcast_dims(op, known, pair),)


def pair_twice(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """Two results of the shape of the first two inputs broadcast."""
    return (broadcast_dims(op, known, [operand_dims(op, known, index) for index in (0, 1)]),) * 2


def broadcast_dims(op: OnnxOp, known: Known, shapes: Sequence[Dims]) -> Dims:
    """Shapes broadcast together, aligned at the last axis."""
    given = [shape for shape in shapes if shape is not None]
    if len(given) < len(shapes) or not given:
        return None
    rank = max(map(len, given))
    padded = [(ONE,) * (rank - len(shape)) + shape for shape in given]
    sizes: list[Expr] = []
    for axis, column in enumerate(zip(*padded, strict=True)):
        size: Expr | None = column[0]
        for other in column[1:]:
            size = None if size is None else broadcast(size, other)
        sizes.append(known.fresh(op, 0, axis) if size is None else size)
    return tuple(sizes)


_LIKE_FIRST = (
    # Arithmetic and functions of single elements.
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "CastLike"),
    *("Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid"),
    *("HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "PRelu"),
    *("Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh"),
    *("Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu"),
    *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"),
    # Along axes, or over the whole, with a result for every element.
    *("BatchNormalization", "CumProd", "CumSum", "GroupNormalization", "Hardmax", "LRN"),
    *("InstanceNormalization", "LayerNormalization", "LogSoftmax", "LpNormalization"),
    *("MeanVarianceNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "Softmax"),
    *("ReverseSequence", "RotaryEmbedding", "Trilu"),
    # Written into.
    *("Scatter", "ScatterElements", "ScatterND", "TensorScatter"),
    # Only the shape counts.
    *("Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"),
)
_TOGETHER = (
    *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Mean", "Sum", "Where"),
    *("And", "Or", "Xor", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    *("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"),
)
_MICROSOFT_LIKE_FIRST = (
    *("BiasGelu", "FastGelu", "Gelu", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"),
    *("QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
)
_FUSED_LIKE_FIRST = (
    *("Gelu", "GroupNormalization", "HardSwish", "LayerNormalization", "Mish"),
    *("QLinearActivation", "QLinearBatchNormalization", "RMSNormalization", "Swish"),
)

RULES: dict[type[NodeOp], ShapeRule] = {
    **by_class({like_first: _LIKE_FIRST, like_first_twice: ("Dropout",), together: _TOGETHER}),
    **by_class({like_first: ("Imputer", "Normalizer", "Scaler", "Binarizer")}, "ai.onnx.ml"),
    **by_class(
        {like_first: _MICROSOFT_LIKE_FIRST, quantised_pair: ("QLinearAdd", "QLinearMul")},
        "com.microsoft",
    ),
    **by_class(
        {
            like_first: _FUSED_LIKE_FIRST,
            quantised_pair: ("QLinearAdd", "QLinearMul"),
            pair_twice: ("SkipLayerNormalization", "SkipRMSNormalization"),
        },
        "foldline",
    ),
}
