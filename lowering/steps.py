"""A call of the plan bound to slots, and the closures that run it on a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np

from foldline.kernels.control_flow import Body
from foldline.kernels.registry import Array, Kernel, Operand, aligned_bytes
from foldline.kernels.registry import Step as MadeStep

Frame: TypeAlias = list[Any]
Run: TypeAlias = Callable[[Frame], Any]
Step: TypeAlias = tuple[Run, tuple[int, ...]]
"""What computes, and the slots that die then."""

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
    bodies: Mapping[str, Callable[[Sequence[Any]], Body]]
    """For each GRAPH attribute: from captured values to a body."""
    facts: frozenset[str]
    """What of `random`, `reads-shape`, `open-shape` holds."""
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
            frame[slot] = self.settled(result, frame)

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


def reader(slots: Sequence[int]) -> Callable[[Frame], Sequence[Any]]:
    """A function that reads slots of a frame."""
    if len(slots) > 1:
        return itemgetter(*slots)
    return lambda frame: [frame[slot] for slot in slots]


def _plain(call: BoundCall) -> Run:
    """Most calls have one or two inputs and one result: these read and write slots directly."""
    function, store = call.function, call.store
    if len(call.results) == 1 and len(call.inputs) in (1, 2):
        first, last, result = call.inputs[0], call.inputs[-1], call.results[0]

        def one(frame: Frame) -> None:
            value = function(frame[first])
            if type(value) is np.ndarray and value.flags.c_contiguous:
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
    compute = _Making(call)
    return lambda frame: call.store(frame, compute(frame))


class _Making:
    """Calls of a maker: what it made is kept by the shapes and dtypes of what varies."""

    __slots__ = ("_call", "_made", "_most", "_read", "_read_varying")

    def __init__(self, call: BoundCall):
        self._call = call
        self._made: dict[Any, Callable[..., Any]] = {}
        self._most = PACKED_VARIANTS if any(call.constant_inputs) else VARIANTS
        self._read = reader(call.inputs)
        constant = zip(call.inputs, call.constant_inputs, strict=True)
        self._read_varying = reader([slot for slot, is_constant in constant if not is_constant])

    def __call__(self, frame: Frame) -> Any:
        key = tuple([_signature(value) for value in self._read_varying(frame)])
        arrays = self._read(frame)
        run = self._made.get(key)
        if run is None:
            if len(self._made) >= self._most:
                self._made.clear()
            run = self._made[key] = self._make(arrays)
        return run(*arrays)

    def _make(self, arrays: Sequence[Any]) -> Callable[..., Any]:
        call = self._call
        pairs = zip(arrays, call.constant_inputs, strict=True)
        made = call.made([operand_of(array, is_constant) for array, is_constant in pairs])
        run, size = made.run, made.scratch_bytes
        if not size:
            return run
        return lambda *inputs: run(*inputs, scratch=aligned_bytes(size))


def operand_of(value: Array | None, is_constant: bool) -> Operand | None:
    """What a maker may know of a value."""
    if value is None:
        return None
    return Operand(value.shape, value.dtype, value if is_constant else None)


def _signature(value: Any) -> Any:
    return (value.shape, value.dtype) if is_array(value) else None
