"""What goes into and comes out of the bodies of Loop, Scan and SequenceMap, as types."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute

from foldline.dialects.onnx.control import LoopOp, ScanOp
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.types import (
    UNKNOWN,
    Dim,
    SequenceType,
    dims_of,
    element_type,
    tensor_type,
)
from foldline.stages.inference.joining import join, opened

Types = Sequence[Attribute]


def argument_types(op: OnnxOp, operands: Types, declared: Types) -> list[Attribute]:
    """Types of the body's arguments in the first turn."""
    match op:
        case LoopOp():
            turn = [_scalar(t, declared, i) for i, t in enumerate((i64, i1))]
            carried = operands[2:]
            found = [*turn, *carried]
        case ScanOp():
            found = _scan_arguments(op, operands)
        case _:
            found = [t.element if isinstance(t, SequenceType) else t for t in operands]
    if len(found) != len(declared):
        return [opened(t) for t in declared]
    return [opened(d) if t == UNKNOWN else t for t, d in zip(found, declared, strict=True)]


def misfit(op: OnnxOp, operands: Types) -> str:
    """Why a Scan cannot slice its inputs; empty where it can, or nothing is known of them."""
    if not isinstance(op, ScanOp) or op.since < 9:
        return ""
    for given, axis in zip(operands[_states(op) :], _scan_axes(op), strict=True):
        dims = dims_of(given)
        if dims is not None and not -len(dims) <= axis < len(dims):
            return f"it scans axis {axis} of an input of {len(dims)} axes"
    return ""


def carried(op: OnnxOp) -> list[tuple[int, int]]:
    """Which argument takes which yielded value of the turn before."""
    match op:
        case LoopOp():
            return [(2 + i, 1 + i) for i in range(len(op.operands) - 2)]
        case ScanOp() if op.since >= 9:
            return [(i, i) for i in range(_states(op))]
        case _:
            return []


def result_types(op: OnnxOp, operands: Types, yields: Types) -> list[Attribute]:
    """Types of the results; no turn at all is possible, so a carried value may be the initial."""
    match op:
        case LoopOp():
            states = len(operands) - 2
            kept = [join(a, b) for a, b in zip(operands[2:], yields[1:], strict=False)]
            return [*kept, *(_stacked(t, None, 0) for t in yields[1 + states :])]
        case ScanOp() if op.since >= 9:
            states = _states(op)
            kept = [join(a, b) for a, b in zip(operands[:states], yields[:states], strict=True)]
            axes = op.ints_of("scan_output_axes") or (0,) * (len(yields) - states)
            length = _scan_length(op, operands)
            scanned = zip(yields[states:], axes, strict=True)
            return [*kept, *(_stacked(t, length, axis) for t, axis in scanned)]
        case ScanOp():
            return [opened(t) for t in yields]
        case _:
            return [SequenceType(t) for t in yields]


def _scalar(element: Attribute, declared: Types, index: int) -> Attribute:
    """A scalar, or the one-element vector that some exporters declare for it."""
    dims = dims_of(declared[index]) if index < len(declared) else None
    return tensor_type(element, (1,) if dims == (1,) else ())


def _states(op: OnnxOp) -> int:
    return len(op.operands) - (op.int_of("num_scan_inputs") or 0)


def _scan_axes(op: OnnxOp) -> tuple[int, ...]:
    return op.ints_of("scan_input_axes") or (0,) * (len(op.operands) - _states(op))


def _scan_arguments(op: OnnxOp, operands: Types) -> list[Attribute]:
    if op.since < 9:
        return [opened(t) for t in operands[1:]]
    states = _states(op)
    scanned = zip(operands[states:], _scan_axes(op), strict=True)
    return [*operands[:states], *(_without(t, axis) for t, axis in scanned)]


def _scan_length(op: OnnxOp, operands: Types) -> Dim:
    for given, axis in zip(operands[_states(op) :], _scan_axes(op), strict=True):
        dims = dims_of(given)
        if dims is not None and -len(dims) <= axis < len(dims) and isinstance(dims[axis], int):
            return dims[axis]
    return None


def _without(attribute: Attribute, axis: int) -> Attribute:
    """The type of a slice along `axis`."""
    element, dims = element_type(attribute), dims_of(attribute)
    if element is None or dims is None:
        return attribute
    if not -len(dims) <= axis < len(dims):
        return tensor_type(element, None)
    axis %= len(dims)
    return tensor_type(element, dims[:axis] + dims[axis + 1 :])


def _stacked(attribute: Attribute, length: Dim, axis: int) -> Attribute:
    """The type of `length` values of a type, joined along a new axis."""
    element, dims = element_type(attribute), dims_of(attribute)
    if element is None or dims is None:
        return attribute
    axis %= len(dims) + 1
    return tensor_type(element, (*dims[:axis], length, *dims[axis:]))
