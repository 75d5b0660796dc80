"""The turns of a Loop or Scan whose number is known, and how they are unrolled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import ConstantLike

from foldline.dialects.onnx.attributes import Names, ReferenceAttr
from foldline.dialects.onnx.builder import Builder, Ops
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.control import LoopOp, ScanOp
from foldline.dialects.onnx.indexing import GatherOp
from foldline.dialects.onnx.op import NodeOp, node_name, opset_versions, result_names
from foldline.dialects.onnx.shape import IdentityOp
from foldline.dialects.onnx.structure import NoneOp, ReturnOp, terminator
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.types import (
    UNKNOWN,
    Dim,
    dims_of,
    element_type,
    rank,
    tensor_type,
)
from foldline.stages.driver.visitor import Requests
from foldline.stages.inlining import (
    accepts,
    copy_refusal,
    derive,
    hand_over,
    label,
    move_op,
    pass_names,
)
from foldline.stages.rewriting import Rewriter

INT64 = tensor_type(i64, ())
BOOL = tensor_type(i1, ())


@dataclass(frozen=True)
class Stacked:
    """An output that joins what the body returns in each turn."""

    value: SSAValue
    """What the body returns."""
    axis: int = 0
    """The new axis of the output, one step a turn."""
    is_reversed: bool = False
    """Whether the last turn comes first."""


@dataclass(frozen=True)
class Turns(ABC):
    """What runs a known number of times."""

    body: Block
    count: int
    initial: tuple[SSAValue, ...]
    """What the first turn is given of what is carried from turn to turn."""
    carried: tuple[SSAValue, ...]
    """What the body returns of that."""
    stacked: tuple[Stacked, ...]

    @abstractmethod
    def needs(self) -> Sequence[tuple[str, Attribute]]:
        """Operators that giving the body its inputs takes, and the types they must accept."""

    @abstractmethod
    def inputs(self, place: _Place, turn: int, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """The values of the body's arguments in one turn."""

    def refusal(self, op: NodeOp) -> str | None:
        """Why the operator set cannot say what `unroll` would."""
        needs = [*self.needs()]
        for stacked in self.stacked:
            needs += [("Unsqueeze", stacked.value.type), ("Concat", stacked.value.type)]
        versions = opset_versions(op)
        for op_type, type_ in needs:
            if not accepts(op_type, versions, type_):
                return f"{op_type} takes no {type_} here"
        finals = [*op.results[: len(self.carried)], *[None] * len(self.stacked)]
        return copy_refusal(op, finals, versions)


class _LoopTurns(Turns):
    def needs(self) -> Sequence[tuple[str, Attribute]]:
        return (("Constant", INT64), ("Constant", BOOL))

    def inputs(self, place: _Place, turn: int, carried: Sequence[SSAValue]) -> list[SSAValue]:
        given = (np.array(turn, np.int64), np.array(True))
        scalars = [
            # Some exporters declare a vector of one element, and then it is one when run.
            place.constant(value.reshape((1,) if rank(argument.type) == 1 else ()))
            if argument.first_use is not None
            else argument
            for argument, value in zip(self.body.args, given, strict=False)
        ]
        return [*scalars, *carried]


@dataclass(frozen=True)
class _ScanTurns(Turns):
    sliced: tuple[tuple[SSAValue, int, bool], ...]
    """Inputs that are cut in slices: the value, along which axis, whether from the end."""

    def needs(self) -> Sequence[tuple[str, Attribute]]:
        return (("Constant", INT64), *(("Gather", value.type) for value, _, _ in self.sliced))

    def inputs(self, place: _Place, turn: int, carried: Sequence[SSAValue]) -> list[SSAValue]:
        slices: list[SSAValue] = []
        for (value, axis, is_reversed), argument in zip(
            self.sliced, self.body.args[len(carried) :], strict=True
        ):
            index = place.constant(np.array(self.count - 1 - turn if is_reversed else turn))
            parameters = {"axis": axis}
            made = place.builder.operator(GatherOp, [value, index], parameters, (argument.type,))
            slices.append(place.value(made))
        return [*carried, *slices]


def loop_turns(op: LoopOp) -> Turns | str | None:
    """The turns of a Loop; why their number cannot be known; None if nothing speaks for it."""
    trips, condition = _constant(op.trip_count), _constant(op.condition)
    if any(x is not None and x.size != 1 for x in (trips, condition)):
        return "its trip count or condition is a constant that has not one element"
    body = op.regions[0].block
    is_never_true = condition is not None and not condition.item()
    if trips is None and not is_never_true:
        return None
    count = 0 if is_never_true or trips is None else max(int(trips.item()), 0)
    goes_on = op.condition is None or condition is not None
    if count > 0 and not (goes_on and _stays_true(body)):
        return f"its condition may end it before its {count} turns"
    values = tuple(terminator(body).operands)
    states = 1 + len(op.carried)
    stacked = tuple(map(Stacked, values[states:]))
    return _LoopTurns(body, count, op.carried, values[1:states], stacked)


