"""A call of the plan bound to slots, and the closures that run it on a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, cast

import numpy as np

from foldline.kernels.control_flow import Body
from foldline.kernels.registry import Array, Kernel, Operand, aligned_bytes
from foldline.kernels.registry import Step as MadeStep

if TYPE_CHECKING:
    from foldline.lowering.routine import Routine

Frame: TypeAlias = list[Any]
Run: TypeAlias = Callable[[Frame], Any]
Step: TypeAlias = tuple[Run, tuple[int, ...]]
"""What computes, and the slots that die then."""


class BodySource(Protocol):
    """A body before it is given what it takes from outside."""

    @property
    def routine(self) -> Routine:
        """The calls of the body."""
        ...

    def __call__(self, captured: Sequence[Any]) -> Body:
        """The body for one run."""
        ...


VARIANTS = 32
PACKED_VARIANTS = 4
"""So many shapes a shape-generic step remembers a maker's answer for; fewer where constants come
in, for such an answer may hold a packed copy of them."""


@dataclass(frozen=True, eq=False)
class BoundCall:
    """A kernel, its attributes, and where its inputs and results are."""

    where: str
    """Operator and node, for messages."""
    kernel: Kernel
    keywords: Mapping[str, Any]
    inputs: tuple[int, ...]
    """Slots in input order; slot 0 where an input is absent."""
    captures: tuple[int, ...]
    """Slots that the bodies take from outside."""
    results: tuple[int, ...]
    frees: tuple[int, ...]
    """Slots that die here."""
    bodies: Mapping[str, BodySource]
    """For each GRAPH attribute, what makes the body."""
    facts: frozenset[str]
    """What of `random`, `reads-shape`, `open-shape`, `element-wise` holds."""
    shape_inputs: tuple[int, ...]
    """Slots of inputs whose values decide shapes."""
    constant_inputs: tuple[bool, ...]
    """Which inputs are the same in every frame."""
    chain: int = 0
    """The chain of element-wise calls that it is a part of, or 0."""

    @cached_property
    def function(self) -> Callable[..., Any]:
        """A plain kernel with its attributes."""
        function = self.kernel.function
        return partial(function, **self.keywords) if self.keywords else function

    def made(self, operands: Sequence[Operand | None]) -> MadeStep:
        """What a maker makes for these operands."""
        made = self.kernel.function(*operands, **self.keywords)
        return made if isinstance(made, MadeStep) else MadeStep(made)

    @cached_property
    def made_steps(self) -> MadeSteps:
        """What a maker made in shape-generic runs."""
        return MadeSteps(self)

    def step(self) -> Step:
        """The shape-generic step."""
        if self.bodies:
            return _with_bodies(self), self.frees
        if self.kernel.is_maker:
            return _making(self), self.frees
        return _plain(self), self.frees

    def store(self, frame: Frame, value: Any) -> None:
        """Put a kernel's answer in the slots of the results."""
        for slot, result in zip(self.results, results_of(value), strict=False):
            if type(result) is not np.ndarray or not result.flags.c_contiguous:
                result = self.settled(result, frame)
            frame[slot] = result

    def settled(self, value: Any, frame: Frame) -> Any:
        """The value in C order, unless it is a view of the first input.

        The layout of what a kernel reads decides the order of its sums. NumPy's results take the
        layout of their inputs, those in an arena are in C order: unless all are, the bits would
        hang on how a call runs.
        """
        if type(value) is not np.ndarray or value.flags.c_contiguous:
            return cast(Any, value)
        if self.kernel.view:
            source = frame[self.inputs[0]]
            # A fresh array never lies within the bounds of another one.
            if not is_array(source) or np.may_share_memory(value, source):
                return value
        return np.ascontiguousarray(value)


def results_of(value: Any) -> tuple[Any, ...]:
    """A kernel's answer as a tuple."""
    return cast("tuple[Any, ...]", value) if type(value) is tuple else (value,)


