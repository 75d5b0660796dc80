"""Integers that hang on unknown sizes, in one normal form.

    floordiv(floordiv(H + 1, 2) + 1, 2)  is  floordiv(H + 3, 4)

Equal expressions are one object, so equality is identity; two that are not one may still be equal.
Symbols stand for sizes: all that is assumed of them is that they are not negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from foldline.stages.symbols.polynomial import (
    MAX_SIZE,
    MAX_TERMS,
    Atom,
    Expr,
    Monomial,
    Number,
    atomic,
    constant,
    expr_of,
    of_terms,
    sort_key,
    symbol,
)

__all__ = [
    "MAX_SIZE",
    "Atom",
    "Expr",
    "at_most",
    "broadcast",
    "constant",
    "exact_quotient",
    "floordiv",
    "maximum",
    "minimum",
    "mod",
    "simplest",
    "symbol",
    "vanishes_with",
]


def floordiv(a: Number, b: Number) -> Expr:
    """The quotient rounded down. Raises ZeroDivisionError where `b` is the number 0."""
    a, b = expr_of(a), expr_of(b)
    divisor = b.value
    if divisor == 0:
        raise ZeroDivisionError("an expression is divided by 0")
    quotient = exact_quotient(a, b)
    if quotient is not None:
        return quotient
    if divisor is None:
        return atomic("floordiv", (a, b))
    return _floordiv(a, divisor) if divisor > 0 else _floordiv(-a, -divisor)


def mod(a: Number, b: Number) -> Expr:
    """What `floordiv` leaves over; of the sign of `b`. Raises ZeroDivisionError where `b` is 0."""
    a, b = expr_of(a), expr_of(b)
    divisor = b.value
    if divisor == 0:
        raise ZeroDivisionError("an expression is taken modulo 0")
    if exact_quotient(a, b) is not None:
        return constant(0)
    if divisor is None:
        return atomic("mod", (a, b))
    rest = of_terms(tuple((m, f % divisor) for m, f in a.terms if f % divisor))
    number = rest.value
    return constant(number % divisor) if number is not None else atomic("mod", (rest, b))


def minimum(a: Number, b: Number) -> Expr:
    """The smaller of two."""
    return _extreme("min", expr_of(a), expr_of(b))


def maximum(a: Number, b: Number) -> Expr:
    """The larger of two."""
    return _extreme("max", expr_of(a), expr_of(b))


def broadcast(a: Number, b: Number) -> Expr | None:
    """The size that two sizes broadcast to; None where they never do.

    It holds where the operator that broadcasts succeeds: an unknown size beside a number other
    than 1 is that number or 1, and `min(a, 512)` beside `a` is `a` or 1.
    """
    a, b = expr_of(a), expr_of(b)
    if a is b or b.value == 1:
        return a
    if a.value == 1:
        return b
    parts: dict[Expr, None] = {}
    for side in (a, b):
        atom = side.atom
        parts.update(dict.fromkeys(atom.args if atom and atom.kind == "broadcast" else (side,)))
    numbers = [part for part in parts if part.value is not None]
    if numbers:
        return numbers[0] if len(numbers) == 1 else None
    kept = [p for p in parts if not any(_is_cut_of(p, other) for other in parts if other is not p)]
    if len(kept) == 1:
        return kept[0]
    return atomic("broadcast", tuple(sorted(kept, key=sort_key)))


def exact_quotient(a: Number, b: Number) -> Expr | None:
    """The expression that is `a` when multiplied by `b`, or None if none is found.

    Where `b` is 0 at run time it says nothing: neither division by it nor a Reshape succeeds.
    """
    a, b = expr_of(a), expr_of(b)
    if not b.terms:
        return None
    if (divisor := b.value) is not None:
        if any(factor % divisor for _, factor in a.terms):
            return None
        return of_terms(tuple((m, f // divisor) for m, f in a.terms))
    (lead, lead_factor), *_ = b.terms
    quotient, rest = constant(0), a
    for _ in range(MAX_TERMS):
        if not rest.terms:
            return quotient
        monomial, factor = rest.terms[0]
        left = _without(monomial, lead)
        if left is None or factor % lead_factor:
            return None
        part = of_terms(((left, factor // lead_factor),))
        quotient, rest = quotient + part, rest - part * b
    return None


def at_most(a: Number, b: Number) -> bool:
    """Whether `a` is certain not to exceed `b`."""
    return _at_most(expr_of(a), expr_of(b), 3)


def vanishes_with(expr: Expr, other: Expr) -> bool:
    """Whether a size is certain to be 0 where another is."""
    return bool(other.value) or _zeros(other) <= _zeros(expr)


def simplest(equal: Iterable[Expr]) -> Expr:
    """Of expressions that are known to be equal the one to go on with, oldest symbols first."""
    return min(equal, key=lambda expr: (len(expr.terms), expr.size, sort_key(expr)))


def _zeros(expr: Expr) -> frozenset[Expr]:
    """The expressions of which one is 0 if, and only if, a size is 0."""
    if len(expr.terms) != 1:
        return frozenset((expr,))
    found: set[Expr] = set()
    for atom in expr.terms[0][0]:
        if atom.kind in ("broadcast", "product"):
            found.update(*map(_zeros, atom.args))
        else:
            found.add(of_terms((((atom,), 1),)))
    return frozenset(found)


def _floordiv(a: Expr, divisor: int) -> Expr:
    """By a positive number: multiples come out, common factors and nested quotients go."""
    whole = of_terms(tuple((m, f // divisor) for m, f in a.terms if not f % divisor))
    rest = of_terms(tuple((m, f) for m, f in a.terms if f % divisor))
    number = rest.terms[-1][1] if rest.terms and not rest.terms[-1][0] else 0
    if number // divisor:
        whole, rest = whole + number // divisor, rest - number // divisor * divisor
    quotient = rest - rest.terms[-1][1] if number % divisor else rest
    atom = quotient.atom
    if atom is not None and atom.kind == "floordiv" and atom.args[1].value is not None:
        inner = atom.args[1].value
        return whole + _floordiv(atom.args[0] + inner * (number % divisor), inner * divisor)
    if rest.value is not None:
        return whole + rest.value // divisor
    # floor((g x + k) / (g d)) is floor((x + floor(k / g)) / d).
    common = math.gcd(divisor, *(factor for monomial, factor in rest.terms if monomial))
    if common > 1:
        reduced = tuple((m, f // common) for m, f in rest.terms if f // common)
        return whole + _floordiv(of_terms(reduced), divisor // common)
    return whole + atomic("floordiv", (rest, constant(divisor)))


def _extreme(kind: str, a: Expr, b: Expr) -> Expr:
    parts: dict[Expr, None] = {}
    for side in (a, b):
        atom = side.atom
        parts.update(dict.fromkeys(atom.args if atom and atom.kind == kind else (side,)))
    kept: list[Expr] = []
    for part in parts:
        if not any(_decides(kind, other, part) for other in kept):
            kept = [other for other in kept if not _decides(kind, part, other)]
            kept.append(part)
    return kept[0] if len(kept) == 1 else atomic(kind, tuple(sorted(kept, key=sort_key)))


def _decides(kind: str, winner: Expr, loser: Expr) -> bool:
    return at_most(winner, loser) if kind == "min" else at_most(loser, winner)


def _at_most(a: Expr, b: Expr, depth: int) -> bool:
    if (b - a).is_nonneg:
        return True
    if not depth:
        return False
    below, above = a.atom, b.atom
    if below is not None:
        match below.kind:
            case "min" if any(_at_most(arg, b, depth - 1) for arg in below.args):
                return True
            case "max" if all(_at_most(arg, b, depth - 1) for arg in below.args):
                return True
            case "floordiv" if below.args[0].is_nonneg and (below.args[1].value or 0) > 0:
                return _at_most(below.args[0], b, depth - 1)
            case _:
                pass
    if above is not None:
        match above.kind:
            case "max":
                return any(_at_most(a, arg, depth - 1) for arg in above.args)
            case "min":
                return all(_at_most(a, arg, depth - 1) for arg in above.args)
            case _:
                pass
    return False


def _is_cut_of(part: Expr, other: Expr) -> bool:
    """Whether a size is `min(other, n)` with numbers n > 0: beside `other` it changes nothing."""
    atom = part.atom
    if atom is None or atom.kind != "min" or other not in atom.args:
        return False
    return all(arg is other or (arg.value or 0) > 0 for arg in atom.args)


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    left = list(monomial)
    for atom in factors:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
