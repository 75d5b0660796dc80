"""Types of the results of operators that ONNX Runtime adds to ONNX.

Where an operator of ONNX has the shapes of such an operator, the onnx library is asked for those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from onnx import TypeProto, defs, shape_inference
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute

from foldline.dialects import OPERATORS
from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.node_proto import to_node_proto
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.type_proto import from_type_proto, to_type_proto
from foldline.dialects.onnx.types import (
    UNKNOWN,
    Dim,
    dims_of,
    element_attribute,
    tensor_type,
)
from foldline.stages.inference.contrib_attention_rules import (
    Constants,
    Rule,
    Types,
    element_at,
    group_attention,
    multi_head_attention,
    self_attention,
)
from foldline.support.dtypes import BY_CODE, BY_NAME

Shape: TypeAlias = "tuple[Dim, ...] | None"
"""None where not even the rank is known."""
ShapeRule: TypeAlias = Callable[[OnnxOp, list[Shape]], Shape]


def _single(element: int | Attribute, rule: ShapeRule) -> Rule:
    """One result: its shape by a rule, its element type, or the input that has the same."""

    def types_of(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types:
        own = element_at(types, element) if isinstance(element, int) else element
        shape = rule(op, [dims_of(given) for given in types])
        return (UNKNOWN if own is None else tensor_type(own, shape),)

    return types_of


def asked(
    op_type: str, shapes: Sequence[Shape], properties: Mapping[str, Attribute] | None = None
) -> Shape:
    """The shape of what an operator of ONNX makes of floats of these shapes."""
    cls = OPERATORS["", op_type]
    known = defs.get_schema(op_type).attributes
    given = {name: value for name, value in (properties or {}).items() if name in known}
    names = [f"i{n}" for n in range(len(shapes))]
    messages = {
        name: to_type_proto(tensor_type(f32, shape)) or TypeProto()
        for name, shape in zip(names, shapes, strict=True)
    }
    try:
        found = shape_inference.infer_node_outputs(
            defs.get_schema(op_type),
            to_node_proto(cls.create(properties=given), names, ["o"]),
            messages,
        )
    except (InferenceError, ValidationError, RuntimeError):
        return None
    return dims_of(from_type_proto(found["o"])) if "o" in found else None


def _like(op_type: str, *inputs: int) -> ShapeRule:
    """The shape that an operator of ONNX has for some of the inputs and the same attributes."""

    def rule(op: OnnxOp, shapes: list[Shape]) -> Shape:
        return asked(op_type, [shapes[i] for i in inputs], op.properties)

    return rule


def _first(op: OnnxOp, shapes: list[Shape]) -> Shape:
    return shapes[0]


def _channels_last(op_type: str, *inputs: int, always: bool = False) -> ShapeRule:
    """The shape that an operator of ONNX on windows has, with the channels at the end.

    `inputs` are those that it has beside the first.
    """

    def rule(op: OnnxOp, shapes: list[Shape]) -> Shape:
        x, *others = (shapes[i] for i in (0, *inputs))
        if x is None or not (always or op.int_of("channels_last")):
            return asked(op_type, [x, *others], op.properties)
        y = asked(op_type, [(x[0], x[-1], *x[1:-1]), *others], op.properties)
        return None if y is None else (y[0], *y[2:], y[1])

    return rule


def _matmul(op: OnnxOp, shapes: list[Shape]) -> Shape:
    return asked(
        "MatMul", [_turned(op, side, shape) for side, shape in zip("AB", shapes, strict=False)]
    )


def _turned(op: OnnxOp, side: str, shape: Shape) -> Shape:
    """The shape of a factor as FusedMatMul sees it."""
    if shape is None or len(shape) < 2:
        return shape
    if op.int_of(f"transBatch{side}"):
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if op.int_of(f"trans{side}") else shape


def _concat(op: OnnxOp, shapes: list[Shape]) -> Shape:
    return asked("Concat", shapes[2::3], op.properties)


def _where(op: OnnxOp, shapes: list[Shape]) -> Shape:
    return asked("Sum", [shapes[i] for i in (0, 1, 4)])


def _quantised_gemm(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    element = element_at(types, 8) or f32
    return _single(element, _like("Gemm", 0, 3))(op, types, constants)


def _reduced(shape: Shape, axis: int) -> Shape:
    """The shape with the axis and all after it reduced to 1."""
    if shape is None:
        return None
    axis %= max(1, len(shape))
    return (*shape[:axis], *(1,) * (len(shape) - axis))


def _norm(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    element = element_at(types, 1)
    if element is None:
        return None
    shape = dims_of(types[0])
    axis = op.int_of("axis")
    reduced = _reduced(shape, -1 if axis is None else axis)
    statistic = tensor_type(element_attribute(BY_CODE[op.int_of("stash_type") or 1]), reduced)
    return tensor_type(element, shape), statistic, statistic


def _early_norm(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    """LayerNormalization where the onnx library does not know it."""
    return None if defs.has(op.OP_TYPE, op.since, op.DOMAIN) else _norm(op, types, constants)


def _skip_norm(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    element = element_at(types, 0)
    if element is None:
        return None
    whole = tensor_type(element, dims_of(types[0]))
    statistic = tensor_type(f32, _reduced(dims_of(types[0]), -1))
    return whole, statistic, statistic, whole


def _embed_norm(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    element = element_at(types, 2)
    return None if element is None else _embedded(element, types)


def _quantised_embed_norm(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types:
    return _embedded(f32, types)[:2]


def _embedded(element: Attribute, types: Sequence[Attribute]) -> Types:
    """Result, counts and sum of embeddings."""
    ids, table = dims_of(types[0]), dims_of(types[2])
    shape = None if ids is None else (*ids, None if table is None else table[-1])
    whole = tensor_type(element, shape)
    return whole, tensor_type(i32, (None if ids is None else ids[0],)), whole


def _lstm(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types:
    x, r = dims_of(types[0]), dims_of(types[2])
    steps, batch = (None, None) if x is None else x[:2]
    directions, hidden = (None, None) if r is None else r[:2]
    last = tensor_type(f32, (directions, batch, hidden))
    return tensor_type(f32, (steps, directions, batch, hidden)), last, last


def _few_bits_matmul(op: OnnxOp, shapes: list[Shape]) -> Shape:
    return None if shapes[0] is None else (*shapes[0][:-1], op.int_of("N"))


def _quantised(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types:
    return (
        tensor_type(element_at(types, 2) or element_attribute(BY_NAME["uint8"]), dims_of(types[0])),
    )


_RULES: Mapping[str, Rule] = {
    "Attention": self_attention(element=0, past=4),
    "BiasGelu": _single(0, _first),
    "DequantizeLinear": _single(1, _first),
    "DynamicQuantizeLSTM": _lstm,
    "DynamicQuantizeMatMul": _single(f32, _matmul),
    "EmbedLayerNormalization": _embed_norm,
    "FastGelu": _single(0, _first),
    "FusedConv": _single(0, _like("Conv", 0, 1)),
    "FusedGemm": _single(0, _like("Gemm", 0, 1)),
    "FusedMatMul": _single(0, _matmul),
    "Gelu": _single(0, _first),
    "GroupQueryAttention": group_attention,
    "MatMulIntegerToFloat": _single(2, _matmul),
    "MatMulNBits": _single(0, _few_bits_matmul),
    "MultiHeadAttention": multi_head_attention,
    "NhwcMaxPool": _single(0, _channels_last("MaxPool", always=True)),
    "QAttention": self_attention(element=2, past=8),
    "QEmbedLayerNormalization": _quantised_embed_norm,
    "QGemm": _quantised_gemm,
    "QLinearAdd": _single(0, _like("Add", 0, 3)),
    "QLinearAveragePool": _single(0, _channels_last("AveragePool")),
    "QLinearConcat": _single(1, _concat),
    "QLinearConv": _single(7, _channels_last("Conv", 3)),
    "QLinearGlobalAveragePool": _single(0, _channels_last("GlobalAveragePool")),
    "QLinearLeakyRelu": _single(0, _first),
    "QLinearMul": _single(0, _like("Mul", 0, 3)),
    "QLinearSigmoid": _single(0, _first),
    "QLinearSoftmax": _single(0, _first),
    "QLinearWhere": _single(1, _where),
    "QuantizeLinear": _quantised,
    "QuickGelu": _single(0, _first),
    "RotaryEmbedding": _single(0, _first),
    "SkipLayerNormalization": _skip_norm,
    "SkipSimplifiedLayerNormalization": _skip_norm,
    "TransposeMatMul": _single(0, _matmul),
}


def _where_given(rule: Rule) -> Rule:
    """The rule, where no attribute is that of a function around the node."""

    def types_of(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
        refers = any(isinstance(value, ReferenceAttr) for value in op.properties.values())
        return None if refers else rule(op, types, constants)

    return types_of


CONTRIB_RULES: Mapping[type[OnnxOp], Rule] = {
    OPERATORS["", "LayerNormalization"]: _where_given(_early_norm),
    OPERATORS["", "SimplifiedLayerNormalization"]: _where_given(_norm),
    **{OPERATORS["com.microsoft", name]: _where_given(rule) for name, rule in _RULES.items()},
}
"""The rule of each operator."""
