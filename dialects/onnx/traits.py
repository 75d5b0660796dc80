"""Traits of operators: what passes ask instead of knowing names."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.traits import OpTrait, Pure


@dataclass(frozen=True)
class NonDeterministic(OpTrait):
    """Two runs on the same inputs may differ: never folded, merged or moved into a constant."""


@dataclass(frozen=True)
class ReadsShapeOnly(OpTrait):
    """The result hangs on the shape of the input, not on its elements (Shape, Size)."""


@dataclass(frozen=True)
class DataDependentShape(OpTrait):
    """An output shape hangs on input elements in a way that no input alone decides (NonZero)."""


@dataclass(frozen=True)
class ElementWise(OpTrait):
    """Each output element hangs on the elements at the same (broadcast) place of the inputs."""


def is_deterministic(op: Operation) -> bool:
    """Whether an operation gives the same results on the same inputs, bodies included."""
    return not any(inner.has_trait(NonDeterministic) for inner in op.walk())


def is_pure(op: Operation) -> bool:
    """Whether an operation may be removed when unused, and computed at compile time."""
    return (op.has_trait(Pure) or bool(op.regions)) and is_deterministic(op)
