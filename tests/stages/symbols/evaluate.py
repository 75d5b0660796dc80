"""The number that an expression stands for, given numbers for its symbols."""

from __future__ import annotations

import math
from collections.abc import Mapping

from foldline.stages.symbols.expression import Atom, Expr


def evaluate(expr: Expr, sizes: Mapping[str, int]) -> int:
    """Compute an expression."""
    return sum(
        factor * math.prod(_evaluate_atom(atom, sizes) for atom in monomial)
        for monomial, factor in expr.terms
    )


def _evaluate_atom(atom: Atom, sizes: Mapping[str, int]) -> int:
    args = [evaluate(arg, sizes) for arg in atom.args]
    match atom.kind:
        case "symbol":
            return sizes[atom.name]
        case "floordiv":
            return args[0] // args[1]
        case "mod":
            return args[0] % args[1]
        case "min":
            return min(args)
        case "max":
            return max(args)
        case "product":
            return math.prod(args)
        case _:
            assert atom.kind == "broadcast"
            widest = {arg for arg in args if arg != 1} or {1}
            assert len(widest) == 1, "the operator would have failed"
            return widest.pop()
