"""Types of the results of the attention operators that ONNX Runtime adds to ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.ir import Attribute

from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import AbsentType, Dim, dims_of, element_type, tensor_type

Types: TypeAlias = tuple[Attribute, ...]
Constants: TypeAlias = Sequence[TensorAttr | None]
Rule: TypeAlias = Callable[[OnnxOp, Sequence[Attribute], Constants], Types | None]


def element_at(types: Sequence[Attribute], index: int) -> Attribute | None:
    """The element type of an input; None where it is absent or not known."""
    return element_type(types[index]) if index < len(types) else None


def self_attention(element: int, past: int) -> Rule:
    """Attention and QAttention: the result, and keys and values with those of the past."""

    def rule(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
        own = element_at(types, element)
        if own is None:
            return None
        x, weights = dims_of(types[0]), dims_of(types[1])
        batch, length = (None, None) if x is None else x[:2]
        hidden = _divided(None if weights is None else weights[-1], 3)
        sizes = op.ints_of("qkv_hidden_sizes") or (hidden,) * 3
        heads = op.int_of("num_heads")
        total = _with_past(length, types, past, 3)
        caches = (2, batch, heads, total, _divided(sizes[1], heads))
        return tensor_type(own, (batch, length, sizes[2])), tensor_type(own, caches)

    return rule


def multi_head_attention(
    op: OnnxOp, types: Sequence[Attribute], constants: Constants
) -> Types | None:
    """MultiHeadAttention: the result, present keys and values, and the scores."""
    own = element_at(types, 0)
    q, *given = (dims_of(t) for t in types[:3])
    heads = op.int_of("num_heads")
    k, v = (*given, None, None)[:2]
    if own is None or q is None:
        return None
    if k is None or v is None:
        packed = k or q
        size = packed[4] if len(packed) == 5 else None
        length, k_size, v_size = packed[1], size, size
    elif len(v) == 4:
        length, k_size, v_size = k[2], k[3], v[3]
    else:
        length, k_size, v_size = k[1], _divided(k[2], heads), _divided(v[2], heads)
    width = heads * v_size if isinstance(heads, int) and isinstance(v_size, int) else None
    total = count = _with_past(length, types, 6, 2)
    if len(types) > 8 and not isinstance(types[8], AbsentType):
        buffer = dims_of(types[6])
        total, count = None, None if buffer is None else buffer[2]
    return (
        tensor_type(own, (q[0], q[1], width)),
        tensor_type(own, (q[0], heads, count, k_size)),
        tensor_type(own, (q[0], heads, count, v_size)),
        tensor_type(own, (q[0], heads, q[1], total)),
    )


def group_attention(op: OnnxOp, types: Sequence[Attribute], constants: Constants) -> Types | None:
    """GroupQueryAttention: the result, and caches as long as the constant total at least."""
    own, q = element_at(types, 0), dims_of(types[0])
    heads, kv_heads = op.int_of("num_heads"), op.int_of("kv_num_heads")
    if own is None or q is None or heads is None or kv_heads is None:
        return None
    is_packed = isinstance(types[1], AbsentType)
    size = _divided(q[2], heads + 2 * kv_heads if is_packed else heads)
    past = (None,) * 4 if isinstance(types[3], AbsentType) else dims_of(types[3]) or (None,) * 4
    total = constants[6]
    count = None
    if total is not None and (isinstance(past[2], int) or isinstance(types[3], AbsentType)):
        count = max(int(total.array.item()), past[2] if isinstance(past[2], int) else 0)
    cache = tensor_type(own, (q[0], kv_heads, count, size))
    width = heads * size if isinstance(size, int) else None
    return tensor_type(own, (q[0], q[1], width)), cache, cache, tensor_type(own, None)


def _divided(size: Dim, by: Dim) -> Dim:
    return size // by if isinstance(size, int) and isinstance(by, int) and by else None


def _with_past(length: Dim, types: Sequence[Attribute], index: int, axis: int) -> Dim:
    """A length plus that of the cache at an input, if it is there."""
    if index >= len(types) or isinstance(types[index], AbsentType):
        return length
    past = dims_of(types[index])
    before = None if past is None else past[axis]
    return length + before if isinstance(length, int) and isinstance(before, int) else None
