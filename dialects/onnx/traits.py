"""Traits of operators: what passes ask instead of knowing names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, OpTrait, Pure, RecursiveMemoryEffect

from foldline.dialects.onnx.types import AbsentType


@dataclass(frozen=True)
class NonDeterministic(OpTrait):
    """Two runs on the same inputs may differ: never folded, merged or moved into a constant."""


@dataclass(frozen=True)
class RandomInTraining(OpTrait):
    """Non-deterministic unless the operation's `may_train` says no (Dropout)."""


@dataclass(frozen=True)
class ReadsShapeOnly(OpTrait):
    """The result hangs on the shape of the input, not on its elements (Shape, Size)."""


@dataclass(frozen=True)
class DataDependentShape(OpTrait):
    """An output shape hangs on input elements in a way that no input alone decides (NonZero)."""


@dataclass(frozen=True)
class ElementWise(OpTrait):
    """Each output element hangs on the elements at the same (broadcast) place of the inputs."""


class MayTrain(Protocol):
    """An operation that is random in training mode only."""

    def may_train(self) -> bool:
        """Whether a run could be one of training."""
        ...


@dataclass(frozen=True)
class HoldsCache(OpTrait):
    """Keys and values of earlier runs go through it, from the inputs named here."""

    inputs: tuple[int, ...]


def holds_cache(op: Operation) -> bool:
    """Whether an operation is given the keys and values of earlier runs."""
    trait = op.get_trait(HoldsCache)
    if trait is None:
        return False
    given = [i for i in trait.inputs if i < len(op.operands)]
    return any(not isinstance(op.operands[i].type, AbsentType) for i in given)


def is_deterministic(op: Operation) -> bool:
    """Whether an operation gives the same results on the same inputs, bodies included."""
    return not any(map(_is_random, op.walk()))


def is_pure(op: Operation) -> bool:
    """Whether an operation may be removed when unused, and computed at compile time."""
    return all(map(_has_no_effect, op.walk())) and is_deterministic(op)


def _is_random(op: Operation) -> bool:
    if op.has_trait(RandomInTraining):
        return cast(MayTrain, op).may_train()
    return op.has_trait(NonDeterministic)


def _has_no_effect(op: Operation) -> bool:
    """An operation with bodies has the effects of their operations; a return has none."""
    return op.has_trait(Pure) or op.has_trait(RecursiveMemoryEffect) or op.has_trait(IsTerminator)
