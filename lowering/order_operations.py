"""The order in which a block runs, and where each of its values dies."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Operation, SSAValue

from foldline.dialects.onnx.structure import NoneOp
from foldline.dialects.plan import CallOp, ConstantOp


def ordered(ops: Sequence[Operation]) -> list[Operation]:
    """The model's order, but constants come first, then what is computed once."""
    return sorted(ops, key=_rank)


def _rank(op: Operation) -> int:
    if isinstance(op, ConstantOp | NoneOp):
        return 0
    return 1 if isinstance(op, CallOp) and op.is_once else 2


def mark_last_uses(ops: Sequence[Operation], kept: Collection[SSAValue]) -> None:
    """Write on every call which of its operands die there.

    Never those of `kept` (what the block returns, or takes from outside), nor constants, nor,
    at calls that run every time, what was computed once.
    """
    seen = set(kept)
    for op in reversed(ops):
        if not isinstance(op, CallOp):
            continue
        dying: list[int] = []
        for position, value in enumerate(op.operands):
            if value not in seen:
                seen.add(value)
                if _may_die(value, op):
                    dying.append(position)
        if dying:
            op.properties["frees"] = DenseArrayBase.from_list(i64, dying)


def _may_die(value: SSAValue, at: CallOp) -> bool:
    owner = value.owner
    if isinstance(owner, CallOp):
        return at.is_once or not owner.is_once
    return not isinstance(owner, ConstantOp | NoneOp)
