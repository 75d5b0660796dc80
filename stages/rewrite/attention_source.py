"""Where an operand of attention comes from: through transposes, scales and shared heads.

MatMul(q, Transpose(0, 2, 3, 1)(Mul(k, 0.35)))      k, stored (0, 2, 1, 3), scaled by 0.35
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.ir import Operation, SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.math import DivOp, MulOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ExpandOp, ReshapeOp, TransposeOp, UnsqueezeOp
from foldline.dialects.onnx.traits import ReadsShapeOnly
from foldline.stages.symbols.expression import Expr, constant
from foldline.stages.symbols.knowledge import Knowledge
from foldline.stages.symbols.reading import given_items


@dataclass(frozen=True)
class Source:
    """A value of which an operand is made by moving and scaling alone."""

    value: SSAValue
    perm: tuple[int, ...]
    """Brings `value` to the axes of the operand."""
    scale: float = 1.0
    groups: int = 1
    """So many neighbouring heads, of axis 1, are copies of one of `value`."""
    kv_heads: int = 0
    target: tuple[int, ...] | None = None
    """What `value` is reshaped to first; 0 copies a size."""


def source_of(
    value: SSAValue,
    rank: int,
    knowledge: Knowledge,
    *,
    scales: bool = True,
    trusting: Knowledge | None = None,
) -> Source:
    """The furthest source; what others read as well is one, so that nothing is computed twice.

    `trusting`: what is known if equal names mean equal sizes; without it heads are not shared.
    """
    found = Source(value, tuple(range(rank)))
    while found.target is None and (op := sole_producer(found.value, value)) is not None:
        step = _step(op, found, knowledge, scales, trusting)
        if step is None:
            break
        found = step
    return found


def sole_producer(value: SSAValue, beside: SSAValue) -> NodeOp | None:
    """What makes a value that is read once, in the block where another value is made.

    Who reads only the shape of what is transposed does not count: to transpose is to look at the
    same elements in another order, and costs nothing until they are read.
    """
    owner, other = value.owner, beside.owner
    if not isinstance(owner, NodeOp) or not isinstance(other, Operation):
        return None
    readers = [use.operation for use in value.uses]
    if isinstance(owner, TransposeOp):
        readers = [reader for reader in readers if not reader.has_trait(ReadsShapeOnly)]
    return owner if len(readers) == 1 and owner.parent is other.parent else None


def _step(
    op: NodeOp, found: Source, knowledge: Knowledge, scales: bool, trusting: Knowledge | None
) -> Source | None:
    match op:
        case MulOp() | DivOp() if scales:
            scaled = scaled_operand(op, len(found.perm))
            if scaled is None:
                return None
            return replace(found, value=scaled[0], scale=found.scale * scaled[1])
        case TransposeOp():
            perm = op.permutation()
            return None if perm is None else _moved(found, op.data, perm)
        case ReshapeOp():
            inner = _transposed_flat(op, knowledge)
            if inner is not None:
                return _moved(found, inner, (0, 1, 3, 2))
            if found.groups == 1 and (heads := _heads_apart(op, knowledge)) is not None:
                moved = _moved(found, heads[0], (1, 2, 0, 3))
                return None if moved is None else replace(moved, target=heads[1])
            return None if trusting is None else _shared(op, found, trusting)
        case _:
            return None


def scaled_operand(op: MulOp | DivOp, rank: int) -> tuple[SSAValue, float] | None:
    """What is multiplied by a constant of one element and at most `rank` axes, and the number."""
    places = ((0, 1), (1, 0)) if isinstance(op, MulOp) else ((0, 1),)
    for data, factor in places:
        tensor = constant_tensor(op.operands[factor])
        if tensor is None or tensor.array.size != 1 or tensor.array.ndim > rank:
            continue
        number = np.float64(tensor.array.reshape(()))
        with np.errstate(divide="ignore"):
            return op.operands[data], float(number if isinstance(op, MulOp) else 1 / number)
    return None


def _moved(found: Source, value: SSAValue, perm: Sequence[int]) -> Source | None:
    """Through a transpose, if the axis stored last is one of the matrices' then as well."""
    if len(perm) != len(found.perm):
        return None
    combined = tuple(perm[axis] for axis in found.perm)
    if len(perm) - 1 not in combined[-2:]:
        return None
    return replace(found, value=value, perm=combined)


def _transposed_flat(op: ReshapeOp, knowledge: Knowledge) -> SSAValue | None:
    """`x` where `op` is x with its last axes swapped, batch and heads being one axis meanwhile."""
    swap = sole_producer(op.data, op.results[0])
    if not isinstance(swap, TransposeOp) or swap.permutation() != (0, 2, 1):
        return None
    flat = sole_producer(swap.data, op.results[0])
    whole = None if not isinstance(flat, ReshapeOp) else knowledge.dims(flat.data)
    if not isinstance(flat, ReshapeOp) or whole is None or len(whole) != 4:
        return None
    batch, heads, rows, size = whole
    is_swap = has_shape(flat, (None, rows, size), knowledge)
    is_swap = is_swap and has_shape(op, (batch, heads, size, rows), knowledge)
    return flat.data if is_swap else None


