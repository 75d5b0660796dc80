"""A watched run of a routine: what the shapes decide, and the calls in a straight line.

    If(known) {then, else}   ->   the calls of the branch that is taken

A branch that the shapes choose is chosen for good: its calls join those around it, in slots of
their own, and are planned like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foldline.kernels.control_flow import chosen_branch, if_
from foldline.lowering.facts import Facts
from foldline.lowering.kernel_errors import KernelErrors
from foldline.lowering.routine import Routine
from foldline.lowering.steps import BoundCall, Frame, Run


@dataclass(frozen=True)
class Trace:
    """What ran, and what holds for it whenever the inputs have these shapes."""

    calls: tuple[BoundCall, ...]
    runs: tuple[Run, ...]
    """The shape-generic step of each call."""
    origins: tuple[BoundCall, ...]
    """The call of the routine or of a branch that each call stands for."""
    frame: Frame
    facts: Facts
    constants: tuple[int, ...]
    """Slots whose value is the same in every frame."""
    inputs: range
    outputs: tuple[int, ...]


def traced(routine: Routine, frame: Frame) -> Trace:
    """Run a routine on a frame whose inputs are in place. Raises KernelFailed."""
    tracer = _Tracer(routine, frame)
    slots = list(range(routine.layout.size))
    tracer.follow(routine, slots)
    outputs = tuple(slots[slot] for slot in routine.layout.outputs)
    is_straight = len(frame) == routine.layout.size
    calls = tracer.calls if is_straight else _with_last_uses(tracer.calls, outputs)
    return Trace(
        tuple(calls),
        tuple(tracer.runs),
        tuple(tracer.origins),
        frame,
        tracer.facts,
        tuple(tracer.constants),
        routine.given,
        outputs,
    )


class _Tracer:
    def __init__(self, routine: Routine, frame: Frame):
        self.frame = frame
        self.constants = list(routine.constant_slots)
        self.facts = Facts(frame, routine.constant_slots, routine.given)
        self.calls: list[BoundCall] = []
        self.runs: list[Run] = []
        self.origins: list[BoundCall] = []

    def follow(self, routine: Routine, slots: list[int]) -> None:
        """Run the calls of a routine; `slots` are the places of its slots in the frame.

        The results of a branch are found where the branch has them: `slots` is changed so.
        """
        own = slots.copy()
        for origin, (run, frees) in zip(routine.calls, routine.steps, strict=True):
            call = _placed(origin, slots)
            branch = self._branch(call)
            if branch is not None:
                for result, slot in zip(origin.results, self._inlined(call, branch), strict=True):
                    slots[result] = slot
                continue
            self._run(call, run if call is origin else call.step()[0], origin)
            for slot in frees:
                if slots[slot] == own[slot]:
                    self.frame[own[slot]] = None

    def _run(self, call: BoundCall, run: Run, origin: BoundCall) -> None:
        with KernelErrors((call,), (), self.frame):
            run(self.frame)
        self.facts.observe(call, self.frame)
        self.calls.append(call)
        self.runs.append(run)
        self.origins.append(origin)

    def _branch(self, call: BoundCall) -> Routine | None:
        """The branch that the shapes choose."""
        if call.kernel.function is not if_ or not self.facts.are_known(call.inputs):
            return None
        with KernelErrors((call,), (), self.frame):
            return call.bodies[chosen_branch(self.frame[call.inputs[0]])].routine

    def _inlined(self, call: BoundCall, branch: Routine) -> list[int]:
        """Run a branch in slots of its own; where its results are."""
        start = len(self.frame)
        self.frame += branch.frame()
        slots = [0, *range(start + 1, len(self.frame))]
        constants = [slots[slot] for slot in branch.constant_slots]
        self.constants += constants[1:]
        self.facts.note_known(constants, self.frame)
        slots[branch.layout.captures] = call.captures
        self.follow(branch, slots)
        return [slots[slot] for slot in branch.layout.outputs]


def _placed(call: BoundCall, slots: Sequence[int]) -> BoundCall:
    """A call on the frame: the same object where no slot is another one."""
    used = (*call.inputs, *call.captures, *call.results)
    if all(slots[slot] == slot for slot in used):
        return call
    return replace(
        call,
        inputs=_moved(call.inputs, slots),
        captures=_moved(call.captures, slots),
        results=_moved(call.results, slots),
        shape_inputs=_moved(call.shape_inputs, slots),
        frees=(),
    )


def _moved(used: Sequence[int], slots: Sequence[int]) -> tuple[int, ...]:
    return tuple([slots[slot] for slot in used])


def _with_last_uses(calls: Sequence[BoundCall], outputs: Sequence[int]) -> list[BoundCall]:
    """The same calls, each freeing the results that no later one reads."""
    results = {slot for call in calls for slot in call.results}
    living = set(outputs)
    kept: list[BoundCall] = []
    for call in reversed(calls):
        used = results.intersection((*call.inputs, *call.captures, *call.results))
        frees = tuple(sorted(used - living))
        kept.append(call if frees == tuple(sorted(call.frees)) else replace(call, frees=frees))
        living |= used
    return kept[::-1]
