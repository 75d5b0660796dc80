"""Sizes of the results of the fused attention operators."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.stages.symbols.expression import constant
from foldline.stages.symbols.facts import Dims, Known, ShapeRule
from foldline.stages.symbols.reading import by_class, operand_dims
from foldline.stages.symbols.shapes_elementwise import broadcast_dims


def _attention(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """The axes of queries, with the size of values, in the order of the result."""
    names = ("query_perm", "key_perm", "value_perm")
    q, k, v = (_ordered(op, operand_dims(op, known, i), name) for i, name in enumerate(names))
    mask = op.operand(3)
    hidden = () if mask is None else known.dims(mask)
    if q is None or k is None or v is None or hidden is None:
        return ()
    groups = constant(op.int_of("groups") or 1)
    shared = [(*d[:-3], *(size * groups for size in d[-3:-2])) for d in (k, v)]
    lead = broadcast_dims(op, known, [q[:-2], *shared, hidden[:-2]])
    return () if lead is None else (_ordered(op, (*lead, q[-2], v[-1]), "output_perm"),)


def _ordered(op: OnnxOp, dims: Dims, name: str) -> Dims:
    perm = op.ints_of(name)
    return dims if dims is None or perm is None else tuple(dims[axis] for axis in perm)


def _rotary(op: OnnxOp, known: Known) -> Sequence[Dims]:
    return (broadcast_dims(op, known, [known.dims(operand) for operand in op.operands]),)


RULES: dict[type[NodeOp], ShapeRule] = by_class(
    {_attention: ("Attention",), _rotary: ("RotaryEmbedding",)}, "foldline"
)
