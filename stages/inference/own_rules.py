"""Types of operators that the onnx library does not infer, or infers wrongly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, f32, i64
from xdsl.ir import Attribute

from foldline.dialects import OPERATORS
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.tensor import Array, TensorAttr
from foldline.dialects.onnx.types import (
    UNKNOWN,
    dims_of,
    element_type,
    static_shape,
    tensor_type,
    with_dims,
)
from foldline.stages.inference import (
    fused_attention_rules,
    fused_conv_rules,
    fused_linear_rules,
    fused_quantised_rules,
)
from foldline.stages.inference.contrib_rules import CONTRIB_RULES, asked
from foldline.support.dtypes import BY_CODE

Types = tuple[Attribute, ...]
Constants = Sequence[TensorAttr | None]
Rule = Callable[[OnnxOp, Sequence[Attribute], Constants], Types | None]

MISSED_DEFAULTS: Mapping[type[OnnxOp], Mapping[str, Attribute]] = {
    # The library takes an absent `onesided` for 0, the schema says 1.
    OPERATORS["", "STFT"]: {"onesided": IntegerAttr(1, i64)},
}
"""Defaults of attributes that the library's inference gets wrong: it is given them in writing."""


def told_types(op: OnnxOp, types: Sequence[Attribute]) -> list[Attribute]:
    """The input types as the library is told them: some unknown sizes it takes for 0."""
    rule = _MISREAD.get(type(op))
    return list(types) if rule is None else rule(op, types)


def withheld(op: OnnxOp, constant: TensorAttr) -> bool:
    """Whether the library is not told a constant, as it would refuse it.

    Bounds of Range are vectors of one element in bodies of the library's own functions.
    """
    return isinstance(op, OPERATORS["", "Range"]) and constant.array.ndim > 0


def unfit(op: OnnxOp) -> str:
    """Why the library must not be asked about a node; empty where it may be.

    It never comes back from an Einsum with dots that are not three.
    """
    if not isinstance(op, OPERATORS["", "Einsum"]):
        return ""
    equation = str(op.attribute_values().get("equation", ""))
    return "" if _EQUATION.fullmatch(equation) else f"{equation!r} is no equation of Einsum"


def own_types(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    """The result types by a rule of ours; None where there is none, or it does not know."""
    rule = _RULES.get(type(op))
    return None if rule is None or not types else rule(op, types, constants)


def _like_first(element: Attribute | None = None) -> Rule:
    """One result of the shape of the first input, and of its element type or another."""

    def rule(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
        own = element or element_type(types[0])
        return (UNKNOWN,) if own is None else (tensor_type(own, dims_of(types[0])),)

    return rule


def _range(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    """Range: as many elements as the kernel makes, which computes half types in a wider one."""
    element = element_type(types[0])
    bounds = [constant.array for constant in constants if constant is not None]
    if element is None or len(bounds) != 3 or not bounds[2].any():
        return None
    start, limit, delta = (_widened(op, bound) for bound in bounds)
    if start.dtype.kind in "iu":
        count = -((start.item() - limit.item()) // delta.item())
    else:
        steps = (limit - start).item() / delta.item()
        if not math.isfinite(steps):
            return None
        count = math.ceil(steps)
    return (tensor_type(element, (max(count, 0),)),)


def _widened(op: OnnxOp, array: Array) -> Array:
    if array.dtype.kind in "iu" or array.dtype.itemsize >= np.dtype(np.float32).itemsize:
        return array
    return array.astype(BY_CODE[op.int_of("stash_type") or 1].numpy)


def _max_unpool(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    """MaxUnpool: the shape that its third input asks for."""
    element = element_type(types[0])
    if element is None or len(constants) < 3 or constants[2] is None:
        return None
    shape = cast("list[int]", constants[2].array.reshape(-1).tolist())
    return (tensor_type(element, tuple(shape)),)


def _sums(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    """All results of the broadcast shape of the first two inputs, and of their element type."""
    element = element_type(types[0])
    if element is None:
        return None
    total = tensor_type(element, asked("Add", [dims_of(given) for given in types[:2]]))
    return (total,) * len(op.results)


def _told_of_sizes(op: OnnxOp, types: Sequence[Attribute]) -> list[Attribute]:
    """Resize: there are as many sizes as axes."""
    told, dims = list(types), dims_of(types[0])
    if len(types) > 3 and dims_of(types[3]) is not None and static_shape(types[3]) is None:
        axes = op.attribute_values().get("axes")
        known = axes if isinstance(axes, tuple) else dims
        told[3] = types[3] if known is None else with_dims(types[3], (len(known),))
    return told


def _told_without_sizes(op: OnnxOp, types: Sequence[Attribute]) -> list[Attribute]:
    element = element_type(types[0])
    is_known = element is None or static_shape(types[0]) is not None
    return [*types] if is_known else [tensor_type(element, None), *types[1:]]


_MISREAD: Mapping[type[OnnxOp], Callable[[OnnxOp, Sequence[Attribute]], list[Attribute]]] = {
    OPERATORS["", "Resize"]: _told_of_sizes,
    OPERATORS["", "StringNormalizer"]: _told_without_sizes,
}

_TERM = r"[a-zA-Z ]*(\.\.\.[a-zA-Z ]*)?"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")

_RULES: Mapping[type[OnnxOp], Rule] = {
    OPERATORS["", "GroupNormalization"]: _like_first(),
    OPERATORS["", "MaxUnpool"]: _max_unpool,
    OPERATORS["", "MeanVarianceNormalization"]: _like_first(),
    OPERATORS["", "Range"]: _range,
    OPERATORS["ai.onnx.ml", "Imputer"]: _like_first(),
    OPERATORS["foldline", "Attention"]: fused_attention_rules.attention,
    OPERATORS["foldline", "Conv"]: fused_conv_rules.conv,
    OPERATORS["foldline", "ConvTranspose"]: fused_conv_rules.conv,
    OPERATORS["foldline", "ConvIntegerToFloat"]: fused_quantised_rules.conv,
    OPERATORS["foldline", "DynamicQuantizeConv"]: fused_quantised_rules.conv,
    OPERATORS["foldline", "DynamicQuantizeMatMul"]: fused_quantised_rules.matmul,
    OPERATORS["foldline", "Linear"]: fused_linear_rules.linear,
    OPERATORS["foldline", "MatMulIntegerToFloat"]: fused_quantised_rules.matmul,
    OPERATORS["foldline", "QLinearActivation"]: fused_quantised_rules.like_first,
    OPERATORS["foldline", "QLinearAdd"]: fused_quantised_rules.arithmetic,
    OPERATORS["foldline", "QLinearBatchNormalization"]: fused_quantised_rules.like_first,
    OPERATORS["foldline", "QLinearGemm"]: fused_quantised_rules.gemm,
    OPERATORS["foldline", "QLinearGlobalAveragePool"]: fused_quantised_rules.global_pool,
    OPERATORS["foldline", "QLinearMul"]: fused_quantised_rules.arithmetic,
    OPERATORS["foldline", "RotaryEmbedding"]: fused_attention_rules.rotary_embedding,
    OPERATORS["foldline", "SkipLayerNormalization"]: _sums,
    OPERATORS["foldline", "SkipRMSNormalization"]: _sums,
    OPERATORS["ai.onnx.ml", "Normalizer"]: _like_first(f32),
    OPERATORS["ai.onnx.ml", "Scaler"]: _like_first(f32),
    **CONTRIB_RULES,
}
