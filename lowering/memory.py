"""How much memory a program holds, and what its plans need to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from foldline.kernels.registry import Array
from foldline.lowering.bodies import BodyProgram
from foldline.lowering.instances import Pool
from foldline.lowering.routine import Routine
from foldline.lowering.specialise import Plan
from foldline.lowering.steps import is_array


@dataclass(frozen=True)
class PlanMemory:
    """What one plan needs for each run that is in flight. All in bytes."""

    arena: int
    without_reuse: int
    """What the arena would take if no memory were used twice."""
    scratch: int
    """What kernels use while they run, if none of it were used twice; the arena holds it."""


@dataclass(frozen=True)
class Memory:
    """What a program holds. All in bytes."""

    weights: int
    """Constants of the model, each piece of memory once."""
    mapped: int
    """How much of them stays in the files of external data, read when it is used."""
    plans: tuple[PlanMemory, ...]
    """Those that exist now, least recently used first."""
    bodies: tuple[PlanMemory, ...]
    """Those of the bodies of control flow."""


def memory_of(routine: Routine, pools: Iterable[Pool]) -> Memory:
    """The memory of a program."""
    held = {_key(array): array for array in _constants(routine)}
    mapped = [array for array in held.values() if isinstance(_owner(array), np.memmap)]
    inner = [pool for body in _bodies(routine) for pool in body.plans.all()]
    return Memory(
        sum(map(_stored_bytes, held.values())),
        sum(map(_stored_bytes, mapped)),
        tuple(_plan_memory(pool.plan) for pool in pools),
        tuple(_plan_memory(pool.plan) for pool in inner),
    )


def _constants(routine: Routine) -> Iterator[Array]:
    routines = [routine, *(body.routine for body in _bodies(routine))]
    return (value for each in routines for value in each.constants if is_array(value))


def _bodies(routine: Routine) -> Iterator[BodyProgram]:
    """The bodies in a routine, and those in them. Calls of a plan have the same ones."""
    for call in routine.calls:
        for body in call.bodies.values():
            assert isinstance(body, BodyProgram), "binding makes no other"
            yield body
            yield from _bodies(body.routine)


def _key(array: Array) -> tuple[int, int]:
    return array.ctypes.data, _stored_bytes(array)


def _stored_bytes(array: Array) -> int:
    """What an array takes; one element where all are that one."""
    return array.nbytes if any(array.strides) else array.itemsize


def _owner(array: Array) -> Array:
    """The array that holds the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _plan_memory(plan: Plan) -> PlanMemory:
    scratch = [call.scratch.buffer.size for call in plan.calls if call.scratch is not None]
    return PlanMemory(plan.arena_bytes, plan.buffer_bytes, sum(scratch))
