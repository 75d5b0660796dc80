"""What is known of values in full: constants, and potential constants with who found them.

A fully known result of an operation that is no constant is a potential constant. An operation is
*marked* when all its results are: folding it is decided, and put off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from xdsl.ir import Attribute, Block, Operation, SSAValue

from foldline.dialects.fold.known import KNOWN, FullyKnown, KnownAttr, get_fact
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.tensor import Array, TensorAttr
from foldline.dialects.onnx.types import AbsentType, dims_of, element_of, element_type


class Known(NamedTuple):
    """The value of a value."""

    tensor: TensorAttr
    is_potential: bool
    """It is noted as a fact, and the operation that computes it still stands."""


def known_tensor(value: SSAValue) -> Known | None:
    """The tensor of a constant or a potential constant; None where it is not known in full."""
    owner = value.owner
    if not isinstance(owner, Block):
        if (tensor := constant_tensor(value)) is not None:
            return Known(tensor, is_potential=False)
        if KNOWN not in owner.attributes:
            return None
    fact = get_fact(value)
    return Known(fact.value, is_potential=True) if isinstance(fact, FullyKnown) else None


@dataclass(frozen=True)
class Mark:
    """What a marked operation gives."""

    tensors: tuple[TensorAttr | None, ...]
    """One a result; None for an absent one."""
    source: str
    """The pass that found it."""


def mark_of(op: Operation) -> Mark | None:
    """The mark of an operation; None unless every result that it has is known in full."""
    facts = op.attributes.get(KNOWN)
    if not isinstance(facts, KnownAttr):
        return None
    sources = [fact.source for fact in facts.data if isinstance(fact, FullyKnown)]
    if not sources:
        return None
    known = [fact.value if isinstance(fact, FullyKnown) else None for fact in facts.data]
    known += [None] * (len(op.results) - len(known))
    for tensor, result in zip(known, op.results, strict=False):
        if tensor is None and not isinstance(result.type, AbsentType):
            return None
    return Mark(tuple(known), sources[0])


def is_of_type(array: Array, attribute: Attribute) -> bool:
    """Whether an array can be the value of a value of this type, as far as the type says."""
    element, dims = element_type(attribute), dims_of(attribute)
    row = None if element is None else element_of(element)
    if row is not None and row.numpy != array.dtype:
        return False
    return dims is None or (
        len(dims) == array.ndim
        and all(
            not isinstance(dim, int) or dim < 0 or dim == size
            for dim, size in zip(dims, array.shape, strict=True)
        )
    )
