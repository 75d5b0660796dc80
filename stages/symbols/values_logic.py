"""Comparisons, logic and choice on elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.stages.symbols.expression import Expr
from foldline.stages.symbols.facts import Elements, Item, Known, ValueRule, as_expr
from foldline.stages.symbols.reading import by_class
from foldline.stages.symbols.values_arithmetic import broadcast_map
from foldline.stages.symbols.values_moved import Found, elements_of, objects_of

BOOL = np.dtype(np.bool_)

Comparison = Callable[[Expr, Expr, Known], bool | None]


def _is_less(a: Expr, b: Expr, known: Known) -> bool | None:
    if known.is_nonneg(b - a - 1):
        return True
    return False if known.is_nonneg(a - b) else None


def _is_greater(a: Expr, b: Expr, known: Known) -> bool | None:
    return _is_less(b, a, known)


def _is_at_most(a: Expr, b: Expr, known: Known) -> bool | None:
    greater = _is_less(b, a, known)
    return None if greater is None else not greater


def _is_at_least(a: Expr, b: Expr, known: Known) -> bool | None:
    less = _is_less(a, b, known)
    return None if less is None else not less


def _is_equal(a: Expr, b: Expr, known: Known) -> bool | None:
    if a is b:
        return True
    if known.is_nonneg(a - b - 1) or known.is_nonneg(b - a - 1):
        return False
    return None


def _compared(comparison: Comparison) -> ValueRule:
    def item(a: Item, b: Item, known: Known) -> Item:
        left, right = as_expr(a), as_expr(b)
        return None if left is None or right is None else comparison(left, right, known)

    return _mapped(item, "ib")


def _mapped(function: Callable[[Item, Item, Known], Item], kinds: str) -> ValueRule:
    """A truth value for each pair of elements."""

    def rule(op: OnnxOp, known: Known) -> Found:
        a, b = objects_of(known, op.operands[0]), objects_of(known, op.operands[1])
        if a is None or b is None or a[0].kind not in kinds or b[0].kind not in kinds:
            return ()
        if "broadcast" in op.properties:
            return ()

        def of_pair(x: Item, y: Item) -> Item:
            return function(x, y, known)

        found = broadcast_map(of_pair, a[1], b[1])
        return () if found is None else (elements_of(BOOL, found),)

    return rule


def _and(a: Item, b: Item, known: Known) -> Item:
    if a is False or b is False:
        return False
    return True if a is True and b is True else None


def _or(a: Item, b: Item, known: Known) -> Item:
    if a is True or b is True:
        return True
    return False if a is False and b is False else None


def _xor(a: Item, b: Item, known: Known) -> Item:
    return a is not b if isinstance(a, bool) and isinstance(b, bool) else None


def _not(op: OnnxOp, known: Known) -> Found:
    elements = known.elements(op.operands[0])
    if elements is None or elements.dtype != BOOL:
        return ()
    items = tuple(None if item is None else not item for item in elements.items)
    return (Elements(BOOL, elements.shape, items),)


def _where(op: OnnxOp, known: Known) -> Found:
    """What the condition chooses; where it is not known, what both say."""
    parts = [objects_of(known, operand) for operand in op.operands]
    given = [part for part in parts if part is not None]
    if len(given) < 3:
        return ()
    condition, yes, no = given
    found = broadcast_map(_chosen, condition[1], yes[1], no[1])
    return () if found is None else (elements_of(yes[0], found),)


def _chosen(condition: Item, yes: Item, no: Item) -> Item:
    if isinstance(condition, bool):
        return yes if condition else no
    same = yes is no or (isinstance(yes, int) and isinstance(no, int) and yes == no)
    return yes if same else None


RULES: dict[type[NodeOp], ValueRule] = by_class(
    {
        _compared(_is_equal): ("Equal",),
        _compared(_is_less): ("Less",),
        _compared(_is_greater): ("Greater",),
        _compared(_is_at_most): ("LessOrEqual",),
        _compared(_is_at_least): ("GreaterOrEqual",),
        _mapped(_and, "b"): ("And",),
        _mapped(_or, "b"): ("Or",),
        _mapped(_xor, "b"): ("Xor",),
        _not: ("Not",),
        _where: ("Where",),
    }
)
