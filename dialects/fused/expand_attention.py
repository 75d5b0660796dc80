"""What the fused attention operators stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from foldline.dialects.fused.expand_common import scalar
from foldline.dialects.fused.parts import Parts
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.types import Dim, dims_of, element_type, rank


def attention(op: OnnxOp, parts: Parts) -> SSAValue:
    """Transposes, scaled products, mask, Softmax; Attention where that computes the same."""
    q, k, v = (
        _ordered(parts, op, i, name) for i, name in enumerate(("query_perm", "", "value_perm"))
    )
    if _is_standard(op, parts):
        keys = _ordered(parts, op, 1, "key_perm")
        y = parts.Attention(q, keys, v, op.operand(3), scale=op.value_of("scale"))
    else:
        y = _spelt_out(op, parts, q, _swapped(parts, op, k), v)
    return _transposed(parts, y, op.ints_of("output_perm"))


def _spelt_out(op: OnnxOp, parts: Parts, q: SSAValue, k: SSAValue, v: SSAValue) -> SSAValue:
    """`k` is transposed. Heads that share keys lie behind one another, as if they were longer."""
    groups, kv_heads, scale = op.int_of("groups") or 1, op.int_of("kv_heads") or 0, _scale(op)
    apart, together = (0, groups * kv_heads, -1, 0), (0, kv_heads, -1, 0)

    def seen(x: SSAValue, shape: Sequence[int]) -> SSAValue:
        return x if groups == 1 else parts.op("Reshape", x, shape=shape)

    if scale != 1:
        q = parts.Mul(q, scalar(op, parts, scale))
    scores = seen(parts.MatMul(seen(q, together), k), apart)
    mask = op.operand(3)
    if mask is not None and element_type(mask.type) == i1:
        hidden = scalar(op, parts, _number(op, "mask_value"))
        kept = (scores, hidden) if op.int_of("mask_keeps") else (hidden, scores)
        scores = parts.Where(mask, *kept)
    elif mask is not None:
        scores = parts.Add(scores, mask)
    axis = (rank(op.operands[0].type) or 0) - 1
    shares = parts.op("Softmax", scores, axis=axis)
    if op.int_of("guarded"):
        shares = parts.Where(parts.IsNaN(shares), scalar(op, parts, 0.0), shares)
    return seen(parts.MatMul(seen(shares, together), v), apart)


def _is_standard(op: OnnxOp, parts: Parts) -> bool:
    """Whether Attention says the same.

    It has rules of its own for rows without a number, and takes no images and heads of size 1 for
    those of another operand, as products of matrices do.
    """
    mask = op.operand(3)
    return (
        parts.has("Attention")
        and rank(op.operands[0].type) == 4
        and not op.int_of("guarded")
        and _scale(op) > 0
        and _are_alike(op)
        and (mask is None or _is_full(op, mask))
    )


def _are_alike(op: OnnxOp) -> bool:
    """Whether queries, keys and values are known to be of the same images and heads."""
    found: set[tuple[Dim, ...] | None] = set()
    for operand, name in zip(op.operands, ("query_perm", "key_perm", "value_perm"), strict=False):
        dims = dims_of(operand.type)
        perm = op.ints_of(name) or range(4)
        found.add(None if dims is None else tuple(dims[axis] for axis in perm[:2]))
    (alike, *others) = found
    return alike is not None and None not in alike and not others


def _is_full(op: OnnxOp, mask: SSAValue) -> bool:
    """Whether a mask is finite numbers, one for each query and key."""
    tensor = constant_tensor(mask)
    if tensor is None or not np.isfinite(tensor.array).all() or tensor.array.dtype == np.bool_:
        return False
    sizes = [dims_of(op.operands[i].type) for i in (0, 1)]
    perms = [op.ints_of(name) or range(4) for name in ("query_perm", "key_perm")]
    lengths = [dims[perm[-2]] for dims, perm in zip(sizes, perms, strict=True) if dims is not None]
    return [*tensor.array.shape[-2:]] == lengths


def _ordered(parts: Parts, op: OnnxOp, index: int, name: str) -> SSAValue:
    return _transposed(parts, op.operands[index], op.ints_of(name) if name else None)


def _swapped(parts: Parts, op: OnnxOp, keys: SSAValue) -> SSAValue:
    """Keys with length last."""
    axes = list(op.ints_of("key_perm") or range(rank(keys.type) or 0))
    return _transposed(parts, keys, (*axes[:-2], axes[-1], axes[-2]))


def _transposed(parts: Parts, x: SSAValue, perm: Sequence[int] | None) -> SSAValue:
    if perm is None:
        return x
    dims = dims_of(x.type)
    moved = [axis for place, axis in enumerate(perm) if place != axis]
    if all(dims is not None and dims[axis] == 1 for axis in moved):
        # As when the file is read again, where it would go.
        return x
    return parts.op("Transpose", x, perm=tuple(perm))


def _scale(op: OnnxOp) -> float:
    return _number(op, "scale")


def _number(op: OnnxOp, name: str) -> float:
    value: Any = op.value_of(name)
    return -math.inf if value is None else float(value)


def rotary_embedding(op: OnnxOp, parts: Parts) -> SSAValue:
    """Pairs (a, b) turned to (-b, a), times sines, and added to the products with cosines."""
    x, c, s = op.operands
    last = (rank(x.type) or 1) - 1
    if op.int_of("interleaved"):
        a, b = (
            parts.op("Slice", x, starts=(i,), ends=(2**63 - 1,), axes=(last,), steps=(2,))
            for i in (0, 1)
        )
        pair = (parts.op("Unsqueeze", v, axes=(last + 1,)) for v in (parts.Neg(b), a))
        joined = parts.op("Concat", *pair, axis=last + 1)
        turned = parts.op("Reshape", joined, shape=(*[0] * last, -1))
    else:
        half = _half(x)
        a, b = parts.op("Split", x, axis=last, split=half, outputs=2)
        turned = parts.op("Concat", parts.Neg(b), a, axis=last)
    return parts.Add(parts.Mul(x, c), parts.Mul(turned, s))


def _half(x: SSAValue) -> tuple[int, int]:
    size = (dims_of(x.type) or (None,))[-1]
    assert isinstance(size, int)
    return size // 2, size // 2
