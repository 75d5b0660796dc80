"""Integer arithmetic on elements: exact, or not known where it would overflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.types import element_of, element_type
from foldline.stages.symbols.expression import (
    Expr,
    exact_quotient,
    floordiv,
    maximum,
    minimum,
    mod,
)
from foldline.stages.symbols.facts import Elements, Item, Known, ValueRule, as_expr, item_of
from foldline.stages.symbols.reading import axes_of, by_class, given_numbers
from foldline.stages.symbols.values_moved import Found, Objects, elements_of, objects_of
from foldline.support.dtypes import BY_CODE, ElementType

MAX_FACTOR = 1 << 62

Binary = Callable[[Expr, Expr, Known], Expr | None]


def _add(a: Expr, b: Expr, known: Known) -> Expr | None:
    return a + b


def _sub(a: Expr, b: Expr, known: Known) -> Expr | None:
    return a - b


def _mul(a: Expr, b: Expr, known: Known) -> Expr | None:
    return a * b


def _div(a: Expr, b: Expr, known: Known) -> Expr | None:
    """ONNX divides integers towards zero, which is down for what is not negative."""
    if b.value == 0:
        return None
    if (quotient := exact_quotient(a, b)) is not None:
        return quotient
    if known.is_nonneg(a) and known.is_nonneg(b):
        return floordiv(a, b)
    if a.value is not None and b.value is not None:
        return -floordiv(-a, b) if (a.value < 0) != (b.value < 0) else floordiv(a, b)
    return None


def _minimum(a: Expr, b: Expr, known: Known) -> Expr | None:
    return minimum(a, b)


def _maximum(a: Expr, b: Expr, known: Known) -> Expr | None:
    return maximum(a, b)


def _mod(a: Expr, b: Expr, known: Known) -> Expr | None:
    return None if b.value == 0 else mod(a, b)


def _fmod(a: Expr, b: Expr, known: Known) -> Expr | None:
    """Of the sign of the first, which for two that are not negative is the same."""
    return _mod(a, b, known) if known.is_nonneg(a) and known.is_nonneg(b) else None


def _pairwise(binary: Binary) -> ValueRule:
    """An operator of any number of inputs, taken in pairs from the left."""

    def rule(op: OnnxOp, known: Known) -> Found:
        parts = [objects_of(known, operand) for operand in op.operands]
        given = [part for part in parts if part is not None]
        if len(given) < len(parts) or given[0][0].kind != "i" or not _aligns(op, given):
            return ()
        dtype = given[0][0]
        total = given[0][1]

        def combine(a: Item, b: Item) -> Item:
            return _combined(binary, a, b, known, dtype)

        for _, other in given[1:]:
            combined = broadcast_map(combine, total, other)
            if combined is None:
                return ()
            total = combined
        return (elements_of(dtype, total),)

    return rule


def _mod_rule(op: OnnxOp, known: Known) -> Found:
    return (_fmods if op.int_of("fmod") else _mods)(op, known)


_mods, _fmods = _pairwise(_mod), _pairwise(_fmod)


def _aligns(op: OnnxOp, parts: Sequence[tuple[np.dtype[Any], Objects]]) -> bool:
    """Whether shapes broadcast as NumPy's do: below opset 7 they do if they are equal."""
    if op.signature is None or "broadcast" not in op.signature.attributes:
        return True
    return len({array.shape for _, array in parts}) == 1


def broadcast_map(function: Callable[..., Item], *arrays: Objects) -> Objects | None:
    """A function of the elements at one place of arrays that are broadcast together."""
    try:
        spread = np.broadcast_arrays(*arrays)
    except ValueError:
        return None
    items = [function(*row) for row in zip(*(a.reshape(-1).tolist() for a in spread), strict=True)]
    found = np.empty(len(items), np.object_)
    found[:] = items
    return found.reshape(spread[0].shape)


def _combined(binary: Binary, a: Item, b: Item, known: Known, dtype: np.dtype[Any]) -> Item:
    if binary is _mul and 0 in (a, b):
        return 0
    left, right = as_expr(a), as_expr(b)
    if left is None or right is None:
        return None
    found = binary(left, right, known)
    return None if found is None else fitting(item_of(found), dtype)


