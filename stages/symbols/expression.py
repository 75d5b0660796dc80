"""Integers that hang on unknown sizes: polynomials over atoms, in one normal form.

    floordiv(floordiv(H + 1, 2) + 1, 2)  is  floordiv(H + 3, 4)

An atom is a symbol, or a quotient, remainder, minimum, maximum or broadcast of polynomials. Equal
expressions are one object, so equality is identity; two that are not one may still be equal.
Symbols stand for sizes: all that is assumed of them is that they are not negative.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from itertools import count
from typing import TypeAlias
from weakref import WeakValueDictionary

MAX_TERMS = 48
"""A product of more terms is an atom: polynomials of hostile models must not explode."""
MAX_DEGREE = 12
MAX_SIZE = 200
"""Expressions of more atoms are unwieldy: whoever keeps expressions starts anew there."""

COMMUTATIVE = ("min", "max", "broadcast", "product")
"""Kinds of atoms whose parts have no order."""

Monomial: TypeAlias = "tuple[Atom, ...]"
Terms: TypeAlias = "tuple[tuple[Monomial, int], ...]"
Number: TypeAlias = "Expr | int"

_LOCK = threading.Lock()
_EXPRS: WeakValueDictionary[Terms, Expr] = WeakValueDictionary()
_ATOMS: WeakValueDictionary[tuple[object, ...], Atom] = WeakValueDictionary()
_ORDER = count()


class Atom:
    """What a polynomial is made of."""

    __slots__ = ("__weakref__", "args", "is_nonneg", "kind", "name", "order", "size")

    def __init__(self, kind: str, name: str, args: tuple[Expr, ...]):
        self.kind = kind
        self.name = name
        self.args = args
        self.order = next(_ORDER)
        self.size = 1 + sum(arg.size for arg in args)
        self.is_nonneg = _atom_is_nonneg(kind, args)

    def __str__(self) -> str:
        if self.kind == "symbol":
            return self.name
        args = map(str, self.args)
        return f"{self.kind}({', '.join(sorted(args) if self.kind in COMMUTATIVE else args)})"


class Expr:
    """An integer expression, immutable; made by the functions of this module and by operators."""

    __slots__ = ("__weakref__", "atom", "is_nonneg", "size", "terms", "value")

    def __init__(self, terms: Terms):
        self.terms = terms
        """Monomials with their factors, none zero; the leading one first."""
        self.size = sum(atom.size for monomial, _ in terms for atom in monomial)
        """How many atoms it is made of, those inside of atoms included."""
        self.is_nonneg = all(
            factor > 0 and all(atom.is_nonneg for atom in monomial) for monomial, factor in terms
        )
        """Whether it is certain not to be negative; False: not certain."""
        self.value = _number(terms)
        """The number, if it is one."""
        self.atom = _only_atom(terms)
        """The atom, if the expression is nothing but one."""

    @property
    def is_unwieldy(self) -> bool:
        """Whether it is too large to go on with."""
        return self.size > MAX_SIZE

    def __add__(self, other: Number) -> Expr:
        return _sum((self, 1), (_expr(other), 1))

    def __sub__(self, other: Number) -> Expr:
        return _sum((self, 1), (_expr(other), -1))

    def __neg__(self) -> Expr:
        return _sum((self, -1))

    def __mul__(self, other: Number) -> Expr:
        return _product(self, _expr(other))

    def __radd__(self, other: int) -> Expr:
        return self + other

    def __rsub__(self, other: int) -> Expr:
        return constant(other) - self

    def __rmul__(self, other: int) -> Expr:
        return self * other

    def __str__(self) -> str:
        texts = sorted((-len(m), _term_text(m, f)) for m, f in self.terms)
        return " + ".join(text for _, text in texts).replace("+ -", "- ") or "0"

    def __repr__(self) -> str:
        return f"Expr({self})"


def constant(number: int) -> Expr:
    """A number."""
    return _interned((((), number),) if number else ())


def symbol(name: str) -> Expr:
    """The unknown size of that name."""
    return _atomic("symbol", (), name)


def floordiv(a: Number, b: Number) -> Expr:
    """The quotient rounded down. Raises ZeroDivisionError where `b` is the number 0."""
    a, b = _expr(a), _expr(b)
    divisor = b.value
    if divisor == 0:
        raise ZeroDivisionError("an expression is divided by 0")
    quotient = exact_quotient(a, b)
    if quotient is not None:
        return quotient
    if divisor is None:
        return _atomic("floordiv", (a, b))
    return _floordiv(a, divisor) if divisor > 0 else _floordiv(-a, -divisor)


def mod(a: Number, b: Number) -> Expr:
    """What `floordiv` leaves over; of the sign of `b`. Raises ZeroDivisionError where `b` is 0."""
    a, b = _expr(a), _expr(b)
    divisor = b.value
    if divisor == 0:
        raise ZeroDivisionError("an expression is taken modulo 0")
    if exact_quotient(a, b) is not None:
        return constant(0)
    if divisor is None:
        return _atomic("mod", (a, b))
    rest = _interned(tuple((m, f % divisor) for m, f in a.terms if f % divisor))
    number = rest.value
    return constant(number % divisor) if number is not None else _atomic("mod", (rest, b))


def minimum(a: Number, b: Number) -> Expr:
    """The smaller of two."""
    return _extreme("min", _expr(a), _expr(b))


def maximum(a: Number, b: Number) -> Expr:
    """The larger of two."""
    return _extreme("max", _expr(a), _expr(b))


def broadcast(a: Number, b: Number) -> Expr | None:
    """The size that two sizes broadcast to; None where they never do.

    It holds where the operator that broadcasts succeeds: an unknown size beside a number other
    than 1 is that number or 1, and `min(a, 512)` beside `a` is `a` or 1.
    """
    a, b = _expr(a), _expr(b)
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
    return _atomic("broadcast", tuple(sorted(kept, key=_sort_key)))


def exact_quotient(a: Number, b: Number) -> Expr | None:
    """The expression that is `a` when multiplied by `b`, or None if none is found.

    Where `b` is 0 at run time it says nothing: neither division by it nor a Reshape succeeds.
    """
    a, b = _expr(a), _expr(b)
    if not b.terms:
        return None
    if (divisor := b.value) is not None:
        if any(factor % divisor for _, factor in a.terms):
            return None
        return _interned(tuple((m, f // divisor) for m, f in a.terms))
    (lead, lead_factor), *_ = b.terms
    quotient, rest = constant(0), a
    for _ in range(MAX_TERMS):
        if not rest.terms:
            return quotient
        monomial, factor = rest.terms[0]
        left = _without(monomial, lead)
        if left is None or factor % lead_factor:
            return None
        part = _interned(((left, factor // lead_factor),))
        quotient, rest = quotient + part, rest - part * b
    return None


def at_most(a: Number, b: Number) -> bool:
    """Whether `a` is certain not to exceed `b`."""
    return _at_most(_expr(a), _expr(b), 3)


def vanishes_with(expr: Expr, other: Expr) -> bool:
    """Whether a size is certain to be 0 where another is."""
    return bool(other.value) or _zeros(other) <= _zeros(expr)


def simplest(equal: Iterable[Expr]) -> Expr:
    """Of expressions that are known to be equal the one to go on with, oldest symbols first."""
    return min(equal, key=lambda expr: (len(expr.terms), expr.size, _sort_key(expr)))


def _zeros(expr: Expr) -> frozenset[Expr]:
    """The expressions of which one is 0 if, and only if, a size is 0."""
    if len(expr.terms) != 1:
        return frozenset((expr,))
    found: set[Expr] = set()
    for atom in expr.terms[0][0]:
        if atom.kind in ("broadcast", "product"):
            found.update(*map(_zeros, atom.args))
        else:
            found.add(_interned((((atom,), 1),)))
    return frozenset(found)


def _number(terms: Terms) -> int | None:
    if not terms:
        return 0
    return terms[0][1] if not terms[0][0] else None


def _only_atom(terms: Terms) -> Atom | None:
    if len(terms) == 1:
        monomial, factor = terms[0]
        if factor == 1 and len(monomial) == 1:
            return monomial[0]
    return None


def _expr(number: Number) -> Expr:
    return number if isinstance(number, Expr) else constant(number)


def _interned(terms: Terms) -> Expr:
    with _LOCK:
        found = _EXPRS.get(terms)
        if found is None:
            found = _EXPRS[terms] = Expr(terms)
        return found


def _atomic(kind: str, args: tuple[Expr, ...], name: str = "") -> Expr:
    with _LOCK:
        found = _ATOMS.get((kind, name, args))
        if found is None:
            found = _ATOMS[kind, name, args] = Atom(kind, name, args)
    return _interned((((found,), 1),))


def _atom_is_nonneg(kind: str, args: tuple[Expr, ...]) -> bool:
    match kind:
        case "symbol" | "broadcast":
            return True
        case "mod":
            return args[1].is_nonneg
        case "max":
            return any(arg.is_nonneg for arg in args)
        case _:
            return all(arg.is_nonneg for arg in args)


def _sum(*parts: tuple[Expr, int]) -> Expr:
    found: dict[Monomial, int] = {}
    for expr, scale in parts:
        for monomial, factor in expr.terms:
            found[monomial] = found.get(monomial, 0) + scale * factor
    return _of(found)


def _product(a: Expr, b: Expr) -> Expr:
    if len(a.terms) * len(b.terms) > MAX_TERMS or _degree(a) + _degree(b) > MAX_DEGREE:
        if a.value is None and b.value is None:
            return _atomic("product", tuple(sorted((a, b), key=_sort_key)))
    found: dict[Monomial, int] = {}
    for left, x in a.terms:
        for right, y in b.terms:
            monomial = tuple(sorted(left + right, key=_order))
            found[monomial] = found.get(monomial, 0) + x * y
    return _of(found)


def _of(found: dict[Monomial, int]) -> Expr:
    terms = [(monomial, factor) for monomial, factor in found.items() if factor]
    terms.sort(key=lambda term: _monomial_key(term[0]))
    return _interned(tuple(terms))


def _floordiv(a: Expr, divisor: int) -> Expr:
    """By a positive number: multiples come out, common factors and nested quotients go."""
    whole = _interned(tuple((m, f // divisor) for m, f in a.terms if not f % divisor))
    rest = _interned(tuple((m, f) for m, f in a.terms if f % divisor))
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
        return whole + _floordiv(_interned(reduced), divisor // common)
    return whole + _atomic("floordiv", (rest, constant(divisor)))


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
    return kept[0] if len(kept) == 1 else _atomic(kind, tuple(sorted(kept, key=_sort_key)))


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


def _degree(expr: Expr) -> int:
    return len(expr.terms[0][0]) if expr.terms else 0


def _order(atom: Atom) -> int:
    return atom.order


def _monomial_key(monomial: Monomial) -> tuple[int, ...]:
    return (-len(monomial), *map(_order, monomial))


def _sort_key(expr: Expr) -> tuple[tuple[int, ...], ...]:
    return tuple((*_monomial_key(m), f) for m, f in expr.terms)


def _term_text(monomial: Iterable[Atom], factor: int) -> str:
    texts = sorted(map(str, monomial))
    if factor != 1 or not texts:
        texts.insert(0, str(factor))
    text = "*".join(texts)
    return f"-{text.removeprefix('-1*')}" if text.startswith("-1*") else text
