"""Types as what is known of a value: joined where paths meet, refined where sources agree."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from foldline.dialects.onnx.types import (
    UNKNOWN,
    AbsentType,
    Dim,
    MapType,
    OptionalType,
    SequenceType,
    UnknownType,
    dims_of,
    element_type,
    tensor_type,
)

Dims = tuple[Dim, ...] | None


def join(a: Attribute, b: Attribute) -> Attribute:
    """The most that holds for a value that is of type `a` or of type `b`."""
    if a is b or a == b:
        return a
    match a, b:
        case SequenceType(), SequenceType():
            return SequenceType(join(a.element, b.element))
        case OptionalType(), OptionalType():
            return OptionalType(join(a.element, b.element))
        case MapType(), MapType() if a.key == b.key:
            return MapType(a.key, join(a.value, b.value))
        case _:
            element = element_type(a)
            if element is None or element != element_type(b):
                return UNKNOWN
            return tensor_type(element, _joined_dims(dims_of(a), dims_of(b)))


def _joined_dims(a: Dims, b: Dims) -> Dims:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def opened(attribute: Attribute) -> Attribute:
    """The type without what it says of shapes: what a declaration nobody confirms is worth."""
    match attribute:
        case SequenceType():
            return SequenceType(opened(attribute.element))
        case OptionalType():
            return OptionalType(opened(attribute.element))
        case _:
            element = element_type(attribute)
            return attribute if element is None else tensor_type(element, None)


@dataclass(frozen=True)
class Refined:
    """What a value's old and its inferred type say together."""

    type: Attribute
    contradiction: bool = False
    """The two cannot both be true."""


def refine(old: Attribute, inferred: Attribute, trusted: bool) -> Refined:
    """What is known of a value: what inference says, and what of `old` may be kept.

    Where the two contradict each other, inference wins. Where inference is silent, a `trusted`
    old type (one that inference gave) is kept; of a declared one only the element type and names
    of dimensions are, since real models declare sizes and ranks that are wrong.
    """
    if old is inferred or old == inferred:
        return Refined(inferred)
    if isinstance(old, UnknownType | AbsentType):
        return Refined(inferred)
    if isinstance(inferred, UnknownType):
        return Refined(old if trusted else opened(old))
    match old, inferred:
        case (SequenceType(), SequenceType()) | (OptionalType(), OptionalType()):
            inner = refine(old.element, inferred.element, trusted)
            return Refined(type(inferred)(inner.type), inner.contradiction)
        case _:
            element = element_type(inferred)
            if element is None or element != element_type(old):
                return Refined(inferred, contradiction=True)
            dims, contradiction = _refined_dims(dims_of(old), dims_of(inferred), trusted)
            return Refined(tensor_type(element, dims), contradiction)


def _refined_dims(old: Dims, inferred: Dims, trusted: bool) -> tuple[Dims, bool]:
    if old is None:
        return inferred, False
    if inferred is None:
        return (old if trusted else None), False
    if len(old) != len(inferred):
        return inferred, True
    dims = tuple(_refined_dim(o, i, trusted) for o, i in zip(old, inferred, strict=True))
    contradiction = any(
        _is_size(o) and _is_size(i) and o != i for o, i in zip(old, inferred, strict=True)
    )
    return dims, contradiction


def _refined_dim(old: Dim, inferred: Dim, trusted: bool) -> Dim:
    if _is_size(inferred):
        return inferred
    if _is_size(old):
        return old if trusted else inferred
    return old if inferred is None else inferred


def _is_size(dim: Dim) -> bool:
    return isinstance(dim, int) and dim >= 0
