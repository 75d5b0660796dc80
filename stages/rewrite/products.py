"""Operators with constant weights, one set a channel of the result, that can take up a scale.

Conv, ConvTranspose, Gemm, MatMul with what is added to it, and BatchNormalization, whose weights
are its scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fold.compact import is_compact
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.nn import BatchNormalizationOp
from foldline.dialects.onnx.op import NodeOp, opset_versions
from foldline.dialects.onnx.tensor import Array, Tensor
from foldline.dialects.onnx.types import rank
from foldline.stages.replacing import is_parametric
from foldline.stages.rewrite.affine import Channels, Floats, channel_numbers
from foldline.stages.rewrite.building import RuleBuilder

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
"""Types in which weights can be folded: of a narrower one, rounding would show."""


@dataclass(frozen=True)
class Product:
    """An operator, and the Add that holds the bias of a MatMul."""

    op: NodeOp
    channels: Channels
    weights: Tensor
    bias: Floats | None
    """One number, or one a channel."""
    spread: Callable[[Array], Array]
    """Numbers of channels in a shape that broadcasts to the weights."""
    made: Callable[[RuleBuilder, Array, Array | None], SSAValue]
    """The operator with other weights and another bias."""


def product_of(op: NodeOp, addition: NodeOp | None = None) -> Product | str:
    """An operator as a product, or why it is none; `addition` adds the bias of a MatMul."""
    if is_parametric(op):
        return "its attributes are given by the callers of the function"
    weights = _tensor(op.operand(1))
    if weights is None:
        return f"the weights of {op.op_type} are not constant"
    if is_compact(op.operands[1]):
        return "the weights are held in a half type"
    if weights.array.dtype not in FLOATS:
        return f"the weights are {weights.array.dtype}"
    return _READERS[op.op_type](op, weights, addition)


def _conv(op: NodeOp, weights: Tensor, addition: NodeOp | None) -> Product | str:
    del addition
    shape = weights.array.shape

    def spread(numbers: Array) -> Array:
        return numbers.reshape(-1, *(1,) * (len(shape) - 1))

    return _convolution(op, weights, shape[0], spread)


def _conv_transpose(op: NodeOp, weights: Tensor, addition: NodeOp | None) -> Product | str:
    """The channels of the result are those of W's axis 1, group by group."""
    del addition
    shape, values = weights.array.shape, op.attribute_values()
    group: Any = values["group"]

    def spread(numbers: Array) -> Array:
        by_group = np.broadcast_to(numbers, (group * shape[1],)).reshape(group, shape[1])
        rows = np.repeat(by_group, shape[0] // group, axis=0)
        return rows.reshape(*rows.shape, *(1,) * (len(shape) - 2))

    return _convolution(op, weights, group * shape[1], spread)


def _convolution(
    op: NodeOp, weights: Tensor, count: int, spread: Callable[[Array], Array]
) -> Product | str:
    bias = _vector(op, 2)
    if isinstance(bias, str):
        return bias

    def made(build: RuleBuilder, w: Array, b: Array | None) -> SSAValue:
        constants = [build.constant(array) for array in (w, b) if array is not None]
        return build.like(op, [op.operands[0], *constants])

    channels = Channels(op.results[0], count, 1, weights.array.ndim)
    return Product(op, channels, weights, bias, spread, made)


def _gemm(op: NodeOp, weights: Tensor, addition: NodeOp | None) -> Product | str:
    del addition
    if opset_versions(op)[""] < 7:
        return "Gemm broadcasts by an attribute below operator set 7"
    given: Any = op.attribute_values()
    by_row = bool(given["transB"])
    channels = Channels(op.results[0], weights.array.shape[0 if by_row else 1], -1, 2)
    c = op.operand(2)
    bias: Floats | None = None
    if c is not None:
        tensor = constant_tensor(c)
        numbers = (
            "the bias of Gemm is not constant"
            if tensor is None
            else channel_numbers(op, 0, tensor.array, channels)
        )
        if isinstance(numbers, str):
            return numbers
        bias = numbers * given["beta"]

    def made(build: RuleBuilder, w: Array, b: Array | None) -> SSAValue:
        constants = [build.constant(array) for array in (w, b) if array is not None]
        kept = {name: given[name] for name in ("alpha", "transA", "transB")}
        return build.op("Gemm", op.operands[0], *constants, **kept)

    return Product(op, channels, weights, bias, lambda f: f.reshape(-1, 1) if by_row else f, made)


def _matmul(op: NodeOp, weights: Tensor, addition: NodeOp | None) -> Product | str:
    if weights.array.ndim < 2:
        return "the second factor of MatMul is a vector"
    value = (op if addition is None else addition).results[0]
    channels = Channels(value, weights.array.shape[-1], -1, rank(op.results[0].type))
    bias: Floats | None = None
    if addition is not None:
        place = 0 if addition.operands[0] is op.results[0] else 1
        tensor = constant_tensor(addition.operands[1 - place])
        assert tensor is not None, "the pattern wants a constant"
        numbers = channel_numbers(addition, place, tensor.array, channels)
        if isinstance(numbers, str):
            return numbers
        bias = numbers

    def made(build: RuleBuilder, w: Array, b: Array | None) -> SSAValue:
        product: SSAValue = build.op("MatMul", op.operands[0], build.constant(w))
        return product if b is None else build.op("Add", product, build.constant(b))

    return Product(op, channels, weights, bias, lambda f: f, made)


def _batchnorm(op: NodeOp, weights: Tensor, addition: NodeOp | None) -> Product | str:
    del addition
    assert isinstance(op, BatchNormalizationOp)
    if op.trains() or op.int_of("spatial") == 0:
        return "the BatchNormalization trains, or has statistics for each element"
    bias = _vector(op, 2)
    if isinstance(bias, str):
        return bias

    def made(build: RuleBuilder, w: Array, b: Array | None) -> SSAValue:
        assert b is not None
        constants = [build.constant(w), build.constant(b)]
        return build.like(op, [op.operands[0], *constants, *op.operands[3:]])

    known = rank(op.results[0].type)
    channels = Channels(op.results[0], len(weights.array), 1, known)
    return Product(op, channels, weights, bias, lambda f: f, made)


def _vector(op: NodeOp, place: int) -> Floats | str | None:
    value = op.operand(place)
    if value is None:
        return None
    tensor = constant_tensor(value)
    if tensor is None:
        return f"the bias of {op.op_type} is not constant"
    return tensor.array.astype(np.float64)


def _tensor(value: SSAValue | None) -> Tensor | None:
    found = None if value is None else constant_tensor(value)
    return None if found is None else found.data


_READERS: dict[str, Callable[[NodeOp, Tensor, NodeOp | None], Product | str]] = {
    "BatchNormalization": _batchnorm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
}
