"""attention-scale-fold: fold the scale of attention into the weights that make its queries.

    Attention(Reshape(Add(MatMul(x, W), b)), k, v) {scale = 0.125}
        ->   Attention(Reshape(Add(MatMul(x, 0.125 W), 0.125 b)), k, v)

Reshape, Transpose, Squeeze and RotaryEmbedding may stand in between, and a Split of queries, keys
and values made together: only the columns of the queries are scaled then. Requires constant weights
in float32 or float64 that nothing else reads. They are scaled in float64 and rounded once; last
bits move, unless the scale is a power of two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import SSAValue

from foldline.dialects import OPERATORS
from foldline.dialects.fold.compact import is_compact
from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.math import AddOp
from foldline.dialects.onnx.nn import GemmOp, MatMulOp
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.shape import ReshapeOp, SplitOp, SqueezeOp, TransposeOp
from foldline.dialects.onnx.tensor import Array, TensorAttr
from foldline.dialects.onnx.types import rank
from foldline.stages.context import PassContext
from foldline.stages.folding.growth import MAX_BYTES, growth
from foldline.stages.pass_base import GraphPass, PassOptions
from foldline.stages.replacing import drop_unused, insert, is_parametric
from foldline.stages.rewrite.attention_source import sole_producer
from foldline.stages.rewrite.products import FLOATS
from foldline.support.passes import PASSES

ATTENTION, LINEAR, ROTARY = (
    OPERATORS[FUSED_DOMAIN, name] for name in ("Attention", "Linear", "RotaryEmbedding")
)


@dataclass(frozen=True)
class AttentionScaleFold(GraphPass):
    """Fold scales of attention into weights."""

    name = "attention-scale-fold"
    INFO: ClassVar = PASSES["attention-scale-fold"]

    max_bytes: int | None = MAX_BYTES
    """Larger results must not take more memory than what they are made of; None: they may."""

    def configured(self, options: PassOptions) -> Self:
        """With `fold.maxBytes`; none if `export.grow`."""
        return replace(self, max_bytes=None if options["export.grow"] else options["fold.maxBytes"])

    def run(self, context: PassContext) -> None:
        """Look at every Attention."""
        for op in [op for op in context.module.walk() if isinstance(op, ATTENTION)]:
            scale: Any = op.value_of("scale")
            if scale == 1:
                continue
            queries = _queries(op, context)
            problem = (
                queries
                if isinstance(queries, str)
                else _fold(context, queries, float(scale), self.max_bytes)
            )
            if problem is None:
                context.remark("applied", self.name, op, f"the scale {scale:g} is in the weights")
                op.properties["scale"] = FloatAttr(1.0, f32)
            else:
                context.remark("declined", self.name, op, problem)


@dataclass(frozen=True)
class _Part:
    """What is taken of an axis."""

    axis: int
    start: int
    stop: int


@dataclass(frozen=True)
class _Queries:
    """What makes the queries: some columns of a product, and of what is added to it."""

    product: OnnxOp
    """MatMul, Gemm or a Linear without activation."""
    addition: AddOp | None
    columns: Array | None
    """Their numbers; None: all."""


def _queries(attention: OnnxOp, context: PassContext) -> _Queries | str:
    value, part, columns = attention.operands[0], None, None
    while True:
        op = sole_producer(value, attention.results[0])
        is_whole = part is None and columns is None
        match op:
            case SplitOp() if is_whole:
                part = _part(op, value, context)
                value = op.operands[0]
                if part is None:
                    return "the queries are a part of unknown size of what is split"
            case TransposeOp() if columns is None and op.permutation() is not None:
                order = op.permutation() or ()
                part = part and replace(part, axis=order[part.axis])
                value = op.data
            case ReshapeOp() if columns is None:
                columns = part and _columns(op, part, context)
                if part is not None and columns is None:
                    return "the queries are not known columns of what is split"
                value, part = op.data, None
            case SqueezeOp() if is_whole:
                value = op.data
            case _ if isinstance(op, ROTARY) and is_whole:
                value = op.operands[0]
            case AddOp() | MatMulOp() | GemmOp():
                if part is not None and part.axis != (rank(value.type) or 0) - 1:
                    return f"the queries are split along axis {part.axis}, not along the last"
                columns = columns if part is None else np.arange(part.start, part.stop)
                return _made_by(op, attention, columns)
            case _ if isinstance(op, LINEAR) and is_whole and not op.value_of("activation"):
                return _Queries(op, None, None)
            case _:
                maker = "something else as well" if op is None else op.op_type
                return f"the queries are made by {maker}, not by a product with weights"


def _part(op: SplitOp, value: SSAValue, context: PassContext) -> _Part | None:
    """What a result of a Split is of its input."""
    dims = context.knowledge.dims(op.operands[0])
    axis = op.int_of("axis") or 0
    if dims is None:
        return None
    sizes: list[int] = []
    for result in op.results:
        found = context.knowledge.dims(result)
        size = None if found is None else found[axis].value
        if size is None:
            return None
        sizes.append(size)
    place = next(i for i, result in enumerate(op.results) if result is value)
    return _Part(axis % len(dims), sum(sizes[:place]), sum(sizes[: place + 1]))


def _columns(op: ReshapeOp, part: _Part, context: PassContext) -> Array | None:
    """The numbers of the columns that a part is of, where an axis of columns becomes several."""
    before, after = context.knowledge.dims(op.data), context.knowledge.dims(op.results[0])
    count = before[-1].value if before else None
    sizes: list[int] = []
    for size in reversed(after or ()):
        if size.value is None or count is None or math.prod(sizes) * size.value > count:
            return None
        sizes.insert(0, size.value)
        if math.prod(sizes) == count:
            break
    first = len(after or ()) - len(sizes)
    if count is None or math.prod(sizes) != count or part.axis < first:
        return None
    numbers = np.arange(count).reshape(sizes)
    return numbers.take(range(part.start, part.stop), part.axis - first).reshape(-1)


def _made_by(
    op: AddOp | MatMulOp | GemmOp, attention: OnnxOp, columns: Array | None
) -> _Queries | str:
    if not isinstance(op, AddOp):
        return _Queries(op, None, columns)
    for value, other in (op.operands, tuple(op.operands)[::-1]):
        product = sole_producer(value, attention.results[0])
        if constant_tensor(other) is not None and isinstance(product, MatMulOp):
            return _Queries(product, op, columns)
    return "what is added to the queries is no bias of a MatMul"


def _fold(
    context: PassContext, queries: _Queries, scale: float, max_bytes: int | None
) -> str | None:
    """Scale weights and bias, or say why not."""
    product, addition = queries.product, queries.addition
    if is_parametric(product):
        return f"the attributes of {product.op_type} are given by the callers of the function"
    values = [product.operands[1]]
    if addition is not None:
        values += [v for v in addition.operands if v is not product.results[0]]
    values += [v for v in (product.operand(2),) if v is not None]
    tensors = [constant_tensor(value) for value in values]
    given = [tensor for tensor in tensors if tensor is not None]
    if len(given) < len(values):
        return "the weights or the bias of the queries are not constant"
    problem = _weights_problem(product, values[0], given[0])
    if problem is None:
        problem = growth(given[0].array.nbytes, given[:1], max_bytes)
    if problem is not None:
        return problem
    axis = 0 if product.int_of("transB") else -1
    count = given[0].array.shape[axis]
    made = [_scaled(given[0].array, scale, queries.columns, axis)]
    made += [_scaled_bias(t.array, scale, queries.columns, count) for t in given[1:]]
    if not all(np.isfinite(array).all() for array in made):
        return "the scaled weights are not finite"
    _put(context, queries, values, made)
    return None


def _weights_problem(product: OnnxOp, value: SSAValue, weights: TensorAttr) -> str | None:
    if weights.array.dtype not in FLOATS:
        return f"the weights are {weights.array.dtype}"
    if weights.array.ndim != 2 or rank(product.results[0].type) is None:
        return f"the weights have shape {list(weights.array.shape)}, and are no matrix"
    if is_compact(value):
        return "the weights are held in a half type"
    return None if value.has_one_use() else "the weights are read by others as well"


def _scaled(array: Array, scale: float, columns: Array | None, axis: int) -> Array:
    """Some columns times the scale, rounded once."""
    made = array.astype(np.float64)
    part = (..., slice(None) if columns is None else columns)
    view = made.swapaxes(axis, -1)
    view[part] = view[part] * scale
    with np.errstate(over="ignore"):
        return made.astype(array.dtype)


def _scaled_bias(array: Array, scale: float, columns: Array | None, count: int) -> Array:
    """One number a column where not all columns are scaled."""
    array = np.atleast_1d(array)
    if columns is not None:
        array = np.broadcast_to(array, (*array.shape[:-1], count))
    return _scaled(array, scale, columns, -1)


def _put(
    context: PassContext, queries: _Queries, values: Sequence[SSAValue], made: Sequence[Array]
) -> None:
    """Let the operators read other constants."""
    rewriter, first = context.rewriter, queries.product
    builder = Builder.at(first)
    new = {
        value: insert(rewriter, builder.constant(array), first)[0]
        for value, array in zip(values, made, strict=True)
    }
    for op in (queries.product, queries.addition):
        if op is not None:
            rewriter.set_operands(op, [new.get(operand, operand) for operand in op.operands])
    drop_unused(rewriter, values)
