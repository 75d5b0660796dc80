"""qkv-merge: one product for the queries, keys and values of attention.

    MatMul(x, Q) + q, MatMul(x, K) + k, MatMul(x, V) + v
        ->   Split(MatMul(x, [Q K V]) + [q k v])

Products are those behind the operands of one Attention that read the same value, all MatMul or all
Gemm with the same attributes, with constant weights that nothing else reads; so for two of them
as well where that saves operators. A bias that is missing is zero. Nothing is held twice: weights
that are read elsewhere are left alone, and those that are stored as one repeated element, unless
the whole is small. Last bits move, as BLAS cuts a wider product otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from foldline.dialects import OPERATORS
from foldline.dialects.fold.compact import is_compact
from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.constant import constant_tensor, is_constant
from foldline.dialects.onnx.math import AddOp
from foldline.dialects.onnx.nn import GemmOp, MatMulOp
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.shape import ConcatOp
from foldline.dialects.onnx.tensor import Array, TensorAttr
from foldline.dialects.onnx.types import dims_of, rank, with_dims
from foldline.stages.context import PassContext
from foldline.stages.folding.growth import MAX_BYTES, growth
from foldline.stages.pass_base import GraphPass, PassOptions
from foldline.stages.replacing import bypass, insert, is_parametric, only_reader
from foldline.stages.rewrite.building import RuleBuilder
from foldline.support.passes import PASSES

ATTENTION = (OPERATORS["", "Attention"], OPERATORS[FUSED_DOMAIN, "Attention"])
FARTHEST = 8
"""So many operators at most stand between a product and the Attention that reads it."""
BROADCASTS = 7
"""From this version on, Add and Gemm broadcast without being told."""


@dataclass(frozen=True)
class QkvMerge(GraphPass):
    """Merge the products of queries, keys and values."""

    name = "qkv-merge"
    INFO: ClassVar = PASSES["qkv-merge"]

    max_bytes: int | None = MAX_BYTES
    """Larger results must not take more memory than what they are made of; None: they may."""

    def configured(self, options: PassOptions) -> Self:
        """With `fold.maxBytes`; none if `export.grow`."""
        return replace(self, max_bytes=None if options["export.grow"] else options["fold.maxBytes"])

    def run(self, context: PassContext) -> None:
        """Look at every Attention."""
        places = {op: place for place, op in enumerate(context.module.walk())}
        for op in [op for op in places if isinstance(op, ATTENTION)]:
            for members in _groups(op):
                problem = _problem(members, self.max_bytes)
                if problem is None:
                    first = min((member.op for member in members), key=lambda op: places[op])
                    _merge(context, members, first)
                else:
                    context.remark("declined", self.name, members[0].op, problem)


@dataclass(frozen=True)
class _Member:
    """A product with constant weights, and the Add of its bias."""

    op: MatMulOp | GemmOp
    addition: AddOp | None
    weights: TensorAttr
    bias: TensorAttr | None

    @property
    def last(self) -> NodeOp:
        """What makes the value that others read."""
        return self.op if self.addition is None else self.addition

    @property
    def columns_last(self) -> bool:
        """Whether a column of the result is one of the weights."""
        return not (isinstance(self.op, GemmOp) and self.op.int_of("transB"))

    @property
    def columns(self) -> int:
        """The size of the last axis of the result."""
        return self.weights.array.shape[-1 if self.columns_last else 0]

    @property
    def kind(self) -> tuple[object, ...]:
        """What is the same in products that can be one."""
        given = self.op.attribute_values() if isinstance(self.op, GemmOp) else {}
        return type(self.op), self.op.operands[0], self.weights.array.dtype, str(given)


def _groups(attention: NodeOp) -> Iterator[list[_Member]]:
    """The products behind an Attention that could be one, where that saves operators."""
    assert attention.parent is not None
    behind = (_product_behind(value, attention.parent) for value in attention.operands[:3])
    groups: dict[tuple[object, ...], list[_Member]] = {}
    for op in dict.fromkeys(behind):
        member = None if op is None else _member(op)
        if member is not None:
            groups.setdefault(member.kind, []).append(member)
    for members in groups.values():
        additions = sum(member.addition is not None for member in members)
        if len(members) > 1 and len(members) + additions > 2 + (additions > 0):
            yield members


def _product_behind(value: SSAValue, block: Block) -> MatMulOp | GemmOp | None:
    """The product that a value is made of, going from each operator to what it is mostly about."""
    for _ in range(FARTHEST):
        op = value.owner
        if not isinstance(op, NodeOp) or op.parent is not block:
            return None
        if isinstance(op, MatMulOp | GemmOp):
            return op
        data = [v for v in op.operands if not _is_constant(v)]
        if not data:
            return None
        value = data[-1] if isinstance(op, ConcatOp) else data[0]
    return None


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_constant(value.owner)


def _member(op: MatMulOp | GemmOp) -> _Member | None:
    weights = constant_tensor(op.operands[1])
    if weights is None or weights.array.ndim != 2 or is_compact(op.operands[1]):
        return None
    if weights.array.dtype.kind != "f" and weights.array.dtype.name != "bfloat16":
        return None
    if isinstance(op, MatMulOp):
        addition, bias = _addition(op, weights.array.shape[1])
        return _Member(op, addition, weights, bias)
    if is_parametric(op) or op.since < BROADCASTS:
        return None
    bias = None if op.C is None else constant_tensor(op.C)
    found = _Member(op, None, weights, bias)
    if (bias is None) != (op.C is None) or (bias is not None and not _fits(bias, found.columns)):
        return None
    return found


def _addition(op: MatMulOp, columns: int) -> tuple[AddOp, TensorAttr] | tuple[None, None]:
    """The Add of a bias, if that is all that reads a product."""
    value = op.results[0]
    add, axes = only_reader(value), rank(value.type)
    if not isinstance(add, AddOp) or add.parent is not op.parent or add.since < BROADCASTS:
        return None, None
    other = next((v for v in add.operands if v is not value), None)
    bias = None if other is None else constant_tensor(other)
    if bias is None or axes is None or bias.array.ndim > axes or not _fits(bias, columns):
        return None, None
    return add, bias


def _fits(bias: TensorAttr, columns: int) -> bool:
    """Whether there is one number, or one a column."""
    shape = bias.array.shape
    return bias.array.size == 1 or (bias.array.size == columns and shape[-1] == columns)


def _problem(members: Sequence[_Member], max_bytes: int | None) -> str | None:
    """Why products stay on their own."""
    for member in members:
        if not member.op.operands[1].has_one_use():
            return "the weights are read by others as well, and would be held twice"
        if rank(member.op.results[0].type) is None:
            return "the rank of the result is not known"
    if len({member.weights.array.shape[0 if member.columns_last else 1] for member in members}) > 1:
        return "the weights have different numbers of rows"
    weights = [member.weights for member in members]
    return growth(sum(tensor.array.nbytes for tensor in weights), weights, max_bytes)


def _merge(context: PassContext, members: Sequence[_Member], first: NodeOp) -> None:
    rewriter, build = context.rewriter, RuleBuilder(first)
    axis = 1 if members[0].columns_last else 0
    weights = build.constant(np.concatenate([m.weights.array for m in members], axis))
    merged = _product(build, members, weights)
    sizes, value = [member.columns for member in members], first.results[0]
    whole = with_dims(value.type, (*(dims_of(value.type) or ())[:-1], sum(sizes)))
    for op in build.made:
        rewriter.insert_before(op, first)
        if not is_constant(op):
            rewriter.set_type(op.results[0], whole)
    lasts = [member.last for member in members]
    names = Names(node_name(first), tuple(result_names(op)[0] for op in lasts))
    types = [op.results[0].type for op in lasts]
    last_axis = len(dims_of(whole) or ()) - 1
    made = Builder.at(first).split(merged, sizes, last_axis, types, names)
    parts = insert(rewriter, made, first)
    context.remark("applied", QkvMerge.name, first, f"products of {sizes} columns are one")
    for op, part in zip(lasts, parts, strict=True):
        reason = bypass(rewriter, op, [part])
        assert reason is None, reason


def _product(build: RuleBuilder, members: Sequence[_Member], weights: SSAValue) -> SSAValue:
    first = members[0].op
    x = first.operands[0]
    bias = None
    if any(member.bias is not None for member in members):
        bias = build.constant(np.concatenate([_bias_of(member) for member in members]))
    if isinstance(first, MatMulOp):
        product: SSAValue = build.op("MatMul", x, weights)
        return product if bias is None else build.op("Add", product, bias)
    given: dict[str, Any] = first.attribute_values()
    kept = {name: given[name] for name in ("alpha", "beta", "transA", "transB")}
    inputs = (x, weights) if bias is None else (x, weights, bias)
    return build.op("Gemm", *inputs, **kept)


def _bias_of(member: _Member) -> Array:
    if member.bias is None:
        return np.zeros(member.columns, member.weights.array.dtype)
    return np.broadcast_to(member.bias.array.reshape(-1), (member.columns,))
