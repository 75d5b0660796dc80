"""Operators with bodies: If, Loop, Scan, SequenceMap.

A GRAPH attribute arrives as a `Body`: a callable that takes the body's own inputs and returns a
tuple; what it uses of outer values is bound already. Bodies run by the executor's own steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from foldline.kernels.registry import Array, kernel


@dataclass(frozen=True)
class ValueType:
    """What is known of a body's input or output before it runs."""

    dtype: np.dtype[Any] | None = None
    shape: tuple[int | None, ...] | None = None


class Body(Protocol):
    """The body of a control flow operator."""

    @property
    def parameters(self) -> Sequence[ValueType]:
        """Types of the body's own inputs."""
        ...

    @property
    def results(self) -> Sequence[ValueType]:
        """Types of the body's outputs."""
        ...

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the body once."""
        ...


@kernel("If", view=True, exact=True)
def if_(cond: Array, *, then_branch: Body, else_branch: Body) -> Any:
    """If 1+: the outputs of the branch that `cond`, of one element, chooses."""
    bodies = {"then_branch": then_branch, "else_branch": else_branch}
    return _unpacked(bodies[chosen_branch(cond)]())


def chosen_branch(cond: Array) -> str:
    """The attribute that holds the branch of If to take. ValueError unless there is one element."""
    return "then_branch" if cond.item() else "else_branch"


@kernel("Loop", view=True, exact=True)
def loop(
    trip_count: Array | None = None, cond: Array | None = None, *carried: Any, body: Body
) -> Any:
    """Loop 1+: repeat `body` up to `trip_count` times while its condition holds.

    An absent trip count is no limit, an absent condition is true. The outputs are the final
    carried values, then what the other outputs of the body were in each turn, stacked.
    """
    turns = None if trip_count is None else int(trip_count.item())
    index_shape = _scalar_shape(body.parameters, 0)
    flag_shape = _scalar_shape(body.parameters, 1)
    flag: Array = np.array(True) if cond is None else cond
    state: tuple[Any, ...] = carried
    n = len(carried)
    scanned: list[tuple[Any, ...]] = []
    turn = 0
    while (turns is None or turn < turns) and flag.item():
        index = np.array(turn, np.int64)
        if index_shape:
            index = index.reshape(index_shape)
        results = body(index, flag.reshape(flag_shape), *state)
        flag = results[0]
        state = results[1 : n + 1]
        scanned.append(results[n + 1 :])
        turn += 1
    stacks = _stacked_columns(scanned, body.results[n + 1 :])
    return _unpacked((*state, *stacks))


@kernel("Scan", since=9, view=True, exact=True)
def scan(
    *inputs: Array,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> Any:
    """Scan 9+: run `body` over slices of the last `num_scan_inputs` inputs, carrying state.

    Axes default to 0, directions (1: from the end) to 0. ValueError when the lengths differ.
    """
    n = len(inputs) - num_scan_inputs
    axes = scan_input_axes or (0,) * num_scan_inputs
    series = [np.moveaxis(x, axis, 0) for x, axis in zip(inputs[n:], axes, strict=True)]
    series = _directed(series, scan_input_directions)
    states, stacks = _scan(body, inputs[:n], series, _common_length(series))
    stacks = _directed(stacks, scan_output_directions)
    out_axes = scan_output_axes or (0,) * len(stacks)
    placed = [np.moveaxis(x, 0, axis) for x, axis in zip(stacks, out_axes, strict=True)]
    return _unpacked((*states, *placed))


@kernel("Scan", until=9, view=True, exact=True)
def scan_8(
    sequence_lens: Array | None,
    *inputs: Array,
    body: Body,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> Any:
    """Scan 8: axis 0 of all inputs is a batch, axis 1 of scan inputs the sequence.

    Each batch entry runs over its own length; scan outputs are zero beyond it. A direction of 1
    runs from the last valid element.
    """
    n = len(inputs) - num_scan_inputs
    batch = inputs[0].shape[0]
    longest = _common_length([x.swapaxes(0, 1) for x in inputs[n:]])
    lengths = [longest] * batch if sequence_lens is None else sequence_lens.tolist()
    all_states: list[tuple[Array, ...]] = []
    all_stacks: list[list[Array]] = []
    for entry, length in enumerate(lengths):
        series = _directed([x[entry, :length] for x in inputs[n:]], directions)
        states, stacks = _scan(body, [x[entry] for x in inputs[:n]], series, length)
        all_states.append(states)
        all_stacks.append([_padded(stack, longest) for stack in stacks])
    joined = [_stack(column) for column in zip(*all_states, strict=True)]
    joined += [_stack(column) for column in zip(*all_stacks, strict=True)]
    return _unpacked(tuple(joined))


@kernel("SequenceMap", view=True, exact=True)
def sequence_map(input_sequence: list[Array], *additional: Any, body: Body) -> Any:
    """SequenceMap 17: `body` on each element; additional sequences give an element a turn too."""
    columns: list[list[Any]] = [[] for _ in body.results]
    for index, element in enumerate(input_sequence):
        others: list[Any] = [x[index] if isinstance(x, list) else x for x in additional]
        for column, result in zip(columns, body(element, *others), strict=True):
            column.append(result)
    return _unpacked(tuple(columns))


def _unpacked(results: tuple[Any, ...]) -> Any:
    return results[0] if len(results) == 1 else results


def _scalar_shape(parameters: Sequence[ValueType], position: int) -> tuple[int, ...]:
    """`()`, or `(1,)` where the body declares its counter or condition as a vector."""
    declared = parameters[position].shape
    return (1,) if declared is not None and len(declared) == 1 else ()


def _scan(
    body: Body, states: Sequence[Array], series: Sequence[Array], length: int
) -> tuple[tuple[Array, ...], list[Array]]:
    n = len(states)
    current: tuple[Array, ...] = tuple(states)
    scanned: list[tuple[Any, ...]] = []
    for turn in range(length):
        # The ellipsis keeps an element of a vector an array.
        results = body(*current, *[x[turn, ...] for x in series])
        current = results[:n]
        scanned.append(results[n:])
    return current, _stacked_columns(scanned, body.results[n:])


def _directed(series: Sequence[Array], directions: Sequence[int] | None) -> list[Array]:
    if not directions:
        return list(series)
    return [x[::-1] if back else x for x, back in zip(series, directions, strict=True)]


def _common_length(series: Sequence[Array]) -> int:
    lengths = {x.shape[0] for x in series}
    if len(lengths) != 1:
        raise ValueError(f"scan inputs have different lengths {sorted(lengths)}")
    return lengths.pop()


def _stacked_columns(rows: Sequence[tuple[Any, ...]], types: Sequence[ValueType]) -> list[Array]:
    """One array an output, its turns along axis 0; without turns, empty of the declared type."""
    if not rows:
        return [_empty(type_) for type_ in types]
    return [_stack(column) for column in zip(*rows, strict=True)]


def _stack(turns: Sequence[Array]) -> Array:
    """The arrays along a new axis 0, copied once; ValueError unless all have one shape."""
    first = turns[0]
    result = np.empty((len(turns), *first.shape), first.dtype)
    for index, turn in enumerate(turns):
        if turn.shape != first.shape:
            raise ValueError(
                f"a scan output has shape {first.shape} in turn 0, {turn.shape} in turn {index}"
            )
        result[index] = turn
    return result


def _empty(declared: ValueType) -> Array:
    """No turns at all: dimensions that are not known are 0, as in ONNX Runtime."""
    dims = [0 if size is None else size for size in declared.shape or ()]
    return np.empty((0, *dims), declared.dtype or np.float32)


def _padded(stack: Array, length: int) -> Array:
    if len(stack) == length:
        return stack
    result = np.zeros((length, *stack.shape[1:]), stack.dtype)
    result[: len(stack)] = stack
    return result
