"""What the fused normalisations stand for; no more operators than the fusions replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fused.expand_common import element
from foldline.dialects.fused.parts import Parts
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.types import dims_of, static_shape
from foldline.support.dtypes import BY_CODE, ElementType

Addends: TypeAlias = Sequence[SSAValue]
"""What is normalised, or two values of which the sum is."""

LAYER_NORMALIZATION = 17
"""The operator set that ONNX has it from; ONNX Runtime takes it in earlier ones as well."""


def layer(op: OnnxOp, parts: Parts) -> SSAValue:
    """LayerNormalization: rows brought to mean 0 and variance 1, then scaled and shifted."""
    return _layer(op, parts, op.operands[:1], op.operands[1], op.operand(2))[0]


def skip_layer(op: OnnxOp, parts: Parts) -> tuple[SSAValue, ...]:
    """SkipLayerNormalization: the rows of a sum, and the sum."""
    return _layer(op, parts, op.operands[:2], op.operands[2], op.operand(3))[: len(op.results)]


def _layer(
    op: OnnxOp, parts: Parts, added: Addends, scale: SSAValue, bias: SSAValue | None
) -> tuple[SSAValue, SSAValue]:
    """The rows, and what they are rows of."""
    x = _sum(parts, added)
    if parts.opsets.get("", 0) >= LAYER_NORMALIZATION:
        return parts.op("LayerNormalization", x, scale, bias, **_settings(op)), x
    axes, wide = _axes(op, added), _wide(op, parts, x)
    centred = parts.Sub(wide, parts.op("ReduceMean", wide, axes=axes, keepdims=1))
    variance = parts.op("ReduceMean", parts.Mul(centred, centred), axes=axes, keepdims=1)
    rows = _narrow(op, parts, parts.Div(centred, _root(op, parts, variance)))
    scaled = _scaled(parts, rows, scale)
    return scaled if bias is None else parts.Add(scaled, bias), x


def rms(op: OnnxOp, parts: Parts) -> SSAValue:
    """RMSNormalization: rows divided by the root of their mean square, then scaled."""
    return _rms(op, parts, op.operands[:1], op.operands[1])[0]


def skip_rms(op: OnnxOp, parts: Parts) -> tuple[SSAValue, ...]:
    """SkipRMSNormalization: the rows of a sum, and the sum."""
    return _rms(op, parts, op.operands[:2], op.operands[2])[: len(op.results)]


def _rms(op: OnnxOp, parts: Parts, added: Addends, scale: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The rows, and what they are rows of."""
    x = _sum(parts, added)
    if parts.has("RMSNormalization"):
        return parts.op("RMSNormalization", x, scale, **_settings(op)), x
    wide = _wide(op, parts, x)
    squares = parts.op("ReduceMean", parts.Mul(wide, wide), axes=_axes(op, added), keepdims=1)
    root = _root(op, parts, squares)
    inverse = op.value_of("inverse")
    rows = parts.Mul(wide, parts.Reciprocal(root)) if inverse else parts.Div(wide, root)
    return _scaled(parts, _narrow(op, parts, rows), scale), x


def _sum(parts: Parts, added: Addends) -> SSAValue:
    return added[0] if len(added) == 1 else parts.Add(*added)


def group(op: OnnxOp, parts: Parts) -> SSAValue:
    """GroupNormalization with a scale and a bias for each channel, below version 21 of ONNX.

    InstanceNormalization of the groups as channels. Where sizes are not known, an input says them,
    as the parts that were replaced read it too.
    """
    x, scale, bias = op.operands[:3]
    groups: Any = op.value_of("num_groups")
    kind, static, shape = element(x).numpy, static_shape(x.type), op.operand(3)
    rows = parts.op("Reshape", x, shape=(0, groups, -1))
    ones, zeros = parts.constant(np.ones(groups, kind)), parts.constant(np.zeros(groups, kind))
    epsilon = op.value_of("epsilon")
    normal = parts.op("InstanceNormalization", rows, ones, zeros, epsilon=epsilon)
    if shape is None:
        shape = parts.Shape(x) if static is None else static
    return parts.Add(parts.Mul(parts.op("Reshape", normal, shape=shape), scale), bias)


def _scaled(parts: Parts, rows: SSAValue, scale: SSAValue) -> SSAValue:
    """The rows times the scale, which is ones where the parts that were replaced have none."""
    tensor = constant_tensor(scale)
    return rows if tensor is not None and (tensor.array == 1).all() else parts.Mul(rows, scale)


def _settings(op: OnnxOp) -> dict[str, Any]:
    return {name: op.value_of(name) for name in ("axis", "epsilon", "stash_type")}


def _axes(op: OnnxOp, added: Addends) -> tuple[int, ...]:
    """The axes that are normalised; the fusions count `axis` from the end."""
    axis: Any = op.value_of("axis")
    if axis >= 0:
        shapes = [dims_of(value.type) for value in added]
        assert None not in shapes
        axis -= max(len(dims) for dims in shapes if dims is not None)
    return tuple(range(axis, 0))


def _stash(op: OnnxOp) -> ElementType:
    """The element type of the parts before the scale: never narrower than the input's."""
    stash: Any = op.value_of("stash_type")
    return BY_CODE[stash]


def _wide(op: OnnxOp, parts: Parts, x: SSAValue) -> SSAValue:
    own = element(op.operands[0])
    return x if _stash(op) == own else parts.op("Cast", x, to=_stash(op))


def _narrow(op: OnnxOp, parts: Parts, value: SSAValue) -> SSAValue:
    own = element(op.operands[0])
    return value if _stash(op) == own else parts.op("Cast", value, to=own)


def _root(op: OnnxOp, parts: Parts, squares: SSAValue) -> SSAValue:
    epsilon = parts.constant(np.array(op.value_of("epsilon"), _stash(op).numpy))
    return parts.Sqrt(parts.Add(squares, epsilon))
