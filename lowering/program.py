"""A model ready to run: a shape-generic program and plans for the shapes it sees again.

The first run on given input shapes is shape-generic. The second one is watched, and a plan is
made from what it shows. Later runs use the plan. Programs may be run by many threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute

from foldline.dialects.onnx.attributes import Interface
from foldline.dialects.onnx.op import result_names
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.plan import CallOp, ProgramOp
from foldline.kernels.registry import Array
from foldline.kernels.ufunc_state import quiet_ufuncs
from foldline.lowering.aliases import owners
from foldline.lowering.bind_plan import Slots, bind_block
from foldline.lowering.instances import Pool
from foldline.lowering.memory import Memory, memory_of
from foldline.lowering.moving_steps import PlanBroken
from foldline.lowering.outputs import copied, handing_out
from foldline.lowering.plans import Key, Plans, key_of
from foldline.lowering.show_plan import plan_text
from foldline.lowering.specialise import Plan
from foldline.lowering.steps import BoundCall, Frame
from foldline.support.errors import InvalidArgumentError


@dataclass(frozen=True)
class Port:
    """An input or output of a program."""

    name: str
    type: Attribute | None
    default: Array | None = None
    """What an input is when the caller gives nothing; None where it must be given."""


class Program:
    """What `lower` makes of a module. Immutable but for caches, and re-entrant."""

    def __init__(self, source: ProgramOp):
        """Bind a program of the plan dialect to its kernels."""
        self.source = source
        block = source.body.block
        self._routine, slots = bind_block(block)
        self._names = _names(source, slots)
        self._owners = owners(
            self._routine.calls, self._routine.given, self._routine.layout.outputs
        )
        self._plans = Plans(self._routine, after=1, alone=True)
        interface = source.interface.data
        self.inputs = _inputs(source, interface)
        self.outputs = tuple(Port(info.name, info.type) for info in interface.outputs)

    def run(
        self, inputs: Sequence[Any], wanted: Sequence[int] | None = None, key: Key | None = None
    ) -> list[Any]:
        """The outputs at positions `wanted`, by default all, in that order.

        `inputs`: arrays in the order of `self.inputs`, of the right dtypes; they are not written.
        `key`: their shapes and dtypes, from who knows them. The results are fresh arrays. Raises
        KernelFailed, and InvalidArgumentError for a wrong number of inputs.
        """
        if key is None:
            if len(inputs) != len(self.inputs):
                expected = f"{len(self.inputs)} inputs are taken"
                raise InvalidArgumentError(f"{expected}, not {len(inputs)}")
            key = key_of(inputs)
        found = "generic" if key is None else self._plans.find(key)
        if key is not None and isinstance(found, Pool):
            try:
                return found.run(inputs, _taking(found, wanted))
            except PlanBroken:
                self._plans.give_up(key)
                return self._run_generic(inputs, wanted)
        if key is None or found == "generic":
            return self._run_generic(inputs, wanted)
        frame = self._frame(inputs)
        # By the plan's rule: what it knows it keeps, so the caller is given copies of that.
        plan = self._plans.learn(key, frame)
        return handing_out(plan.outputs, plan.owned, wanted)(frame)

    def values(self, inputs: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
        """Copies of values by name, intermediate ones included, for debugging.

        Raises KeyError for a name the program does not have, KernelFailed.
        """
        slots = {self._names[name]: name for name in names}
        frame = self._frame(inputs)
        found = {name: copied(frame[slot]) for slot, name in slots.items()}

        def observe(call: BoundCall, current: Frame) -> None:
            found.update((slots[s], copied(current[s])) for s in call.results if s in slots)

        with quiet_ufuncs():
            self._routine.run_observed(frame, observe)
        return {name: found[slots[self._names[name]]] for name in names}

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names that `values` knows."""
        return tuple(self._names)

    def plans(self) -> list[Pool]:
        """The plans that exist now, least recently used first."""
        return self._plans.all()

    def memory(self) -> Memory:
        """What the program and its plans hold."""
        return memory_of(self._routine, self.plans())

    def text(self, plan: Plan | None = None) -> str:
        """The program for a person to read; with a plan, also where its results are."""
        return plan_text(self.source, self._routine, plan)

    def _run_generic(self, inputs: Sequence[Any], wanted: Sequence[int] | None) -> list[Any]:
        with quiet_ufuncs():
            frame = self._frame(inputs)
            self._routine.run(frame)
        owned = [owner is not None for owner in self._owners]
        return handing_out(self._routine.layout.outputs, owned, wanted)(frame)

    def _frame(self, inputs: Sequence[Any]) -> Frame:
        frame = self._routine.frame()
        frame[self._routine.layout.inputs] = inputs
        return frame


def _taking(pool: Pool, wanted: Sequence[int] | None) -> Callable[[Frame], list[Any]]:
    if wanted is None:
        return pool.hand_out
    return handing_out(pool.plan.outputs, pool.plan.owned, wanted)


def _inputs(source: ProgramOp, interface: Interface) -> tuple[Port, ...]:
    pairs = zip(interface.argument_infos(), source.defaults, strict=True)
    return tuple(
        Port(info.name, info.type, default.array if isinstance(default, TensorAttr) else None)
        for info, default in pairs
    )


def _names(source: ProgramOp, slots: Slots) -> dict[str, int]:
    """Slots by value name; inputs first, and the first of equal names (of inlined functions)."""
    block = source.body.block
    interface = source.interface.data
    names: dict[str, int] = {}
    for info, argument in zip(interface.argument_infos(), block.args, strict=True):
        names[info.name] = slots[argument]
    for op in block.ops:
        if isinstance(op, CallOp):
            for name, result in zip(result_names(op), op.results, strict=True):
                if name:
                    names.setdefault(name, slots[result])
    for info, slot in zip(interface.outputs, _returned_slots(source, slots), strict=True):
        names.setdefault(info.name, slot)
    return names


def _returned_slots(source: ProgramOp, slots: Slots) -> list[int]:
    last = source.body.block.last_op
    return [] if last is None else [slots[value] for value in last.operands]
