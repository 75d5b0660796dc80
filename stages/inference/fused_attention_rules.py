"""Types of the results of the fused attention operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from xdsl.ir import Attribute

from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import Dim, dims_of, element_type, tensor_type

Dims: TypeAlias = "tuple[Dim, ...]"


def attention(
    op: OnnxOp, types: Sequence[Attribute], constants: Sequence[TensorAttr | None]
) -> tuple[Attribute, ...] | None:
    """Attention: the axes of queries, with the size of values, in the order of the result."""
    element = element_type(types[0])
    names = ("query_perm", "key_perm", "value_perm")
    given = [_ordered(op, dims_of(t), name) for t, name in zip(types, names, strict=False)]
    mask = () if len(types) < 4 else dims_of(types[3]) or ()
    q, k, v = given
    if element is None or q is None or k is None or v is None:
        return None
    groups = op.int_of("groups") or 1
    if groups > 1:
        k, v = (_repeated(dims, groups) for dims in (k, v))
    lead = reduce(_broadcast, (q[:-2], k[:-2], v[:-2], mask[:-2]))
    result = _ordered(op, (*lead, q[-2], v[-1]), "output_perm")
    return (tensor_type(element, result),)


def _repeated(dims: Dims, groups: int) -> Dims:
    heads = dims[-3]
    return (*dims[:-3], heads * groups if isinstance(heads, int) else None, *dims[-2:])


def _ordered(op: OnnxOp, dims: Dims | None, name: str) -> Dims | None:
    perm = op.ints_of(name)
    return dims if dims is None or perm is None else tuple(dims[axis] for axis in perm)


def _broadcast(a: Dims, b: Dims) -> Dims:
    rank = max(len(a), len(b))
    a, b = ((1,) * (rank - len(dims)) + dims for dims in (a, b))
    return tuple(map(_broadcast_size, a, b))


def _broadcast_size(a: Dim, b: Dim) -> Dim:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    return next((size for size in (a, b) if isinstance(size, int)), None)


def rotary_embedding(
    op: OnnxOp, types: Sequence[Attribute], constants: Sequence[TensorAttr | None]
) -> tuple[Attribute, ...] | None:
    """RotaryEmbedding: the shape of its inputs broadcast together."""
    element, given = element_type(types[0]), [dims_of(t) for t in types]
    dims = [d for d in given if d is not None]
    if element is None or len(dims) < len(given):
        return None
    return (tensor_type(element, reduce(_broadcast, dims)),)