def fitting(item: Item, dtype: np.dtype[Any]) -> Item:
    """An integer element, unless it overflows its type or grows without bound."""
    if isinstance(item, Expr):
        return item if all(abs(factor) < MAX_FACTOR for _, factor in item.terms) else None
    limits = np.iinfo(dtype)
    return item if item is None or limits.min <= item <= limits.max else None


def _unary(function: Callable[[Expr, Known], Expr | None]) -> ValueRule:
    def rule(op: OnnxOp, known: Known) -> Found:
        elements = known.elements(op.operands[0])
        if elements is None or elements.dtype.kind != "i":
            return ()
        items: list[Item] = []
        for item in elements.items:
            expr = as_expr(item)
            found = None if expr is None else function(expr, known)
            items.append(None if found is None else fitting(item_of(found), elements.dtype))
        return (Elements(elements.dtype, elements.shape, tuple(items)),)

    return rule


def _abs(expr: Expr, known: Known) -> Expr | None:
    if known.is_nonneg(expr):
        return expr
    return -expr if known.is_nonneg(-expr) else None


def _neg(expr: Expr, known: Known) -> Expr | None:
    return -expr


def _reduce(binary: Binary) -> ValueRule:
    def rule(op: OnnxOp, known: Known) -> Found:
        elements, given = known.elements(op.operands[0]), given_numbers(op, known, "axes", 1)
        shape = known.result_shape(op)
        if elements is None or given is None or shape is None or elements.dtype.kind != "i":
            return ()
        if not given.value and op.int_of("noop_with_empty_axes"):
            return (elements,)
        rank = len(elements.shape)
        axes = axes_of(given.value or range(rank), rank)
        if axes is None or 0 in elements.shape:
            return ()
        kept = [axis for axis in range(rank) if axis not in axes]
        count = int(np.prod([elements.shape[axis] for axis in axes], dtype=np.int64))
        rows = elements.objects().transpose([*kept, *axes]).reshape(-1, count).tolist()
        dtype = elements.dtype
        items = tuple(
            reduce(lambda a, b: _combined(binary, a, b, known, dtype), row) for row in rows
        )
        return (Elements(dtype, shape, items),)

    return rule


def _cast(op: OnnxOp, known: Known) -> Found:
    to = op.value_of("to")
    row = BY_CODE.get(to) if isinstance(to, int) else None
    elements = known.elements(op.operands[0])
    return () if elements is None or row is None else _cast_to(elements, row)


def _cast_like(op: OnnxOp, known: Known) -> Found:
    element, elements = element_type(op.operands[1].type), known.elements(op.operands[0])
    row = None if element is None else element_of(element)
    return () if elements is None or row is None else _cast_to(elements, row)


def _cast_to(elements: Elements, row: ElementType) -> Found:
    """Between integers and truth values; sizes are taken to fit 32 bits where they are cast."""
    dtype = row.numpy
    if elements.dtype == dtype:
        return (elements,)
    if elements.dtype.kind not in "ib" or dtype.kind not in "ib":
        return ()
    if dtype.kind == "b":
        items = tuple(None if _is_open(item) else bool(item) for item in elements.items)
    else:
        items = tuple(
            fitting(int(item) if isinstance(item, bool) else item, dtype) for item in elements.items
        )
    return (Elements(dtype, elements.shape, items),)


def _is_open(item: Item) -> bool:
    return item is None or isinstance(item, Expr)


RULES: dict[type[NodeOp], ValueRule] = by_class(
    {
        _pairwise(_add): ("Add", "Sum"),
        _pairwise(_sub): ("Sub",),
        _pairwise(_mul): ("Mul",),
        _pairwise(_div): ("Div",),
        _mod_rule: ("Mod",),
        _pairwise(_minimum): ("Min",),
        _pairwise(_maximum): ("Max",),
        _unary(_neg): ("Neg",),
        _unary(_abs): ("Abs",),
        _reduce(_add): ("ReduceSum",),
        _reduce(_mul): ("ReduceProd",),
        _reduce(_minimum): ("ReduceMin",),
        _reduce(_maximum): ("ReduceMax",),
        _cast: ("Cast",),
        _cast_like: ("CastLike",),
    }
)
