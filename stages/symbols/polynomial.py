"""Polynomials over atoms: the form of integer expressions, each kept once.

An atom is a symbol, or what `expression` makes of polynomials: a quotient, a minimum, …
"""

from __future__ import annotations

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
        return _sum((self, 1), (expr_of(other), 1))

    def __sub__(self, other: Number) -> Expr:
        return _sum((self, 1), (expr_of(other), -1))

    def __neg__(self) -> Expr:
        return _sum((self, -1))

    def __mul__(self, other: Number) -> Expr:
        return _product(self, expr_of(other))

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
    return of_terms((((), number),) if number else ())


def symbol(name: str) -> Expr:
    """The unknown size of that name."""
    return atomic("symbol", (), name)


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


def expr_of(number: Number) -> Expr:
    """A number as an expression."""
    return number if isinstance(number, Expr) else constant(number)


def of_terms(terms: Terms) -> Expr:
    """The expression of these terms, which are in order."""
    with _LOCK:
        found = _EXPRS.get(terms)
        if found is None:
            found = _EXPRS[terms] = Expr(terms)
        return found


def atomic(kind: str, args: tuple[Expr, ...], name: str = "") -> Expr:
    """The expression that is one atom."""
    with _LOCK:
        found = _ATOMS.get((kind, name, args))
        if found is None:
            found = _ATOMS[kind, name, args] = Atom(kind, name, args)
    return of_terms((((found,), 1),))


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
            return atomic("product", tuple(sorted((a, b), key=sort_key)))
    found: dict[Monomial, int] = {}
    for left, x in a.terms:
        for right, y in b.terms:
            monomial = tuple(sorted(left + right, key=_order))
            found[monomial] = found.get(monomial, 0) + x * y
    return _of(found)


def _of(found: dict[Monomial, int]) -> Expr:
    terms = [(monomial, factor) for monomial, factor in found.items() if factor]
    terms.sort(key=lambda term: _monomial_key(term[0]))
    return of_terms(tuple(terms))


def _degree(expr: Expr) -> int:
    return len(expr.terms[0][0]) if expr.terms else 0


def _order(atom: Atom) -> int:
    return atom.order


def _monomial_key(monomial: Monomial) -> tuple[int, ...]:
    return (-len(monomial), *map(_order, monomial))


def sort_key(expr: Expr) -> tuple[tuple[int, ...], ...]:
    """An order of expressions: by what they are made of, oldest atoms first."""
    return tuple((*_monomial_key(m), f) for m, f in expr.terms)


def _term_text(monomial: Iterable[Atom], factor: int) -> str:
    texts = sorted(map(str, monomial))
    if factor != 1 or not texts:
        texts.insert(0, str(factor))
    text = "*".join(texts)
    return f"-{text.removeprefix('-1*')}" if text.startswith("-1*") else text
