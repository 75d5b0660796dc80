"""Values as polynomials: what sums, products and powers of constants make of one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import OpResult, SSAValue

from foldline.dialects.onnx.op import NodeOp
from foldline.stages.rewrite.factors import number_of

Polynomial = Mapping[int, float]
"""Coefficients by power."""

MAX_NODES = 16
"""So many nodes a polynomial may be spelled with."""
MAX_DEGREE = 8


@dataclass
class Reading:
    """Reads values as polynomials of `x`."""

    x: SSAValue
    nodes: list[NodeOp] = field(default_factory=list[NodeOp])
    """The nodes that were read, without repetition."""

    def polynomial(self, value: SSAValue) -> Polynomial | None:
        """A value as a polynomial of `x`; None if it is none."""
        if value is self.x:
            return {1: 1.0}
        if not isinstance(value, OpResult) or not isinstance(value.op, NodeOp):
            return None
        op = value.op
        if op not in self.nodes:
            self.nodes.append(op)
        if len(self.nodes) > MAX_NODES:
            return None
        return self._of(op)

    def _of(self, op: NodeOp) -> Polynomial | None:
        match op.op_type if not op.domain else "":
            case "Add":
                sides = self._operand(op, 0), self._operand(op, 1)
                return None if None in sides else _sum(*[s for s in sides if s is not None])
            case "Mul":
                sides = self._operand(op, 0), self._operand(op, 1)
                return None if None in sides else _product(*[s for s in sides if s is not None])
            case "Div":
                above, divisor = self._operand(op, 0), number_of(op, 1)
                return {p: c / divisor for p, c in above.items()} if above and divisor else None
            case "Pow":
                base, exponent = self._operand(op, 0), number_of(op, 1)
                return None if base is None or exponent is None else _power(base, exponent)
            case _:
                return None

    def _operand(self, op: NodeOp, index: int) -> Polynomial | None:
        number = number_of(op, index)
        if number is not None:
            return {0: number}
        value = op.operand(index)
        return None if value is None else self.polynomial(value)


def is_close(found: Polynomial, wanted: Polynomial, rel: float) -> bool:
    """Whether two polynomials have the same powers, with coefficients up to a relative error."""
    return found.keys() == wanted.keys() and all(
        abs(found[power] - c) <= rel * abs(c) for power, c in wanted.items()
    )


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return {power: a.get(power, 0.0) + b.get(power, 0.0) for power in sorted({*a, *b})}


def _product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    found: dict[int, float] = {}
    for i, c in a.items():
        for j, d in b.items():
            found[i + j] = found.get(i + j, 0.0) + c * d
    return found if max(found) <= MAX_DEGREE else None


def _power(base: Polynomial, exponent: float) -> Polynomial | None:
    if not exponent.is_integer() or not 1 <= exponent <= MAX_DEGREE:
        return None
    found: Polynomial | None = base
    for _ in range(int(exponent) - 1):
        found = None if found is None else _product(found, base)
    return found