def is_array(value: Any) -> TypeGuard[Array]:
    """Whether a value is a tensor: not a sequence, nor an absent optional."""
    return isinstance(value, np.ndarray)


def reader(slots: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that reads slots of a frame."""
    if len(slots) > 1:
        return itemgetter(*slots)
    if len(slots) == 1:
        (only,) = slots
        return lambda frame: (frame[only],)
    return lambda frame: [frame[slot] for slot in slots]


def _plain(call: BoundCall) -> Run:
    """Most calls have one or two inputs and one result: these read and write slots directly."""
    function, store = call.function, call.store
    if len(call.results) == 1 and len(call.inputs) in (1, 2):
        first, last, result = call.inputs[0], call.inputs[-1], call.results[0]

        def one(frame: Frame) -> None:
            value = function(frame[first])
            if type(value) is list or (type(value) is np.ndarray and value.flags.c_contiguous):
                frame[result] = value
            else:
                store(frame, value)

        def two(frame: Frame) -> None:
            value = function(frame[first], frame[last])
            if type(value) is np.ndarray and value.flags.c_contiguous:
                frame[result] = value
            else:
                store(frame, value)

        return one if len(call.inputs) == 1 else two
    read = reader(call.inputs)
    return lambda frame: store(frame, function(*read(frame)))


def _with_bodies(call: BoundCall) -> Run:
    function, read, bodies = call.function, reader(call.inputs), tuple(call.bodies.items())
    read_captures = reader(call.captures)

    def compute(frame: Frame) -> Any:
        captured = read_captures(frame)
        return function(*read(frame), **{name: bind(captured) for name, bind in bodies})

    return lambda frame: call.store(frame, compute(frame))


def _making(call: BoundCall) -> Run:
    compute = call.made_steps
    return lambda frame: call.store(frame, compute(frame))


class MadeSteps:
    """Calls of a maker: what it made is kept by the shapes and dtypes of what varies.

    A plan takes over what was made for its shapes, as it may hold a packed copy of weights.
    """

    __slots__ = ("_call", "_made", "_most", "_read", "_varying")

    def __init__(self, call: BoundCall):
        self._call = call
        self._made: dict[Any, tuple[MadeStep, Callable[..., Any]]] = {}
        self._most = PACKED_VARIANTS if any(call.constant_inputs) else VARIANTS
        self._read = reader(call.inputs)
        places = [place for place, fixed in enumerate(call.constant_inputs) if not fixed]
        self._varying = reader(places)

    def __call__(self, frame: Frame) -> Any:
        """Compute on the arrays in a frame."""
        arrays = self._read(frame)
        key = tuple([_signature(value) for value in self._varying(arrays)])
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= self._most:
                self._made.clear()
            found = self._made[key] = self._make(arrays)
        return found[1](*arrays)

    def take(self, operands: Sequence[Operand | None]) -> MadeStep | None:
        """What was made for these operands, if no more is known of them; it is kept no longer."""
        varying = self._varying(operands)
        found = self._made.pop(tuple([x and (x.shape, x.dtype) for x in varying]), None)
        is_all = not any(
            x is not None and (x.value is not None or x.channels_last) for x in varying
        )
        return found[0] if found is not None and is_all else None

    def _make(self, arrays: Sequence[Any]) -> tuple[MadeStep, Callable[..., Any]]:
        call = self._call
        pairs = zip(arrays, call.constant_inputs, strict=True)
        made = call.made([operand_of(array, is_constant) for array, is_constant in pairs])
        run, size = made.run, made.scratch_bytes
        if not size:
            return made, run
        return made, lambda *inputs: run(*inputs, scratch=aligned_bytes(size))


def operand_of(value: Array | None, is_constant: bool) -> Operand | None:
    """What a maker may know of a value."""
    if value is None:
        return None
    return Operand(value.shape, value.dtype, value if is_constant else None)


def _signature(value: Any) -> Any:
    return (value.shape, value.dtype) if is_array(value) else None