def _heads_apart(op: ReshapeOp, knowledge: Knowledge) -> tuple[SSAValue, tuple[int, ...]] | None:
    """`x` (length, batch, hidden) where `op` is (batch, heads, length, size), and a shape for x.

    Batch and heads are one axis meanwhile, of which length takes the place.
    """
    swap = sole_producer(op.data, op.results[0])
    if not isinstance(swap, TransposeOp) or swap.permutation() != (1, 0, 2):
        return None
    flat = sole_producer(swap.data, op.results[0])
    x = None if not isinstance(flat, ReshapeOp) else knowledge.dims(flat.data)
    size = (knowledge.dims(op.results[0]) or (None,))[-1]
    if not isinstance(flat, ReshapeOp) or x is None or len(x) != 3 or size is None:
        return None
    length, batch, hidden = x
    if not size.value or hidden.value is None or hidden.value % size.value:
        return None
    heads = hidden.value // size.value
    is_apart = has_shape(flat, (length, batch * heads, size), knowledge)
    is_apart = is_apart and has_shape(op, (batch, constant(heads), length, size), knowledge)
    return (flat.data, (0, 0, heads, size.value)) if is_apart else None


def has_shape(op: ReshapeOp, wanted: Sequence[Expr | None], knowledge: Knowledge) -> bool:
    """Whether a reshape that succeeds gives these sizes; None is what follows from the others.

    A size that may be 0 asks for a copy of the input's, and so it is not the size of the result
    for certain. Here that would be an empty tensor, which no later reshape could tell apart.
    """
    dims, asked = knowledge.dims(op.results[0]), given_items(op, knowledge, "shape", 1)
    items = (asked and asked.value) or (None,) * len(wanted)
    items = tuple(constant(item) if isinstance(item, int) else item for item in items)
    sizes = items if dims is None else dims
    if len(items) != len(wanted) or len(sizes) != len(wanted):
        return False
    unlike = [
        item
        for want, item, size in zip(wanted, items, sizes, strict=True)
        if want is not None and want not in (size, item)
    ]
    return not unlike or (unlike == [constant(-1)] and None not in wanted)


def _shared(op: ReshapeOp, found: Source, knowledge: Knowledge) -> Source | None:
    """`x` where `op` repeats each of its heads: Reshape(Expand(Unsqueeze(x))).

    Sizes that bear the same name are taken for equal. Where they are not, either Expand repeats
    single rows, and attention to them is the same, or the lengths of keys and values do not fit.
    """
    expand = sole_producer(op.data, op.results[0])
    if not isinstance(expand, ExpandOp) or found.groups > 1 or found.perm[1] != 1:
        return None
    insert = sole_producer(expand.input, op.results[0])
    if not isinstance(insert, UnsqueezeOp):
        return None
    x, inserted, expanded = (
        knowledge.dims(value) for value in (insert.data, expand.input, expand.results[0])
    )
    if x is None or expanded is None or len(x) != 4 or len(expanded) != 5:
        return None
    batch, heads, rows, size = x
    groups = expanded[2]
    if groups.value is None or heads.value is None or size.value is None:
        return None
    is_shared = inserted == (batch, heads, constant(1), rows, size)
    is_shared = is_shared and expanded == (batch, heads, groups, rows, size)
    is_shared = is_shared and has_shape(op, (batch, heads * groups, rows, size), knowledge)
    if not is_shared:
        return None
    return replace(found, value=insert.data, groups=groups.value, kv_heads=heads.value)


@dataclass(frozen=True)
class Lined:
    """Heads that share keys, lined up behind one another as if they were one longer head."""

    groups: int
    kv_heads: int

    @property
    def heads(self) -> int:
        """All heads, of queries."""
        return self.groups * self.kv_heads

    @property
    def together(self) -> tuple[int, ...]:
        """The shape that lines them up."""
        return (0, self.kv_heads, -1, 0)

    @property
    def apart(self) -> tuple[int, ...]:
        """The shape of before."""
        return (0, self.heads, -1, 0)

    def shared(self, source: Source) -> Source:
        """A source of keys or values, each head of which is for several of queries."""
        return replace(source, groups=self.groups, kv_heads=self.kv_heads)


def lined_up(together: NodeOp, apart: NodeOp) -> Lined | None:
    """The heads that two reshapes line up and take apart again, as files have shared heads."""
    kv_heads, heads = (_heads_of(op) for op in (together, apart))
    if kv_heads is None or heads is None or heads <= kv_heads or heads % kv_heads:
        return None
    return Lined(heads // kv_heads, kv_heads)


def reshaped(value: SSAValue, shape: Sequence[int], beside: SSAValue) -> SSAValue | None:
    """What is reshaped to `shape`, by a node beside the one of `beside` that is read once."""
    op = sole_producer(value, beside)
    return op.data if isinstance(op, ReshapeOp) and _target(op) == tuple(shape) else None


def counts_heads(op: NodeOp) -> bool:
    """Whether a reshape says how many heads there are, axis 1, and leaves their length open."""
    return _heads_of(op) is not None


def _heads_of(op: NodeOp) -> int | None:
    target = _target(op)
    if target is None or len(target) != 4 or (target[0], *target[2:]) != (0, -1, 0):
        return None
    return target[1] if target[1] > 0 else None


def _target(op: NodeOp) -> tuple[int, ...] | None:
    """The constant shape of a Reshape in which 0 copies a size."""
    if not isinstance(op, ReshapeOp) or op.int_of("allowzero"):
        return None
    tensor = constant_tensor(op.operands[1]) if len(op.operands) > 1 else None
    return None if tensor is None else tuple(map(int, tensor.array.reshape(-1)))