def scan_turns(op: ScanOp) -> Turns | str | None:
    """The turns of a Scan; None where its length is not known."""
    if any(isinstance(value, ReferenceAttr) for value in op.properties.values()):
        return None
    if op.since < 9:
        return f"Scan of version {op.since} runs over batches"
    body = op.regions[0].block
    scans = op.int_of("num_scan_inputs") or 0
    states = len(op.operands) - scans
    inputs = tuple(op.operands[states:])
    axes = op.ints_of("scan_input_axes") or (0,) * scans
    backward = op.ints_of("scan_input_directions") or (0,) * scans
    count = _length(inputs, axes)
    if count is None:
        return None
    values = tuple(terminator(body).operands)
    outputs = values[states:]
    out_axes = op.ints_of("scan_output_axes") or (0,) * len(outputs)
    out_backward = op.ints_of("scan_output_directions") or (0,) * len(outputs)
    return _ScanTurns(
        body,
        count,
        tuple(op.operands[:states]),
        values[:states],
        tuple(map(Stacked, outputs, out_axes, map(bool, out_backward))),
        tuple(zip(inputs, axes, map(bool, backward), strict=True)),
    )


def unroll(rewriter: Rewriter, requests: Requests, op: NodeOp, turns: Turns) -> None:
    """Replace a Loop or Scan by copies of its body, one a turn, each with names of its own.

    Constants of the body are the same in all turns and are moved instead.
    """
    shared: dict[SSAValue, SSAValue] = {}
    for inner in [inner for inner in turns.body.ops if _is_shared(inner)]:
        shared[inner.results[0]] = move_op(rewriter, inner, op).results[0]
    repeated = [inner for inner in turns.body.ops if not isinstance(inner, ReturnOp)]
    place = _Place(rewriter, op)
    carried = turns.initial
    columns: list[list[SSAValue]] = [[] for _ in turns.stacked]
    copies: list[Operation] = []
    for turn in range(turns.count):
        given = turns.inputs(place, turn, carried)
        values = {**shared, **dict(zip(turns.body.args, given, strict=True))}
        copies = [inner.clone(values) for inner in repeated]
        for copy in copies:
            derive(copy, f"{label(op)}/{turn}")
        place.insert(copies)
        carried = tuple(values.get(value, value) for value in turns.carried)
        for column, stacked in zip(columns, turns.stacked, strict=True):
            column.append(values.get(stacked.value, stacked.value))
    last = set(copies)
    pass_names(op, [*(v if v.owner in last else None for v in carried), *[None] * len(columns)])
    results = list(zip(range(len(carried), len(op.results)), turns.stacked, columns, strict=True))
    stacks = [
        None if op.results[index].first_use is None else _stack(place, index, stacked, column)
        for index, stacked, column in results
    ]
    rewriter.erase(terminator(turns.body))
    requests.expect(op, len(shared) + place.nodes)
    hand_over(rewriter, op, [*carried, *stacks])


class _Place:
    """Where the turns go: before the node that they replace."""

    def __init__(self, rewriter: Rewriter, op: NodeOp):
        self.op = op
        self.builder = Builder.at(op)
        self.nodes = 0
        self._rewriter = rewriter

    def insert(self, ops: Ops) -> None:
        """Insert operations."""
        for op in ops:
            self._rewriter.insert_before(op, self.op)
        self.nodes += len(ops)

    def value(self, ops: Ops) -> SSAValue:
        """Insert operations; the result of the last one."""
        self.insert(ops)
        return ops[-1].results[0]

    def constant(self, array: Array) -> SSAValue:
        """Insert a constant."""
        self.nodes += 1
        return self._rewriter.constant_before(self.op, array, Names(None)).results[0]


def _stack(place: _Place, index: int, stacked: Stacked, column: Sequence[SSAValue]) -> SSAValue:
    """Join what the turns gave to the output `index`, in the form of the operator set."""
    names = Names(node_name(place.op), (result_names(place.op)[index],))
    element, dims = element_type(stacked.value.type), dims_of(stacked.value.type)
    axis = stacked.axis if dims is None else stacked.axis % (len(dims) + 1)

    def typed(length: int) -> Attribute:
        whole = None if dims is None else (*dims[:axis], length, *dims[axis:])
        return UNKNOWN if element is None else tensor_type(element, whole)

    build = place.builder
    if len(column) == 1:
        return place.value(build.unsqueeze(column[0], (axis,), typed(1), names))
    ordered = reversed(column) if stacked.is_reversed else column
    steps = [place.value(build.unsqueeze(value, (axis,), typed(1))) for value in ordered]
    return place.value(build.concat(steps, axis, typed(len(column)), names))


def _is_shared(op: Operation) -> bool:
    return op.has_trait(ConstantLike) or isinstance(op, NoneOp)


def _constant(value: SSAValue | None) -> Array | None:
    tensor = None if value is None else constant_tensor(value)
    return None if tensor is None else tensor.array


def _stays_true(body: Block) -> bool:
    """Whether the condition that a Loop's body returns is true if the one it is given is."""
    value = terminator(body).operands[0]
    while isinstance(value.owner, IdentityOp):
        value = value.owner.operands[0]
    tensor = _constant(value)
    return value is body.args[1] if tensor is None else tensor.size == 1 and bool(tensor.item())


def _length(inputs: Sequence[SSAValue], axes: Sequence[int]) -> int | None:
    """How many slices the inputs of a Scan have: all the same number."""
    for value, axis in zip(inputs, axes, strict=True):
        dims: tuple[Dim, ...] | None = dims_of(value.type)
        size = None if dims is None else dims[axis]
        if isinstance(size, int) and size >= 0:
            return size
    return None
